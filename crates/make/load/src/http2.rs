//! HTTP/2: several requests at once on one connection.

mod calls;
mod room;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use stillwell_http::h2::{
    BodyLength, Client, ClientEvent, Fields, H2ConnectionError, H2ErrorCode, H2StreamFailure,
    Limits, Stream,
};
use stillwell_metric::Outcome;
use stillwell_scope::{clock, explain};
use stillwell_stamp::HEADER;
use stillwell_units::{Moment, Nanos};
use stillwell_worker::Marks;
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer::{ResponseSummary, number};
use super::connection::{ConnectionEnd, ConnectionSlot};
use super::http1::{CLOSED_UNUSED, poll_read};
use super::pool::Pool;
use super::recorder::{Answer, Take, Ticket};
use super::trace::{RequestTrace, TracedRequest, request_traced};
use super::worker::Worker;
use calls::Calls;

/// Requests of one connection at most: it has no more stream IDs.
const REQUESTS_MAX: u64 = 1 << 30;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Http2InFlight {
    stream: Stream,
    ticket: Ticket,
    sent: Moment,
    first_byte: Option<Moment>,
    status: u16,
    head_bytes: u64,
    body_bytes: u64,
    /// Bytes of its own body that were sent.
    body_sent: usize,
    /// Of a block, how long it is.
    body_whole: usize,
    /// Bytes of the connection before it.
    begins_at: u64,
    /// The number in the header that is watched.
    origin: Option<u64>,
    trace: Option<RequestTrace>,
}

/// One connection and what is on its way there.
struct Http2Session {
    worker: Rc<Worker>,
    pool: Rc<Pool>,
    slot: usize,
    client: Client,
    /// By the stream's slot.
    requests: Vec<Option<Http2InFlight>>,
    /// Number of requests in flight.
    in_flight: usize,
    /// Number of requests that the pool may hand over.
    declared: usize,
    /// Requests that may still begin here.
    left: u64,
    streams: usize,
    /// There is nothing more to take.
    is_done: bool,
    /// True if a request was sent here; true if one was answered.
    has_begun: bool,
    is_proven: bool,
    /// True if it admitted no request at the last check.
    was_blocked: bool,
    /// True once the kernel refused to take more.
    is_refused: bool,
    /// Requests that the server did not begin when it went away.
    returned: Vec<Ticket>,
    /// Of blocks, what stamps those of each slot, and what of each is still to be
    /// sent.
    marks: Vec<Marks>,
    rests: Vec<Vec<u8>>,
    /// Bytes that the kernel has taken.
    written: u64,
    calls: Calls,
    /// Time left for the most urgent request.
    request_timeout: Nanos,
}

/// End of a wait.
enum Http2Event {
    /// So many bytes were read; none at the end.
    Read(io::Result<usize>),
    /// A request was handed over.
    Offered(Ticket),
    /// There is room for more of a body.
    Room,
    /// The time has come for a message.
    Due,
    /// The kernel refused to take more.
    Refused,
    /// A request has taken too long.
    Overdue,
    /// The worker ends, and nothing is on its way.
    Ended,
}

