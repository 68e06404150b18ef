//! One HTTP/2 connection, without I/O: bytes in, bytes out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use stillwell_http::h2::{
    BodyLength, H2ErrorCode, H2ResponseBlock, H2StreamFailure, Limits, RequestHead, Server,
    ServerEvent, Stream, StreamTable,
};
use stillwell_plan::serve::Fault;
use stillwell_scope::clock;
use stillwell_units::Moment;
use stillwell_wire::server::{Output, Protocol};

use crate::answers::{Answers, HUGE_HEADER_BYTES, SpecificAnswer};
use crate::outbox::End;
use crate::request::RequestedResponse;
use crate::service::{Reply, Service};

/// One connection and its requests.
#[derive(Debug)]
pub(crate) struct Http2 {
    service: Rc<Service>,
    server: Server,
    requests: StreamTable<Http2Request>,
    /// When each decided request is to be answered.
    waiting: BinaryHeap<Reverse<Due>>,
    /// Bytes after the last frame that are no frame.
    garbage: Vec<u8>,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Due {
    at: Moment,
    stream: Stream,
}

#[derive(Debug)]
struct Http2Request {
    head_only: bool,
    state: Http2RequestState,
}

#[derive(Debug)]
enum Http2RequestState {
    /// It is not whole yet.
    Reading(Option<Box<RequestedResponse>>),
    /// Its answer is not due yet.
    Waiting(Reply),
    /// So much of its body was sent.
    Sending(Body, usize),
    /// Nothing more is sent.
    Silent,
}

#[derive(Debug)]
enum Body {
    Common,
    Specific(Vec<u8>),
    /// Broken off by a reset once it was sent.
    Broken(Vec<u8>),
}

/// An event, without what it borrows.
enum Step {
    Begin(Stream, Http2Request, bool),
    End(Stream),
    Failed(Stream),
    Room(Stream),
    Nothing,
}

impl Http2 {
    pub(crate) fn new(service: &Rc<Service>) -> Self {
        Self {
            service: Rc::clone(service),
            server: Server::new(limits()),
            requests: StreamTable::new(),
            waiting: BinaryHeap::new(),
            garbage: Vec::new(),
            end: None,
        }
    }

    /// Handles the events that `input` completes, and those that are due without it.
    fn handle_events(&mut self, input: &[u8], now: Moment) {
        let mut read = 0;
        while self.end.is_none() {
            let step = match self.server.advance(&input[read..]) {
                Ok((_, None)) => return,
                Ok((taken, Some(event))) => {
                    read += taken;
                    step_of(&self.service, event)
                }
                Err(_) => {
                    self.service.shard.malformed.add(1);
                    self.end = Some(End::CloseEarly);
                    return;
                }
            };
            self.step(step, now);
        }
    }

    fn step(&mut self, step: Step, now: Moment) {
        match step {
            Step::Nothing => {}
            Step::Begin(stream, request, is_waiting) => {
                self.requests.insert(stream, request);
                if is_waiting {
                    // One that is over already waits no more.
                    self.server.send_continue(stream).unwrap_or_default();
                }
            }
            Step::End(stream) => self.decide(stream, now),
            Step::Room(stream) => self.send_body(stream),
            Step::Failed(stream) => {
                if let Some(request) = self.requests.remove(stream) {
                    self.give_up(&request);
                }
                // A connection with an entry here is not idle.
                self.waiting.retain(|Reverse(due)| due.stream != stream);
            }
        }
    }

    fn decide(&mut self, stream: Stream, now: Moment) {
        let Some(request) = self.requests.get_mut(stream) else {
            return;
        };
        let Http2RequestState::Reading(requested) = &mut request.state else {
            return;
        };
        let service = &self.service;
        service.shard.requests.add(1);
        let decision = service.decide(now, requested.take());
        if decision.due <= now {
            return self.answer(stream, decision.reply);
        }
        request.state = Http2RequestState::Waiting(decision.reply);
        self.waiting.push(Reverse(Due {
            at: decision.due,
            stream,
        }));
    }

    fn answer(&mut self, stream: Stream, reply: Reply) {
        let service = Rc::clone(&self.service);
        let answers = &service.site.answers;
        service.site.end_one();
        let status = match reply {
            Reply::Common => {
                self.respond_common(stream);
                answers.common().status
            }
            Reply::Specific(answer) => self.respond_specific(stream, *answer),
            Reply::Fault(Fault::Status(status)) => {
                self.respond_specific(stream, SpecificAnswer::of_status(status))
            }
            Reply::Fault(fault) => {
                service.shard.count_fault(fault);
                return self.misbehave(stream, fault);
            }
        };
        service.shard.count_status(status);
    }

