//! One HTTP/3 connection: what comes on its streams, and what is answered.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::rc::Rc;

use stillwell_http::h3::{
    BodyLength, H3Connection, H3ErrorCode, H3MessageError, H3MessageReader, H3RequestEvent,
    H3ResponseBlock, RequestHead, UniStream, write_data_head,
};
use stillwell_plan::serve::Fault;
use stillwell_scope::clock;
use stillwell_units::Moment;
use stillwell_wire::quic::{Line, QuicEvent, QuicStream, StreamRead};

use crate::answers::{Answers, HUGE_HEADER_BYTES, SpecificAnswer};
use crate::request::RequestedResponse;
use crate::sending::Sending;
use crate::service::{Reply, Service};

/// The longest head of a request that is taken.
const SECTION_BYTES_MAX: usize = 64 << 10;

/// Requests that a client may have under way on one connection.
pub(crate) const STREAMS_MAX: u32 = 128;

/// One connection and its requests.
#[derive(Debug)]
pub(crate) struct Http3 {
    service: Rc<Service>,
    http: H3Connection,
    requests: HashMap<QuicStream, Http3Request>,
    unis: Vec<(QuicStream, UniStream)>,
    control: Option<(QuicStream, Sending)>,
    /// When each decided request is to be answered.
    waiting: BinaryHeap<Reverse<(Moment, QuicStream)>>,
    end: Option<H3ErrorCode>,
}

#[derive(Debug)]
struct Http3Request {
    head_only: bool,
    reader: H3MessageReader,
    state: Http3RequestState,
}

#[derive(Debug)]
enum Http3RequestState {
    /// It is not whole yet.
    Reading(Option<Box<RequestedResponse>>),
    /// Its answer is not due yet.
    Waiting(Reply),
    /// Its answer is on its way.
    Sending(Sending),
    /// Nothing more is sent.
    Silent,
}

impl Http3 {
    pub(crate) fn new(service: &Rc<Service>) -> Self {
        Self {
            service: Rc::clone(service),
            http: H3Connection::server(SECTION_BYTES_MAX),
            requests: HashMap::new(),
            unis: Vec::new(),
            control: None,
            waiting: BinaryHeap::new(),
            end: None,
        }
    }

    /// Returns the reason why the connection is to be closed, once what was answered is sent.
    pub(crate) const fn end(&self) -> Option<H3ErrorCode> {
        self.end
    }

    /// Handles an event. Returns true if the connection goes on.
    pub(crate) fn handle_event(&mut self, line: &mut Line, event: &QuicEvent, now: Moment) -> bool {
        let handled = match event {
            QuicEvent::Connected => {
                self.send_settings(line);
                Ok(())
            }
            QuicEvent::Opened => self.accept(line, now),
            QuicEvent::Readable(stream) => self.read(line, *stream, now),
            QuicEvent::Writable(stream) => {
                self.send_more(line, *stream);
                Ok(())
            }
            QuicEvent::Stopped(stream, code) => {
                line.reset(*stream, *code);
                // A stream counts against the client's limit until its request has ended or is
                // refused. The control stream has no request.
                if self.requests.contains_key(stream) {
                    line.stop(*stream, H3ErrorCode::REQUEST_CANCELLED.0);
                }
                self.drop_request(*stream);
                Ok(())
            }
            QuicEvent::Available => Ok(()),
            QuicEvent::Lost(_) => return false,
        };
        if let Err(code) = handled {
            self.service.shard.malformed.add(1);
            self.end = Some(code);
        }
        self.end.is_none()
    }