impl ConnectionSlot {
    /// Keeps as many requests on their way as may be, those in hand first.
    pub(super) async fn multiplex<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        mut stream: S,
    ) -> ConnectionEnd {
        let connecting = &self.worker.client.connecting;
        let limits = Limits {
            concurrent_streams_max: connecting.streams,
            ..Limits::default()
        };
        let streams = connecting.streams as usize;
        let mut session = Http2Session {
            worker: Rc::clone(&self.worker),
            pool: Rc::clone(&self.pool),
            slot: self.slot,
            client: Client::new(limits),
            requests: vec![None; streams],
            in_flight: 0,
            declared: 0,
            left: connecting
                .requests_max
                .unwrap_or(u64::MAX)
                .min(REQUESTS_MAX),
            streams,
            is_done: false,
            has_begun: false,
            is_proven: false,
            was_blocked: false,
            is_refused: false,
            returned: Vec::with_capacity(streams),
            marks: std::mem::take(&mut self.marks),
            rests: Vec::new(),
            written: 0,
            calls: Calls::default(),
            request_timeout: self.worker.request_timeout(self.pool.endpoint),
        };
        let end = self.attend(&mut stream, &mut session).await;
        let mut slots = self.pool.slots.borrow_mut();
        slots.withdraw(self.slot);
        while let Some(ticket) = slots.unaccepted(self.slot) {
            self.in_hand.push_back(ticket);
        }
        drop(slots);
        session.lose_all();
        self.marks = std::mem::take(&mut session.marks);
        self.keep_returned(&mut session.returned);
        if end == ConnectionEnd::Agreed {
            self.pass_on();
        }
        end
    }

    async fn attend<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        session: &mut Http2Session,
    ) -> ConnectionEnd {
        let mut now = clock::now();
        loop {
            self.fill(session, now);
            if let Some(end) = session.end() {
                session.client.close();
                // What is not taken at once is no loss: nothing is under way.
                poll_fn(|context| {
                    drop(session.poll_write(stream, context));
                    Poll::Ready(())
                })
                .await;
                return end;
            }
            let is_blocked = session.is_blocked();
            if session.in_flight == 0 && !(is_blocked && session.was_blocked) {
                self.alarm.deadline = now + session.request_timeout;
            }
            session.was_blocked = is_blocked;
            let happened = poll_fn(|context| self.poll(stream, session, context)).await;
            now = clock::now();
            match happened {
                Http2Event::Offered(ticket) => {
                    session.declared -= 1;
                    if session.has_room() {
                        session.send(ticket, now);
                    } else {
                        self.in_hand.push_back(ticket);
                    }
                }
                Http2Event::Read(Ok(count @ 1..)) => {
                    if let Err(error) = session.digest(&self.buffer[..count], now) {
                        let outcome = self.worker.malformed(&error);
                        if session.has_begun {
                            return ConnectionEnd::Lost;
                        }
                        return self.unused(outcome, &explain(&error));
                    }
                    if session.is_proven {
                        self.backoff.reset();
                    }
                }
                Http2Event::Room => {
                    if session.digest(&[], now).is_err() {
                        return ConnectionEnd::Lost;
                    }
                }
                Http2Event::Due => session.send_due(now),
                ended @ (Http2Event::Read(Ok(0) | Err(_)) | Http2Event::Refused) => {
                    if let Http2Event::Read(Err(error)) = ended {
                        self.worker.broken(self.pool.endpoint, &error);
                    }
                    if session.has_begun {
                        return session.lost();
                    }
                    return self.unused(Outcome::PeerClosed, CLOSED_UNUSED);
                }
                Http2Event::Overdue if session.is_blocked() => {
                    self.give_up_waiting();
                    return ConnectionEnd::Lost;
                }
                Http2Event::Overdue => self.alarm.deadline = session.expire(now),
                Http2Event::Ended => return ConnectionEnd::Ended,
            }
        }
    }

    /// Sends requests in hand, then due ones, as far as there is room. If no more will begin
    /// here, other connections get those in hand.
    fn fill(&mut self, session: &mut Http2Session, now: Moment) {
        while session.has_room()
            && let Some(ticket) = self.in_hand.pop_front()
        {
            session.send(ticket, now);
        }
        session.take(now);
        session.withdraw_surplus();
        // A server that lets nothing begin ends the requests, or they would go from connection to
        // connection.
        if session.has_begun && session.is_closing() {
            self.keep_returned(&mut session.returned);
            self.pass_on();
        }
    }

    /// The server lets nothing begin: what is in hand, or else the next that is
    /// due, has waited for long enough.
    pub(super) fn give_up_waiting(&mut self) {
        if self.in_hand.is_empty() {
            self.in_hand.extend(self.take_now());
        }
        for ticket in self.in_hand.drain(..) {
            self.worker.end_request(ticket, Outcome::TimedOut);
        }
    }

    fn poll<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        session: &mut Http2Session,
        context: &mut Context<'_>,
    ) -> Poll<Http2Event> {
        let offered = self.pool.slots.borrow_mut().accept(self.slot, context);
        if let Some(ticket) = offered {
            return Poll::Ready(Http2Event::Offered(ticket));
        }
        if session.in_flight == 0 && self.worker.is_ending() {
            return Poll::Ready(Http2Event::Ended);
        }
        session.is_refused |= session.poll_write(stream, context).is_err();
        if session.is_refused {
            // Answers that arrived before the server closed the connection come first.
            let read = poll_read(stream, &mut self.buffer, context).map(Http2Event::Read);
            return Poll::Ready(match read {
                Poll::Ready(read) => read,
                Poll::Pending => Http2Event::Refused,
            });
        }
        if session.client.has_room() {
            return Poll::Ready(Http2Event::Room);
        }
        if session.calls.poll_due(context).is_ready() {
            return Poll::Ready(Http2Event::Due);
        }
        if let Poll::Ready(read) = poll_read(stream, &mut self.buffer, context) {
            return Poll::Ready(Http2Event::Read(read));
        }
        if (session.in_flight > 0 || session.is_blocked()) && self.alarm.is_over(context) {
            return Poll::Ready(Http2Event::Overdue);
        }
        Poll::Pending
    }
}

