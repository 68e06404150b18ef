//! One connection of HTTP/3, and what is on its way there.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use rustc_hash::FxHashMap;
use stillwell_http::h3::{
    BodyLength, H3Connection, H3ConnectionError, H3ErrorCode, H3MessageError, H3MessageReader,
    H3ResponseEvent, H3StreamFailure, UniStream, write_data_head,
};
use stillwell_metric::Outcome;
use stillwell_stamp::{HEADER, STAMP_WIDTH};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::quic::{Line, QuicStream, StreamRead};
use stillwell_worker::Marks;

use super::super::answer::ResponseSummary;
use super::super::connection::ConnectionEnd;
use super::super::http2::number_in;
use super::super::pool::Pool;
use super::super::recorder::{Answer, Take, Ticket};
use super::super::trace::{RequestTrace, TracedRequest, write_traced};
use super::super::worker::Worker;

/// The longest head of an answer that is taken.
const SECTION_BYTES_MAX: usize = 64 << 10;

/// A request on its way.
#[derive(Debug)]
struct Http3InFlight {
    ticket: Ticket,
    sent: Moment,
    first_byte: Option<Moment>,
    status: u16,
    head_bytes: u64,
    body_bytes: u64,
    /// The number in the header that is watched.
    origin: Option<u64>,
    /// Rare parts are elsewhere: a flight is moved often.
    trace: Option<Box<RequestTrace>>,
    reader: H3MessageReader,
    /// Bytes of it that are still to be sent.
    rest: Bytes,
    /// It requests a tunnel, through which nothing is sent.
    is_connect: bool,
    /// Of a block, how long it is, and what stamps it.
    body_whole: usize,
    marks: Option<Box<Marks>>,
}

/// One connection and what is on its way there.
pub(super) struct Http3Session {
    worker: Rc<Worker>,
    pool: Rc<Pool>,
    slot: usize,
    http: H3Connection,
    /// The names of its streams are ours: no peer can choose colliding ones.
    requests: FxHashMap<QuicStream, Http3InFlight>,
    /// Streams for the next requests, opened in advance: the server admits these.
    opened: VecDeque<QuicStream>,
    /// Bytes of our control stream that are still to be sent.
    control: Option<(QuicStream, Bytes)>,
    unis: Vec<(QuicStream, UniStream)>,
    /// Number of requests that the pool may hand over.
    pub(super) declared: usize,
    /// Requests that may still begin here.
    left: u64,
    streams: usize,
    /// There is nothing more to take.
    is_done: bool,
    /// True if a request was sent here; true if one was answered.
    pub(super) has_begun: bool,
    pub(super) is_proven: bool,
    /// True if it admitted no request at the last check.
    pub(super) was_blocked: bool,
    /// Requests that the server did not begin.
    pub(super) returned: Vec<Ticket>,
    /// Of blocks, what stamps those that are not on their way: each has an order of its
    /// own.
    pub(super) marks: Vec<Marks>,
    /// Time left for the most urgent request.
    pub(super) request_timeout: Nanos,
}

impl Http3Session {
    pub(super) fn new(
        worker: &Rc<Worker>,
        pool: &Rc<Pool>,
        slot: usize,
        marks: Vec<Marks>,
        line: &mut Line,
    ) -> Self {
        let connecting = &worker.client.connecting;
        let streams = connecting.streams as usize;
        let http = H3Connection::client(SECTION_BYTES_MAX);
        // A peer that allows no control stream has no settings from us.
        let control = line.open_uni();
        let mut session = Self {
            control: control.map(|stream| (stream, http.opening().into())),
            http,
            worker: Rc::clone(worker),
            pool: Rc::clone(pool),
            slot,
            requests: FxHashMap::default(),
            opened: VecDeque::new(),
            unis: Vec::new(),
            declared: 0,
            left: connecting.requests_max.unwrap_or(u64::MAX),
            streams,
            is_done: false,
            has_begun: false,
            is_proven: false,
            was_blocked: false,
            returned: Vec::new(),
            marks,
            request_timeout: worker.request_timeout(pool.endpoint),
        };
        session.send_control(line);
        session
    }

