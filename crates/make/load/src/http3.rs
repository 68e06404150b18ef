//! HTTP/3: several requests at once on one connection of QUIC.

mod session;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use stillwell_http::h3::ErrorCode;
use stillwell_metric::Outcome;
use stillwell_scope::{clock, explain};
use stillwell_wire::quic::{QuicConnection, QuicEnd, QuicEvent};

use super::connection::{Lane, Parting};
use super::ledger::Ticket;
use session::Session;

/// What ended a wait.
enum Happened {
    /// Something on the connection.
    Event(QuicEvent),
    /// A request was handed over.
    Offered(Ticket),
    /// A request has taken too long.
    Overdue,
    /// The worker ends, and nothing is on its way.
    Ended,
}

impl Lane {
    /// Keeps as many requests on their way as may be, those in hand first.
    pub(super) async fn multiplex_quic(&mut self, mut quic: QuicConnection) -> Parting {
        let mut session = Session::new(
            &self.worker,
            &self.pool,
            self.slot,
            std::mem::take(&mut self.marks),
            quic.line(),
        );
        let parting = self.attend_quic(&mut quic, &mut session).await;
        // Whoever broke the protocol was told so before.
        quic.line().close(ErrorCode::NO_ERROR.0);
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
        // These were due before all that is in hand.
        while let Some(ticket) = session.returned.pop() {
            self.in_hand.push_front(ticket);
        }
        parting
    }

    async fn attend_quic(&mut self, quic: &mut QuicConnection, session: &mut Session) -> Parting {
        let mut now = clock::now();
        loop {
            while let Some(event) = quic.next_event() {
                if let Some(parting) = self.heed(quic, session, event) {
                    return parting;
                }
            }
            let line = quic.line();
            // Once all that came with it is read: what the server did answer proves it.
            session.reject_what_is_not_taken(line);
            while session.has_room(line)
                && let Some(ticket) = self.in_hand.pop_front()
            {
                session.send(line, ticket, now);
            }
            session.take(line, now);
            if let Some(parting) = session.parting() {
                return parting;
            }
            if session.is_proven {
                self.backoff.reset();
            }
            let is_barred = session.is_barred(line);
            if session.aloft() == 0 && !(is_barred && session.was_barred) {
                self.alarm.deadline = now + session.patience;
            }
            session.was_barred = is_barred;
            let happened = poll_fn(|context| self.poll_quic(quic, session, context)).await;
            now = clock::now();
            match happened {
                Happened::Event(event) => {
                    if let Some(parting) = self.heed(quic, session, event) {
                        return parting;
                    }
                }
                Happened::Offered(ticket) => {
                    session.declared -= 1;
                    self.in_hand.push_back(ticket);
                }
                Happened::Overdue if is_barred => {
                    self.give_up_waiting();
                    return Parting::Lost;
                }
                Happened::Overdue => self.alarm.deadline = session.expire(quic.line(), now),
                Happened::Ended => return Parting::Ended,
            }
        }
    }

    fn poll_quic(
        &mut self,
        quic: &mut QuicConnection,
        session: &Session,
        context: &mut Context<'_>,
    ) -> Poll<Happened> {
        let offered = self.pool.slots.borrow_mut().accept(self.slot, context);
        if let Some(ticket) = offered {
            return Poll::Ready(Happened::Offered(ticket));
        }
        if session.aloft() == 0 && self.worker.is_ending() {
            return Poll::Ready(Happened::Ended);
        }
        if let Poll::Ready(event) = quic.poll_event(context) {
            return Poll::Ready(Happened::Event(event));
        }
        if (session.aloft() > 0 || session.was_barred) && self.alarm.is_over(context) {
            return Poll::Ready(Happened::Overdue);
        }
        Poll::Pending
    }

    /// Does what an event asks for; gives how the connection came to its end, if it
    /// did.
    fn heed(
        &self,
        quic: &mut QuicConnection,
        session: &mut Session,
        event: QuicEvent,
    ) -> Option<Parting> {
        let came = quic.came();
        let line = quic.line();
        let heeded = match event {
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
        let error = heeded.err()?;
        line.close(error.code().0);
        let outcome = self.worker.malformed(&error);
        if !session.has_begun {
            return Some(self.unused(outcome, &explain(&error)));
        }
        session.lose_all(outcome);
        Some(Parting::Lost)
    }

    fn lost(&self, session: &mut Session, end: &QuicEnd) -> Parting {
        if !session.has_begun {
            return self.unused(end.outcome(), &explain(end));
        }
        if session.aloft() == 0 {
            let worker = Rc::clone(&self.worker);
            worker.ledger.borrow().shard.connections_ended.add(1);
            return Parting::Agreed;
        }
        let outcome = match end.outcome() {
            Outcome::Malformed => self.worker.malformed(end),
            outcome => outcome,
        };
        session.lose_all(outcome);
        Parting::Lost
    }
}