impl Http2Session {
    /// Returns true if the server admits no request although none is in flight.
    fn is_blocked(&self) -> bool {
        self.in_flight == 0
            && self.left > 0
            && self.client.going_away().is_none()
            && self.client.requests_available() == 0
    }

    /// Takes what is due as far as there is room, and reports the remaining requests to the
    /// pool.
    fn take(&mut self, now: Moment) {
        self.is_done |= self.worker.is_ending();
        while !self.is_done && self.declared < self.room() {
            match self.pool.take_next(&self.worker, now) {
                Take::Now(ticket) => self.send(ticket, now),
                Take::Later(_) | Take::Starved => {
                    self.declared += 1;
                    self.pool.slots.borrow_mut().free(self.slot, true);
                }
                Take::Never => self.is_done = true,
            }
        }
        self.take_due(now);
    }

    /// Sends what is due meanwhile itself, although it was for the pacer to hand it over.
    fn take_due(&mut self, now: Moment) {
        while self.declared > 0
            && !self.is_done
            && self.has_room()
            && let Some(ticket) = self.pool.take_due(&self.worker, self.slot, now)
        {
            self.declared -= 1;
            self.send(ticket, now);
        }
    }

    /// Reason to close the connection now, if any.
    fn end(&self) -> Option<ConnectionEnd> {
        if self.in_flight > 0 {
            return None;
        }
        if self.is_done {
            return Some(ConnectionEnd::Ended);
        }
        if self.left == 0 {
            self.worker
                .recorder
                .borrow()
                .shard
                .connections_used_up
                .add(1);
            return Some(ConnectionEnd::Agreed);
        }
        self.client.going_away().map(|_| {
            self.worker.recorder.borrow().shard.connections_ended.add(1);
            if self.has_begun {
                ConnectionEnd::Agreed
            } else {
                ConnectionEnd::Unused(Outcome::PeerClosed)
            }
        })
    }

    fn send(&mut self, mut ticket: Ticket, now: Moment) {
        if self.worker.sends_blocks() {
            return self.send_block(ticket, now);
        }
        let worker = Rc::clone(&self.worker);
        let request = worker.request(self.pool.endpoint, ticket);
        if request.call().is_some() {
            return self.send_call(ticket, now);
        }
        let length = match request.bytes().len() {
            0 => BodyLength::None,
            bytes => BodyLength::Bytes(bytes as u64),
        };
        let block = request.http2_head();
        let trace = worker.next_trace();
        let client = &mut self.client;
        let sent = block.map(|block| request_traced(client, block, trace.as_ref(), length));
        let Some(Ok(stream)) = sent else {
            // Looked at beforehand: there was room.
            return worker.end_request(ticket, Outcome::SendFailed);
        };
        let body_sent = match request.bytes().len() {
            0 => 0,
            _ => self
                .client
                .send_body(stream, request.bytes(), true)
                .unwrap_or(0),
        };
        // The generator counts bodies; a load counts the bytes of the connection.
        let bytes = worker.blocks().map_or(0, |_| request.bytes().len());
        worker.sent(&mut ticket, now, bytes);
        self.launch(stream, ticket, now, (body_sent, trace));
    }