    /// Number of requests in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn has_room(&mut self, line: &mut Line) -> bool {
        self.room(line, 1) > 0
    }

    /// Number of requests that can begin now, `most` at most. Opens streams for these.
    fn room(&mut self, line: &mut Line, most: usize) -> usize {
        if self.http.going_away().is_some() {
            return 0;
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let streams = self.streams.saturating_sub(self.in_flight());
        let most = most.min(streams).min(left);
        while self.opened.len() < most
            && let Some(stream) = line.open_bidi()
        {
            self.opened.push_back(stream);
        }
        most.min(self.opened.len())
    }

    /// Returns true if no more requests will begin here.
    pub(super) fn is_closing(&self) -> bool {
        self.left == 0 || self.http.going_away().is_some()
    }

    /// Withdraws the declared places for which there is no room any more. A place that was
    /// assigned a request is declared until the request is accepted.
    pub(super) fn withdraw_surplus(&mut self, line: &mut Line) {
        let room = self.room(line, self.declared);
        let surplus = self.declared - room;
        if surplus > 0 {
            let mut slots = self.pool.slots.borrow_mut();
            self.declared -= slots.withdraw_places(self.slot, surplus);
        }
    }

    /// Returns true if the server admits no request although none is in flight.
    pub(super) fn is_blocked(&mut self, line: &mut Line) -> bool {
        self.in_flight() == 0 && !self.is_closing() && !self.has_room(line)
    }

    /// Takes what is due as far as there is room, and reports the remaining requests to the
    /// pool.
    pub(super) fn take(&mut self, line: &mut Line, now: Moment) {
        self.is_done |= self.worker.is_ending();
        while !self.is_done && self.room(line, self.declared + 1) > self.declared {
            match self.pool.take_next(&self.worker, now) {
                Take::Now(ticket) => self.send(line, ticket, now),
                Take::Later(_) | Take::Starved => {
                    self.declared += 1;
                    self.pool.slots.borrow_mut().free(self.slot, true);
                }
                Take::Never => self.is_done = true,
            }
        }
    }

    /// Reason to close the connection now, if any.
    pub(super) fn end(&self) -> Option<ConnectionEnd> {
        if self.in_flight() > 0 {
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
        self.http.going_away().map(|_| {
            self.worker.recorder.borrow().shard.connections_ended.add(1);
            if self.has_begun {
                ConnectionEnd::Agreed
            } else {
                ConnectionEnd::Unused(Outcome::PeerClosed)
            }
        })
    }

    pub(super) fn send(&mut self, line: &mut Line, mut ticket: Ticket, now: Moment) {
        let worker = Rc::clone(&self.worker);
        let request = worker.request(self.pool.endpoint, ticket);
        let trace = worker.next_trace().map(Box::new);
        let (Some(stream), Some(http3)) = (self.opened.pop_front(), request.http3()) else {
            // Looked at beforehand: there was room.
            return worker.end_request(ticket, Outcome::SendFailed);
        };
        let (mut marks, mut body_whole) = (None, 0);
        let whole = if let Some((blocks, block)) = worker.block(ticket) {
            marks = self.marks.pop().map(Box::new);
            let mut sending = blocks.sending((&mut ticket, now), &block, marks.as_deref_mut());
            let body = sending.rest();
            body_whole = body.len();
            let head_bytes = http3.block.bytes_max() + HEADER.len() + 2 * STAMP_WIDTH;
            let mut whole = Vec::with_capacity(head_bytes + body.len());
            let length = BodyLength::Bytes(body.len() as u64);
            let stamp = sending.header().map(|stamp| (HEADER, stamp.as_slice()));
            http3.block.write(stamp.as_slice(), length, &mut whole);
            write_data_head(body.len(), &mut whole);
            whole.extend_from_slice(body);
            sending.wrote(body.len());
            Bytes::from(whole)
        } else if let Some(trace) = &trace {
            let mut whole = Vec::with_capacity(http3.whole.len() + http3.block.bytes_max());
            write_traced(&http3.block, trace, http3.length, &mut whole);
            whole.extend_from_slice(&http3.whole[http3.head_bytes..]);
            Bytes::from(whole)
        } else {
            http3.whole.clone()
        };
        if !worker.sends_blocks() {
            let bytes = worker.blocks().map_or(0, |_| http3.whole.len());
            worker.sent(&mut ticket, now, bytes);
        }
        let reader = http3.block.answer_reader();
        let is_connect = http3.block.is_connect();
        self.left -= 1;
        self.has_begun = true;
        let flight = Http3InFlight {
            ticket,
            sent: now,
            first_byte: None,
            status: 0,
            head_bytes: 0,
            body_bytes: 0,
            origin: None,
            trace,
            reader,
            rest: whole,
            is_connect,
            body_whole,
            marks,
        };
        self.requests.insert(stream, flight);
        self.send_more(line, stream);
    }

    /// Goes on with what has got room.
    pub(super) fn send_more(&mut self, line: &mut Line, stream: QuicStream) {
        let Some(flight) = self.requests.get_mut(&stream) else {
            return self.send_control(line);
        };
        let before = flight.rest.len();
        // An event reports a stopped stream.
        line.write(stream, &mut flight.rest);
        let went = before - flight.rest.len();
        let recorder = self.worker.recorder.borrow();
        recorder.shard.bytes_sent.add(went as u64);
        if flight.rest.is_empty() {
            line.finish(stream);
        }
    }

    fn send_control(&mut self, line: &mut Line) {
        if let Some((stream, rest)) = &mut self.control {
            let before = rest.len();
            line.write(*stream, rest);
            let went = (before - rest.len()) as u64;
            self.worker.recorder.borrow().shard.bytes_sent.add(went);
        }
    }

    /// The server wants no more of a request; it may answer all the same.
    pub(super) fn stopped(&mut self, line: &mut Line, stream: QuicStream, code: u64) {
        if let Some(flight) = self.requests.get_mut(&stream) {
            flight.rest = Bytes::new();
        }
        line.reset(stream, code);
    }

    /// The server has opened streams.
    pub(super) fn accept(&mut self, line: &mut Line) -> Result<(), H3ConnectionError> {
        while let Some(stream) = line.accept_uni() {
            self.unis.push((stream, UniStream::default()));
            self.read_uni(line, stream)?;
        }
        Ok(())
    }

    fn read_uni(&mut self, line: &mut Line, stream: QuicStream) -> Result<(), H3ConnectionError> {
        let Some(place) = self.unis.iter().position(|(open, _)| *open == stream) else {
            return Ok(());
        };
        let (http, uni) = (&mut self.http, &mut self.unis[place].1);
        let (mut read_result, mut bytes) = (Ok(true), 0);
        let read = line.read(stream, |input| {
            bytes += input.len() as u64;
            read_result = http.read_uni(uni, input);
            matches!(read_result, Ok(true))
        });
        self.worker
            .recorder
            .borrow()
            .shard
            .bytes_received
            .add(bytes);
        if !read_result? {
            line.stop(stream, H3ErrorCode::STREAM_CREATION_ERROR.0);
            self.unis.swap_remove(place);
        } else if read != StreamRead::Open {
            self.http.end_uni(&self.unis[place].1)?;
            self.unis.swap_remove(place);
        }
        Ok(())
    }

    /// Takes what has come of a stream. An error ends the connection.
    pub(super) fn read(
        &mut self,
        line: &mut Line,
        stream: QuicStream,
        now: Moment,
    ) -> Result<(), H3ConnectionError> {
        let Some(flight) = self.requests.get_mut(&stream) else {
            return self.read_uni(line, stream);
        };
        let worker = &self.worker;
        let (http, mut failure, mut bytes) = (&mut self.http, None, 0);
        let read = line.read(stream, |input| {
            bytes += input.len() as u64;
            failure = digest(http, flight, input, worker, now).err();
            failure.is_none()
        });
        if read == StreamRead::Finished && failure.is_none() {
            failure = flight.reader.finish().err();
        }
        self.worker
            .recorder
            .borrow()
            .shard
            .bytes_received
            .add(bytes);
        let is_tunnel = flight.is_connect && (200..300).contains(&flight.status);
        match (failure, read) {
            (None, StreamRead::Open) if is_tunnel => {
                line.stop(stream, H3ErrorCode::NO_ERROR.0);
                self.answered(line, stream, now);
            }
            (Some(H3MessageError::Connection(error)), _) => return Err(error),
            (Some(H3MessageError::Stream(failure)), _) => {
                self.give_up(line, stream, failure.code());
                self.fail(stream, Http3Failure::Malformed(failure));
            }
            (None, StreamRead::Finished) => self.answered(line, stream, now),
            (None, StreamRead::Reset(code)) => {
                let failure = match H3ErrorCode(code) {
                    H3ErrorCode::REQUEST_REJECTED => Http3Failure::Rejected,
                    _ => Http3Failure::Reset,
                };
                line.reset(stream, H3ErrorCode::REQUEST_CANCELLED.0);
                self.fail(stream, failure);
            }
            (None, StreamRead::Gone) => self.fail(stream, Http3Failure::Reset),
            (None, StreamRead::Open) => {}
        }
        Ok(())
    }

    /// A server that goes away says which requests it has not begun.
    pub(super) fn reject_what_is_not_taken(&mut self, line: &mut Line) {
        let Some(from) = self.http.going_away() else {
            return;
        };
        let is_rejected = |stream: &&QuicStream| stream.number() >= from;
        while let Some(stream) = self.requests.keys().find(is_rejected).copied() {
            self.give_up(line, stream, H3ErrorCode::REQUEST_CANCELLED);
            self.fail(stream, Http3Failure::Rejected);
        }
    }

    fn give_up(&self, line: &mut Line, stream: QuicStream, code: H3ErrorCode) {
        line.stop(stream, code.0);
        line.reset(stream, code.0);
    }

    fn answered(&mut self, line: &mut Line, stream: QuicStream, now: Moment) {
        let Some(mut flight) = self.requests.remove(&stream) else {
            return;
        };
        self.marks.extend(flight.marks.take().map(|marks| *marks));
        if !flight.rest.is_empty() {
            // It was answered before it was whole.
            line.reset(stream, H3ErrorCode::NO_ERROR.0);
        }
        let answer = Answer {
            whole: ResponseSummary {
                status: flight.status,
                keep_alive: true,
                head_bytes: flight.head_bytes,
                body_bytes: flight.body_bytes,
            },
            sent: flight.ticket.sent.unwrap_or(flight.sent),
            first_byte: flight.first_byte.unwrap_or(now),
            end: now,
        };
        self.is_proven = true;
        self.worker.origin(flight.ticket, flight.origin);
        self.worker.answered(flight.ticket, &answer);
        let endpoint = self.pool.endpoint;
        self.worker.hand_over(flight.trace.as_deref(), || {
            let request = self.worker.request(endpoint, flight.ticket);
            TracedRequest::new(endpoint, &request, flight.ticket, flight.sent, Ok(&answer))
        });
    }

    fn fail(&mut self, stream: QuicStream, failure: Http3Failure) {
        let Some(mut flight) = self.requests.remove(&stream) else {
            return;
        };
        let is_away = self.http.going_away().is_some();
        let outcome = match failure {
            Http3Failure::Malformed(failure) => self.worker.malformed(&failure),
            // Another connection may take it; a peer that takes none and gives no
            // answer would keep it for ever.
            Http3Failure::Rejected if is_away && self.is_proven => {
                self.take_back(&mut flight, 0);
                return self.returned.push(flight.ticket);
            }
            Http3Failure::Rejected | Http3Failure::Reset => Outcome::PeerClosed,
        };
        self.lose(flight, outcome);
    }

    /// A block will not be answered: of its body, only so many bytes were ever sent.
    fn take_back(&mut self, flight: &mut Http3InFlight, bytes: usize) {
        let marks = flight.marks.take();
        if let (Some(blocks), Some(marks)) = (self.worker.blocks(), &marks) {
            blocks.take_back(flight.ticket, marks, bytes);
        }
        self.marks.extend(marks.map(|marks| *marks));
    }

    /// A request ends without an answer.
    fn lose(&mut self, mut flight: Http3InFlight, outcome: Outcome) {
        // The head goes first.
        let sent = flight.body_whole.saturating_sub(flight.rest.len());
        self.take_back(&mut flight, sent);
        self.worker.end_request(flight.ticket, outcome);
        let endpoint = self.pool.endpoint;
        self.worker.hand_over(flight.trace.as_deref(), || {
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

    /// Bytes in flight will not arrive.
    pub(super) fn lose_all(&mut self, outcome: Outcome) {
        for (_, flight) in std::mem::take(&mut self.requests) {
            self.lose(flight, outcome);
        }
    }

    /// Gives up what has taken too long; gives when the next one will have.
    pub(super) fn expire(&mut self, line: &mut Line, now: Moment) -> Moment {
        let timeout = self.request_timeout;
        let is_over = |flight: &Http3InFlight| flight.sent + timeout <= now;
        while let Some(stream) = self
            .requests
            .iter()
            .find(|(_, requests_entry)| is_over(requests_entry))
        {
            let stream = *stream.0;
            self.give_up(line, stream, H3ErrorCode::REQUEST_CANCELLED);
            if let Some(flight) = self.requests.remove(&stream) {
                self.lose(flight, Outcome::TimedOut);
            }
        }
        let deadlines = self.requests.values().map(|flight| flight.sent + timeout);
        deadlines.min().unwrap_or(now + timeout)
    }
}

/// Reason if there will be no answer.
enum Http3Failure {
    Malformed(H3StreamFailure),
    /// The server has not begun with it.
    Rejected,
    Reset,
}

/// Takes the next part of an answer.
fn digest(
    http: &mut H3Connection,
    flight: &mut Http3InFlight,
    input: &[u8],
    worker: &Worker,
    now: Moment,
) -> Result<(), H3MessageError> {
    let mut read = 0;
    loop {
        let (taken, event) = http.read_response(&mut flight.reader, &input[read..])?;
        read += taken;
        match event {
            None => return Ok(()),
            Some(H3ResponseEvent::Head(head)) => {
                flight.status = head.status;
                flight.head_bytes = head.fields.bytes_len() as u64;
                flight.first_byte = Some(now);
                let watched = worker.latency_header.as_deref();
                flight.origin = watched.and_then(|name| number_in(head.fields, name));
                worker.receive(head.status, head.fields.iter());
            }
            Some(H3ResponseEvent::Body(bytes)) => flight.body_bytes += bytes.len() as u64,
            Some(H3ResponseEvent::Trailers(_)) => {}
        }
    }
}