    /// Answers with what is answered as a rule, of which all is laid out.
    fn respond_common(&mut self, stream: Stream) {
        let Some(request) = self.requests.get_mut(stream) else {
            return;
        };
        let service = &self.service;
        let answers = &service.site.answers;
        let has_body = !request.head_only && !answers.common().body.is_empty();
        let length = if has_body {
            BodyLength::Unknown
        } else {
            BodyLength::None
        };
        let mut head = service.common_head.borrow_mut();
        let block = head.at(answers, &mut service.date.borrow_mut(), clock::wall());
        // Nothing follows where it is over already: `Failed` has said so.
        let sent = block.is_some_and(|block| {
            let sent = self.server.respond(stream, block, length);
            sent.is_ok()
        });
        drop(head);
        if !sent || !has_body {
            self.requests.remove(stream);
            return;
        }
        request.state = Http2RequestState::Sending(Body::Common, 0);
        self.send_body(stream);
    }

    /// Answers with `answer`, or with status 500 where it cannot be laid out, and
    /// says which status it was.
    fn respond_specific(&mut self, stream: Stream, answer: SpecificAnswer) -> u16 {
        let status = answer.status;
        if let Ok(block) = answer.block(self.service.site.answers.server()) {
            let length = answer.body.len();
            self.respond(stream, &block, length, Body::Specific(answer.body));
            return status;
        }
        if let Ok(block) = SpecificAnswer::of_status(500).block(None) {
            self.respond(stream, &block, 0, Body::Specific(Vec::new()));
        }
        500
    }

    fn respond(&mut self, stream: Stream, block: &H2ResponseBlock, body_bytes: usize, body: Body) {
        let Some(request) = self.requests.get_mut(stream) else {
            return;
        };
        let length = match (request.head_only, body_bytes as u64) {
            (true, bytes) => BodyLength::Withheld(bytes),
            (false, bytes) => BodyLength::Bytes(bytes),
        };
        let mut date = self.service.date.borrow_mut();
        let extra: &[(&str, &[u8])] = if self.service.site.answers.has_date() {
            &[("date", date.at(clock::wall()).as_bytes())]
        } else {
            &[]
        };
        let sent = self.server.respond_with(stream, block, extra, length);
        // Nothing follows where it is over already: `Failed` has said so.
        if sent.is_err() || request.head_only || body_bytes == 0 {
            self.requests.remove(stream);
            return;
        }
        request.state = Http2RequestState::Sending(body, 0);
        drop(date);
        self.send_body(stream);
    }

    /// Sends as much of a body as there is room for.
    fn send_body(&mut self, stream: Stream) {
        let Some(request) = self.requests.get_mut(stream) else {
            return;
        };
        let Http2RequestState::Sending(body, sent) = &mut request.state else {
            return;
        };
        let (bytes, is_whole) = match body {
            Body::Common => (self.service.site.answers.common().body.as_slice(), true),
            Body::Specific(bytes) => (bytes.as_slice(), true),
            Body::Broken(bytes) => (bytes.as_slice(), false),
        };
        let taken = self.server.send_body(stream, &bytes[*sent..], is_whole);
        *sent += taken.unwrap_or(0);
        if taken.is_ok() && *sent < bytes.len() {
            return;
        }
        if taken.is_ok() && !is_whole {
            self.server.reset(stream, H2ErrorCode::INTERNAL_ERROR);
        }
        self.requests.remove(stream);
    }

    fn misbehave(&mut self, stream: Stream, fault: Fault) {
        let Some(request) = self.requests.get_mut(stream) else {
            return;
        };
        request.state = Http2RequestState::Silent;
        match fault {
            Fault::Status(_) | Fault::Silence => {}
            Fault::Close => self.end = Some(End::CloseEarly),
            Fault::Reset => {
                self.server.reset(stream, H2ErrorCode::INTERNAL_ERROR);
                self.requests.remove(stream);
            }
            Fault::Garbage => {
                Answers::write_garbage(&mut self.garbage);
                self.end = Some(End::CloseEarly);
            }
            Fault::HugeHead => {
                let mut answer = SpecificAnswer::of_status(200);
                let value = "a".repeat(HUGE_HEADER_BYTES);
                answer.headers.push(("x-huge".to_owned(), value));
                self.respond_specific(stream, answer);
            }
            Fault::Truncate | Fault::Stall => self.break_off(stream, fault),
        }
    }