    /// Sends a block. What there is no room for yet is kept, and all of it counts:
    /// it is the connection's from here on.
    fn send_block(&mut self, mut ticket: Ticket, now: Moment) {
        let worker = Rc::clone(&self.worker);
        let Some((blocks, block)) = worker.block(ticket) else {
            return;
        };
        let head = blocks.request.http2_head();
        let length = BodyLength::Bytes(block.1.bytes_len(&block.0) as u64);
        let begins_at = self.laid_out();
        let marks = self.marks.get_mut(self.client.next_slot());
        let mut sending = blocks.sending((&mut ticket, now), &block, marks);
        let stamp = sending.header().map(|stamp| (HEADER, stamp.as_slice()));
        let client = &mut self.client;
        let sent = head.map(|head| client.request_with(head, stamp.as_slice(), length));
        let Some(Ok(stream)) = sent else {
            return worker.end_request(ticket, Outcome::SendFailed);
        };
        let body = sending.rest();
        let body_sent = self.client.send_body(stream, body, true).unwrap_or(0);
        sending.wrote(body.len());
        let (rest, whole) = (body[body_sent..].to_vec(), body.len());
        self.launch(stream, ticket, now, (body_sent, None));
        self.update(stream, |flight| {
            flight.begins_at = begins_at;
            flight.body_whole = whole;
        });
        if self.rests.len() < self.requests.len() {
            self.rests.resize(self.requests.len(), Vec::new());
        }
        self.rests[stream.slot()] = rest;
    }

    /// A request is on its way, so much of its body sent.
    fn launch(
        &mut self,
        stream: Stream,
        ticket: Ticket,
        now: Moment,
        (body_sent, trace): (usize, Option<RequestTrace>),
    ) {
        self.left -= 1;
        self.has_begun = true;
        if self.requests.len() <= stream.slot() {
            self.requests.resize(stream.slot() + 1, None);
        }
        self.in_flight += 1;
        self.requests[stream.slot()] = Some(Http2InFlight {
            stream,
            ticket,
            sent: now,
            first_byte: None,
            status: 0,
            head_bytes: 0,
            body_bytes: 0,
            body_sent,
            body_whole: 0,
            begins_at: 0,
            origin: None,
            trace,
        });
    }

    /// Takes what was read. An error has ended all that was on its way.
    fn digest(&mut self, input: &[u8], now: Moment) -> Result<(), H2ConnectionError> {
        let worker = Rc::clone(&self.worker);
        worker
            .recorder
            .borrow()
            .shard
            .bytes_received
            .add(input.len() as u64);
        let mut read = 0;
        loop {
            let (taken, event) = self.client.advance(&input[read..])?;
            read += taken;
            match event {
                None => return Ok(()),
                Some(ClientEvent::Head { stream, head }) => {
                    let bytes = head.fields.bytes_len() as u64;
                    let status = head.status;
                    let watched = worker.latency_header.as_ref();
                    let origin = watched.and_then(|name| number_in(head.fields, name));
                    worker.receive(status, head.fields.iter());
                    self.calls.head(stream, head.fields);
                    self.update(stream, |flight| {
                        flight.status = status;
                        flight.origin = origin;
                        flight.head_bytes = bytes;
                        flight.first_byte = Some(now);
                    });
                    if self.opens_tunnel(stream, status) {
                        self.client.reset(stream, H2ErrorCode::CANCEL);
                        self.answered(stream, now);
                    }
                }
                Some(ClientEvent::Body { stream, bytes }) => {
                    if let Some(Some(flight)) = self.requests.get_mut(stream.slot()) {
                        flight.body_bytes += bytes.len() as u64;
                        self.calls.body(flight, bytes, now, &worker);
                    }
                }
                Some(ClientEvent::End { stream, trailers }) => {
                    self.calls.trailers(stream, trailers);
                    self.answered(stream, now);
                }
                // The connection stays open, except for what the server says.
                Some(ClientEvent::Failed { stream, cause }) => {
                    self.failed(stream, cause, Outcome::Malformed);
                }
                Some(ClientEvent::Room { stream }) => self.send_more(stream, now),
            }
        }
    }

