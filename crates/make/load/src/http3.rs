//! HTTP/3: several requests at once on one connection of QUIC.

mod session;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use stillwell_http::h3::H3ErrorCode;
use stillwell_metric::Outcome;
use stillwell_scope::{clock, explain};
use stillwell_units::Moment;
use stillwell_wire::quic::{Line, QuicConnection, QuicEnd, QuicEvent};

use super::connection::{ConnectionEnd, ConnectionSlot};
use super::recorder::Ticket;
use session::Http3Session;

/// End of a wait.
enum Http3Event {
    /// Something on the connection.
    Event(QuicEvent),
    /// A request was handed over.
    Offered(Ticket),
    /// A request has taken too long.
    Overdue,
    /// The worker ends, and nothing is on its way.
    Ended,
}

impl ConnectionSlot {
    /// Keeps as many requests on their way as may be, those in hand first.
    pub(super) async fn multiplex_quic(&mut self, mut quic: QuicConnection) -> ConnectionEnd {
        let mut session = Http3Session::new(
            &self.worker,
            &self.pool,
            self.slot,
            std::mem::take(&mut self.marks),
            quic.line(),
        );
        let end = self.attend_quic(&mut quic, &mut session).await;
        // The peer that broke the protocol was informed before.
        quic.line().close(H3ErrorCode::NO_ERROR.0);
        poll_fn(|context| {
            quic.flush(context);
            Poll::Ready(())
        })
        .await;
        let mut slots = self.pool.slots.borrow_mut();
        slots.withdraw(self.slot);
        while let Some(ticket) = slots.unaccepted(self.slot) {
            self.in_hand.push_back(ticket);
        }
        drop(slots);
        session.lose_all(Outcome::PeerClosed);
        self.marks = std::mem::take(&mut session.marks);
        self.keep_returned(&mut session.returned);
        if end == ConnectionEnd::Agreed {
            self.pass_on();
        }
        end
    }

    async fn attend_quic(
        &mut self,
        quic: &mut QuicConnection,
        session: &mut Http3Session,
    ) -> ConnectionEnd {
        let mut now = clock::now();
        loop {
            while let Some(event) = quic.next_event() {
                if let Some(end) = self.handle_event(quic, session, event) {
                    return end;
                }
            }
            let line = quic.line();
            // Once all that came with it is read: what the server did answer proves it.
            session.reject_what_is_not_taken(line);
            self.fill_quic(line, session, now);
            if let Some(end) = session.end() {
                return end;
            }
            if session.is_proven {
                self.backoff.reset();
            }
            let is_blocked = session.is_blocked(line);
            if session.in_flight() == 0 && !(is_blocked && session.was_blocked) {
                self.alarm.deadline = now + session.request_timeout;
            }
            session.was_blocked = is_blocked;
            let happened = poll_fn(|context| self.poll_quic(quic, session, context)).await;
            now = clock::now();
            match happened {
                Http3Event::Event(event) => {
                    if let Some(end) = self.handle_event(quic, session, event) {
                        return end;
                    }
                }
                Http3Event::Offered(ticket) => {
                    session.declared -= 1;
                    self.in_hand.push_back(ticket);
                }
                Http3Event::Overdue if is_blocked => {
                    self.give_up_waiting();
                    return ConnectionEnd::Lost;
                }
                Http3Event::Overdue => self.alarm.deadline = session.expire(quic.line(), now),
                Http3Event::Ended => return ConnectionEnd::Ended,
            }
        }
    }

    /// Sends requests in hand, then due ones, as far as there is room. If no more will begin
    /// here, other connections get those in hand.
    fn fill_quic(&mut self, line: &mut Line, session: &mut Http3Session, now: Moment) {
        while session.has_room(line)
            && let Some(ticket) = self.in_hand.pop_front()
        {
            session.send(line, ticket, now);
        }
        session.take(line, now);
        session.withdraw_surplus(line);
        // A server that lets nothing begin ends the requests, or they would go from connection to
        // connection.
        if session.has_begun && session.is_closing() {
            self.keep_returned(&mut session.returned);
            self.pass_on();
        }
    }

    fn poll_quic(
        &mut self,
        quic: &mut QuicConnection,
        session: &Http3Session,
        context: &mut Context<'_>,
    ) -> Poll<Http3Event> {
        let offered = self.pool.slots.borrow_mut().accept(self.slot, context);
        if let Some(ticket) = offered {
            return Poll::Ready(Http3Event::Offered(ticket));
        }
        if session.in_flight() == 0 && self.worker.is_ending() {
            return Poll::Ready(Http3Event::Ended);
        }
        if let Poll::Ready(event) = quic.poll_event(context) {
            return Poll::Ready(Http3Event::Event(event));
        }
        if (session.in_flight() > 0 || session.was_blocked) && self.alarm.is_over(context) {
            return Poll::Ready(Http3Event::Overdue);
        }
        Poll::Pending
    }

    /// Handles an event; returns the end of the connection, if it ended.
    fn handle_event(
        &self,
        quic: &mut QuicConnection,
        session: &mut Http3Session,
        event: QuicEvent,
    ) -> Option<ConnectionEnd> {
        let came = quic.came();
        let line = quic.line();
        let handled = match event {
            QuicEvent::Connected | QuicEvent::Available => Ok(()),
            QuicEvent::Opened => session.accept(line),
            QuicEvent::Readable(stream) => session.read(line, stream, came),
            QuicEvent::Writable(stream) => {
                session.send_more(line, stream);
                Ok(())
            }
            QuicEvent::Stopped(stream, code) => {
                session.stopped(line, stream, code);
                Ok(())
            }
            QuicEvent::Lost(end) => return Some(self.lost(session, &end)),
        };
        let error = handled.err()?;
        line.close(error.code().0);
        let outcome = self.worker.malformed(&error);
        if !session.has_begun {
            return Some(self.unused(outcome, &explain(&error)));
        }
        session.lose_all(outcome);
        Some(ConnectionEnd::Lost)
    }

    fn lost(&self, session: &mut Http3Session, end: &QuicEnd) -> ConnectionEnd {
        if !session.has_begun {
            return self.unused(end.outcome(), &explain(end));
        }
        if session.in_flight() == 0 {
            let worker = Rc::clone(&self.worker);
            worker.recorder.borrow().shard.connections_ended.add(1);
            return ConnectionEnd::Agreed;
        }
        let outcome = match end.outcome() {
            Outcome::Malformed => self.worker.malformed(end),
            outcome => outcome,
        };
        // In the other cases this side ended it: nothing came for too long, or it was malformed.
        if outcome == Outcome::PeerClosed {
            let shard = &self.worker.recorder.borrow().shard;
            shard.connections_cut.add(1);
        }
        session.lose_all(outcome);
        ConnectionEnd::Lost
    }
}