    /// Sends half of a body; what follows is a reset, or nothing ever.
    fn break_off(&mut self, stream: Stream, fault: Fault) {
        let (length, half) = self.service.site.answers.broken_body();
        let Ok(block) = SpecificAnswer::of_status(200).block(None) else {
            return;
        };
        let Some(request) = self.requests.get_mut(stream) else {
            return;
        };
        let body = BodyLength::Bytes(length as u64);
        // Nothing follows where it is over already.
        let begun = self.server.respond(stream, &block, body);
        if begun.is_ok() && fault == Fault::Truncate {
            request.state = Http2RequestState::Sending(Body::Broken(half), 0);
            self.send_body(stream);
        } else if begun.is_ok() {
            self.server
                .send_body(stream, &half, false)
                .unwrap_or_default();
        }
    }

    /// A request that comes to no end.
    fn give_up(&self, request: &Http2Request) {
        if let Http2RequestState::Waiting(_) = request.state {
            self.service.site.end_one();
            self.service.shard.abandoned.add(1);
        }
    }
}

/// The limits of a connection. Clients whose requests time out may cancel all of them: resets have
/// no limit. They hold no memory: a connection has 128 streams at most, a reset only ends one, and
/// nothing more is read before the output is sent.
fn limits() -> Limits {
    Limits {
        resets_max: u32::MAX,
        ..Limits::default()
    }
}

impl Output for Http2 {
    fn fill(&mut self, now: Moment) {
        self.take(&[], now);
        while self.end.is_none()
            && let Some(Reverse(due)) = self.waiting.peek().copied()
            && due.at <= now
        {
            self.waiting.pop();
            let Some(request) = self.requests.get_mut(due.stream) else {
                continue;
            };
            match std::mem::replace(&mut request.state, Http2RequestState::Silent) {
                Http2RequestState::Waiting(reply) => self.answer(due.stream, reply),
                other => request.state = other,
            }
        }
    }

    fn unsent(&self) -> &[u8] {
        match self.server.output() {
            [] => &self.garbage,
            output => output,
        }
    }

    fn advance(&mut self, length: usize) {
        self.service.shard.sent_bytes.add(length as u64);
        if self.server.output().is_empty() {
            self.garbage.drain(..length);
        } else {
            self.server.sent(length);
        }
    }
}

impl Protocol for Http2 {
    type End = End;

    fn take(&mut self, input: &[u8], now: Moment) {
        self.service.shard.received_bytes.add(input.len() as u64);
        self.handle_events(input, now);
        let malformed = self.server.take_malformed_requests();
        self.service.shard.malformed.add(malformed);
    }

    fn due(&self) -> Option<Moment> {
        self.waiting.peek().map(|Reverse(due)| due.at)
    }

    fn end(&self) -> Option<End> {
        self.end.filter(|_| self.unsent().is_empty())
    }

    fn finish(&mut self) {
        if self.end.is_none() && self.server.open_streams() == 0 && self.server.finish().is_err() {
            self.service.shard.malformed.add(1);
        }
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        for (_, request) in self.requests.iter() {
            self.give_up(request);
        }
    }
}

fn step_of(service: &Service, event: ServerEvent<'_>) -> Step {
    match event {
        ServerEvent::Head { stream, head } => {
            let expect = head.fields.value("expect");
            let is_waiting =
                expect.is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
            Step::Begin(stream, Http2Request::of(&head, service), is_waiting)
        }
        ServerEvent::Body { bytes, .. } => {
            service.shard.body_bytes.add(bytes.len() as u64);
            Step::Nothing
        }
        ServerEvent::End { stream, .. } => Step::End(stream),
        ServerEvent::Failed { stream, cause } => {
            let is_malformed = matches!(
                cause,
                H2StreamFailure::Malformed { .. } | H2StreamFailure::HeadersTooLarge
            );
            service.shard.malformed.add(u64::from(is_malformed));
            Step::Failed(stream)
        }
        ServerEvent::Room { stream } => Step::Room(stream),
    }
}

impl Http2Request {
    fn of(head: &RequestHead<'_>, service: &Service) -> Self {
        Self {
            head_only: head.method == "HEAD",
            state: Http2RequestState::Reading(service.requested("HTTP/2", || head.fields.iter())),
        }
    }
}