    /// Length of all bytes that were ever queued here, sent or not.
    fn laid_out(&self) -> u64 {
        self.written + self.client.output().len() as u64
    }

    /// A block will not be answered: its events that never left were never begun.
    /// None were that the server had not looked at when it went away.
    fn take_back(&self, flight: &Http2InFlight, is_unread: bool) {
        let (Some(blocks), slot) = (self.worker.blocks(), flight.stream.slot()) else {
            return;
        };
        let (Some(marks), Some(rest)) = (self.marks.get(slot), self.rests.get(slot)) else {
            return;
        };
        let left = if is_unread || self.written <= flight.begins_at {
            0
        } else {
            flight.body_whole - rest.len()
        };
        blocks.take_back(flight.ticket, marks, left);
    }

    fn update(&mut self, stream: Stream, change: impl FnOnce(&mut Http2InFlight)) {
        if let Some(Some(flight)) = self.requests.get_mut(stream.slot()) {
            change(flight);
        }
    }

    fn land(&mut self, stream: Stream) -> Option<Http2InFlight> {
        let flight = self.requests.get_mut(stream.slot())?.take()?;
        self.in_flight -= 1;
        self.calls.end(stream);
        Some(flight)
    }

    /// Returns true if an answer of `status` opens a tunnel, through which nothing is sent.
    fn opens_tunnel(&self, stream: Stream, status: u16) -> bool {
        let flight = self.requests.get(stream.slot()).copied().flatten();
        flight.is_some_and(|flight| {
            let request = self.worker.request(self.pool.endpoint, flight.ticket);
            request.answer_body.opens_tunnel(status)
        })
    }

    fn answered(&mut self, stream: Stream, now: Moment) {
        let response = self.calls.end(stream);
        let Some(flight) = self.land(stream) else {
            return;
        };
        self.is_proven = true;
        let status = match response {
            None => Some(flight.status),
            Some(response) => self.conclude(&flight, &response),
        };
        let Some(status) = status else {
            return self.take(now);
        };
        let answer = Answer {
            whole: ResponseSummary {
                status,
                keep_alive: true,
                head_bytes: flight.head_bytes,
                body_bytes: flight.body_bytes,
            },
            sent: flight.ticket.sent.unwrap_or(flight.sent),
            first_byte: flight.first_byte.unwrap_or(now),
            end: now,
        };
        self.worker.origin(flight.ticket, flight.origin);
        self.worker.answered(flight.ticket, &answer);
        let endpoint = self.pool.endpoint;
        self.worker.hand_over(flight.trace.as_ref(), || {
            let request = self.worker.request(endpoint, flight.ticket);
            TracedRequest::new(endpoint, &request, flight.ticket, flight.sent, Ok(&answer))
        });
        self.take(now);
    }

    /// There will be no answer; `lost` is the end of the connection where that is the cause.
    fn failed(&mut self, stream: Stream, cause: H2StreamFailure, lost: Outcome) {
        let Some(flight) = self.land(stream) else {
            return;
        };
        let is_away = self.client.going_away().is_some();
        let outcome = match cause {
            H2StreamFailure::Malformed { .. } | H2StreamFailure::HeadersTooLarge => {
                self.worker.malformed(&cause)
            }
            // It never began: another connection will do. Servers that end every
            // connection before an answer would keep it for ever.
            H2StreamFailure::Refused if is_away && self.is_proven => {
                self.take_back(&flight, true);
                return self.returned.push(flight.ticket);
            }
            H2StreamFailure::Reset(_) | H2StreamFailure::Refused => Outcome::PeerClosed,
            H2StreamFailure::ConnectionLost => lost,
        };
        self.take_back(&flight, false);
        if outcome == Outcome::PeerClosed {
            self.count_deadline(&flight, clock::now());
        }
        self.worker.end_request(flight.ticket, outcome);
        self.lose(&flight, outcome);
    }