    /// When the next answer is due.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.waiting.peek().map(|Reverse((at, _))| *at)
    }

    /// Answers what is due `now`. Whether the connection goes on.
    pub(crate) fn fill(&mut self, line: &mut Line, now: Moment) -> bool {
        while self.end.is_none()
            && let Some(Reverse((at, stream))) = self.waiting.peek().copied()
            && at <= now
        {
            self.waiting.pop();
            let Some(request) = self.requests.get_mut(&stream) else {
                continue;
            };
            match std::mem::replace(&mut request.state, Http3RequestState::Silent) {
                Http3RequestState::Waiting(reply) => self.answer(line, stream, reply),
                other => request.state = other,
            }
        }
        self.end.is_none()
    }

    fn send_settings(&mut self, line: &mut Line) {
        if let Some(stream) = line.open_uni() {
            let mut sending = Sending::open(self.http.opening());
            sending.send(line, stream, &self.service.shard.sent_bytes);
            self.control = Some((stream, sending));
        }
    }

    fn accept(&mut self, line: &mut Line, now: Moment) -> Result<(), H3ErrorCode> {
        while let Some(stream) = line.accept_uni() {
            self.unis.push((stream, UniStream::default()));
            self.read_uni(line, stream)?;
        }
        while let Some(stream) = line.accept_bidi() {
            let request = Http3Request {
                head_only: false,
                reader: H3MessageReader::request(),
                state: Http3RequestState::Reading(None),
            };
            self.requests.insert(stream, request);
            self.read(line, stream, now)?;
        }
        Ok(())
    }

    fn read_uni(&mut self, line: &mut Line, stream: QuicStream) -> Result<(), H3ErrorCode> {
        let Some(place) = self.unis.iter().position(|(uni, _)| *uni == stream) else {
            return Ok(());
        };
        let (http, uni) = (&mut self.http, &mut self.unis[place].1);
        let received = &self.service.shard.received_bytes;
        let mut result = Ok(true);
        let read = line.read(stream, |input| {
            received.add(input.len() as u64);
            result = http.read_uni(uni, input);
            matches!(result, Ok(true))
        });
        if !result.map_err(|error| error.code())? {
            line.stop(stream, H3ErrorCode::STREAM_CREATION_ERROR.0);
            self.unis.swap_remove(place);
        } else if read != StreamRead::Open {
            let uni = self.unis.swap_remove(place).1;
            self.http.end_uni(&uni).map_err(|error| error.code())?;
        }
        Ok(())
    }

    /// Takes what has come of a stream. An error ends the connection.
    fn read(
        &mut self,
        line: &mut Line,
        stream: QuicStream,
        now: Moment,
    ) -> Result<(), H3ErrorCode> {
        let Some(request) = self.requests.get_mut(&stream) else {
            return self.read_uni(line, stream);
        };
        if !matches!(request.state, Http3RequestState::Reading(_)) {
            // It was read to its end, and is still being answered.
            return Ok(());
        }
        let (http, service) = (&mut self.http, &self.service);
        let (mut failure, mut expects) = (None, false);
        let read = line.read(stream, |input| {
            service.shard.received_bytes.add(input.len() as u64);
            match request.digest(http, service, input) {
                Ok(is_waiting) => expects |= is_waiting,
                Err(error) => failure = Some(error),
            }
            failure.is_none()
        });
        if read == StreamRead::Finished && failure.is_none() {
            failure = request.reader.finish().err();
        }
        match (failure, read) {
            (Some(H3MessageError::Connection(error)), _) => return Err(error.code()),
            (Some(H3MessageError::Stream(failure)), _) => {
                self.service.shard.malformed.add(1);
                line.stop(stream, failure.code().0);
                line.reset(stream, failure.code().0);
                self.drop_request(stream);
            }
            (None, StreamRead::Finished) => self.decide(line, stream, now),
            (None, StreamRead::Reset(_) | StreamRead::Gone) => {
                line.reset(stream, H3ErrorCode::REQUEST_CANCELLED.0);
                self.drop_request(stream);
            }
            (None, StreamRead::Open) if expects => {
                let mut bytes = Vec::new();
                H3ResponseBlock::write_continue(&mut bytes);
                let mut sending = Sending::open(bytes);
                sending.send(line, stream, &self.service.shard.sent_bytes);
            }
            (None, StreamRead::Open) => {}
        }
        Ok(())
    }

    /// A request is whole.
    fn decide(&mut self, line: &mut Line, stream: QuicStream, now: Moment) {
        let Some(request) = self.requests.get_mut(&stream) else {
            return;
        };
        let Http3RequestState::Reading(requested) = &mut request.state else {
            return;
        };
        let service = &self.service;
        service.shard.requests.add(1);
        let decision = service.decide(now, requested.take());
        if decision.due <= now {
            return self.answer(line, stream, decision.reply);
        }
        request.state = Http3RequestState::Waiting(decision.reply);
        self.waiting.push(Reverse((decision.due, stream)));
    }

    fn answer(&mut self, line: &mut Line, stream: QuicStream, reply: Reply) {
        let service = Rc::clone(&self.service);
        service.site.end_one();
        let status = match reply {
            Reply::Common => {
                let head_only = self
                    .requests
                    .get(&stream)
                    .is_some_and(|request| request.head_only);
                let (answers, date) = (&service.site.answers, &service.date);
                let common = service.common_http3.borrow_mut().at(
                    answers,
                    &mut date.borrow_mut(),
                    clock::wall(),
                    head_only,
                );
                self.send(line, stream, Sending::whole(common));
                answers.common().status
            }
            Reply::Specific(answer) => self.respond(line, stream, &answer),
            Reply::Fault(Fault::Status(status)) => {
                self.respond(line, stream, &SpecificAnswer::of_status(status))
            }
            Reply::Fault(fault) => {
                service.shard.count_fault(fault);
                return self.misbehave(line, stream, fault);
            }
        };
        service.shard.count_status(status);
    }

    /// Answers with `answer`, or with status 500 where it cannot be laid out, and
    /// says which status it was.
    fn respond(&mut self, line: &mut Line, stream: QuicStream, answer: &SpecificAnswer) -> u16 {
        let head_only = self
            .requests
            .get(&stream)
            .is_some_and(|request| request.head_only);
        let has_date = self.service.site.answers.has_date();
        let date = &self.service.date;
        let date = has_date.then(|| date.borrow_mut().at(clock::wall()).to_owned());
        let error = SpecificAnswer::of_status(500);
        let laid = answer.lay_http3(
            self.service.site.answers.server(),
            date.as_deref(),
            head_only,
        );
        let (bytes, status) = match laid {
            Ok(bytes) => (bytes, answer.status),
            Err(_) => (
                error.lay_http3(None, None, head_only).unwrap_or_default(),
                500,
            ),
        };
        self.send(line, stream, Sending::whole(bytes.into()));
        status
    }

    fn send(&mut self, line: &mut Line, stream: QuicStream, sending: Sending) {
        if let Some(request) = self.requests.get_mut(&stream) {
            request.state = Http3RequestState::Sending(sending);
            self.send_more(line, stream);
        }
    }

    /// Sends as much of an answer as there is room for.
    fn send_more(&mut self, line: &mut Line, stream: QuicStream) {
        let sent_bytes = &self.service.shard.sent_bytes;
        let Some(request) = self.requests.get_mut(&stream) else {
            if let Some((control, sending)) = &mut self.control
                && *control == stream
            {
                sending.send(line, stream, sent_bytes);
            }
            return;
        };
        let Http3RequestState::Sending(sending) = &mut request.state else {
            return;
        };
        if sending.send(line, stream, sent_bytes) {
            self.requests.remove(&stream);
        }
    }

    fn misbehave(&mut self, line: &mut Line, stream: QuicStream, fault: Fault) {
        match fault {
            // It stays, and says nothing.
            Fault::Status(_) | Fault::Silence => {}
            Fault::Close => self.end = Some(H3ErrorCode::NO_ERROR),
            Fault::Reset => {
                line.reset(stream, H3ErrorCode::INTERNAL_ERROR.0);
                self.requests.remove(&stream);
            }
            Fault::Garbage => {
                let mut garbage = Vec::new();
                Answers::write_garbage(&mut garbage);
                self.send(line, stream, Sending::whole(garbage.into()));
            }
            Fault::HugeHead => {
                let mut answer = SpecificAnswer::of_status(200);
                let value = "a".repeat(HUGE_HEADER_BYTES);
                answer.headers.push(("x-huge".to_owned(), value));
                self.respond(line, stream, &answer);
            }
            Fault::Truncate | Fault::Stall => {
                let (length, half) = self.service.site.answers.broken_body();
                let mut bytes = Vec::new();
                if let Ok(block) = H3ResponseBlock::new(200, &[]) {
                    block.write(&[], BodyLength::Bytes(length as u64), &mut bytes);
                    write_data_head(half.len(), &mut bytes);
                    bytes.extend_from_slice(&half);
                }
                // A reset discards everything that the client has not read yet.
                let sending = match fault {
                    Fault::Truncate => Sending::whole(bytes.into()),
                    _ => Sending::open(bytes),
                };
                self.send(line, stream, sending);
            }
        }
        if let Some(request) = self.requests.get_mut(&stream)
            && let Http3RequestState::Reading(_) | Http3RequestState::Waiting(_) = request.state
        {
            request.state = Http3RequestState::Silent;
        }
    }

    fn drop_request(&mut self, stream: QuicStream) {
        if let Some(request) = self.requests.remove(&stream) {
            self.give_up(&request);
            self.waiting.retain(|Reverse((_, due))| *due != stream);
        }
    }

    /// A request that comes to no end.
    fn give_up(&self, request: &Http3Request) {
        if let Http3RequestState::Waiting(_) = request.state {
            self.service.site.end_one();
            self.service.shard.abandoned.add(1);
        }
    }
}

impl Drop for Http3 {
    fn drop(&mut self) {
        for request in self.requests.values() {
            self.give_up(request);
        }
    }
}

impl Http3Request {
    /// Takes the next part. Returns true if its client waits for a `100 Continue`.
    fn digest(
        &mut self,
        http: &mut H3Connection,
        service: &Service,
        input: &[u8],
    ) -> Result<bool, H3MessageError> {
        let (mut read, mut expects) = (0, false);
        loop {
            let (taken, event) = http.read_request(&mut self.reader, &input[read..])?;
            read += taken;
            match event {
                None => return Ok(expects),
                Some(H3RequestEvent::Head(head)) => {
                    let expect = head.fields.value("expect");
                    expects |=
                        expect.is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
                    self.begin(&head, service);
                }
                Some(H3RequestEvent::Body(bytes)) => {
                    service.shard.body_bytes.add(bytes.len() as u64);
                }
                Some(H3RequestEvent::Trailers(_)) => {}
            }
        }
    }

    fn begin(&mut self, head: &RequestHead<'_>, service: &Service) {
        self.head_only = head.method == "HEAD";
        self.state = Http3RequestState::Reading(service.requested("HTTP/3", || head.fields.iter()));
    }
}

#[cfg(test)]
mod tests;