    /// Message about a request without an answer.
    fn lose(&self, flight: &Http2InFlight, outcome: Outcome) {
        let endpoint = self.pool.endpoint;
        self.worker.hand_over(flight.trace.as_ref(), || {
            let request = self.worker.request(endpoint, flight.ticket);
            TracedRequest::new(
                endpoint,
                &request,
                flight.ticket,
                flight.sent,
                Err(&outcome),
            )
        });
    }

    /// Goes on with a request's own body.
    fn send_more(&mut self, stream: Stream, now: Moment) {
        let Some(Some(flight)) = self.requests.get_mut(stream.slot()) else {
            return;
        };
        if self.worker.sends_blocks() {
            let rest = &mut self.rests[stream.slot()];
            let sent = self.client.send_body(stream, rest, true).unwrap_or(0);
            rest.drain(..sent);
            return;
        }
        let worker = Rc::clone(&self.worker);
        let request = worker.request(self.pool.endpoint, flight.ticket);
        if request.call().is_some() {
            return self.send_messages(stream, now);
        }
        let rest = &request.bytes()[flight.body_sent..];
        flight.body_sent += self.client.send_body(stream, rest, true).unwrap_or(0);
    }

    /// Gives up what has taken too long; gives when the next one will have.
    fn expire(&mut self, now: Moment) -> Moment {
        let mut next = now + self.request_timeout;
        for index in 0..self.requests.len() {
            let Some(flight) = self.requests[index] else {
                continue;
            };
            let deadline = flight.sent + self.limit(&flight);
            if deadline > now {
                next = next.min(deadline);
                continue;
            }
            self.client.reset(flight.stream, H2ErrorCode::CANCEL);
            self.land(flight.stream);
            self.take_back(&flight, false);
            self.count_deadline(&flight, now);
            let worker = Rc::clone(&self.worker);
            worker.end_request(flight.ticket, Outcome::TimedOut);
            self.lose(&flight, Outcome::TimedOut);
        }
        next
    }

    /// The connection has ended.
    fn lost(&mut self) -> ConnectionEnd {
        // Afterwards no request is in flight: each has ended here.
        let mut is_cut = false;
        loop {
            match self.client.finish() {
                Ok(None) | Err(_) => break,
                Ok(Some(ClientEvent::End { stream, trailers })) => {
                    self.calls.trailers(stream, trailers);
                    let now = clock::now();
                    self.answered(stream, now);
                }
                Ok(Some(ClientEvent::Failed { stream, cause })) => {
                    is_cut = true;
                    self.failed(stream, cause, Outcome::PeerClosed);
                }
                Ok(Some(_)) => {}
            }
        }
        let shard = &self.worker.recorder.borrow().shard;
        if is_cut {
            shard.connections_cut.add(1);
            ConnectionEnd::Lost
        } else {
            shard.connections_ended.add(1);
            ConnectionEnd::Agreed
        }
    }

    /// Bytes in flight will not arrive.
    fn lose_all(&mut self) {
        for index in 0..self.requests.len() {
            if let Some(flight) = self.requests[index].take() {
                self.in_flight -= 1;
                self.take_back(&flight, false);
                let worker = Rc::clone(&self.worker);
                worker.end_request(flight.ticket, Outcome::PeerClosed);
                self.lose(&flight, Outcome::PeerClosed);
            }
        }
    }

    /// Writes what fits of all that is laid out.
    fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        while !self.client.output().is_empty() {
            match Pin::new(&mut *stream).poll_write(context, self.client.output()) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => {
                    self.client.sent(count);
                    self.written += count as u64;
                    self.worker
                        .recorder
                        .borrow()
                        .shard
                        .bytes_sent
                        .add(count as u64);
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
        match Pin::new(stream).poll_flush(context) {
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }
}

/// The number in the header `name`, where it is there once.
pub(super) fn number_in(fields: Fields<'_>, name: &str) -> Option<u64> {
    let mut values = fields
        .iter()
        .filter(|(field, _)| *field == name.as_bytes())
        .map(|(_, value)| number(value));
    match (values.next(), values.next()) {
        (Some(number), None) => number,
        _ => None,
    }
}
