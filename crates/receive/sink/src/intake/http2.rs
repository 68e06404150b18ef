//! One HTTP/2 connection, without I/O: bytes in, bytes out. Calls of gRPC are
//! answered message by message.

use std::collections::VecDeque;

use stillwell_http::grpc::write_message;
use stillwell_http::h2::{
    BodyLength, H2ResponseBlock, Limits, RequestHead, Server, ServerEvent, Stream, StreamTable,
    TrailerBlock,
};
use stillwell_plan::step::Refusal;
use stillwell_units::Moment;
use stillwell_wire::server::{Output, Protocol};

use super::grpc;
use super::request::Partial;
use super::service::{Answer, Reply};
use super::site::{Due, Site};

/// Replies that wait at most before no more is read.
const WAITING_MAX: usize = 1024;

/// Replies of one call, in bytes, that wait for room before its client may send no
/// more than its window still permits.
const OUT_BYTES_MAX: usize = 64 << 10;

/// One connection and its requests.
#[derive(Debug)]
pub(super) struct Http2 {
    site: Site,
    server: Server,
    requests: StreamTable<Http2Request>,
    /// In the order of their times.
    waiting: VecDeque<Waiting>,
    is_broken: bool,
}

#[derive(Debug)]
struct Waiting {
    due: Due,
    stream: Stream,
    what: What,
}

/// The next step of a request.
#[derive(Debug)]
enum What {
    Answer(Answer),
    Message(Reply),
    /// The end of a call with this status.
    End(u32),
}

#[derive(Debug)]
struct Http2Request {
    incoming: Http2Incoming,
    is_head: bool,
    has_responded: bool,
    /// Remaining bytes of the response body.
    out: Vec<u8>,
    sent: usize,
    /// True if its client may send no more for now.
    is_held: bool,
    end: Option<End>,
}

#[derive(Debug)]
enum Http2Incoming {
    Plain(Partial),
    Call(grpc::CallIncoming),
    /// Refused on purpose: nothing in it counts.
    Refused(Refusal),
    Whole,
}

/// The part after the body.
#[derive(Clone, Copy, Debug)]
enum End {
    Nothing,
    /// Trailers with this status.
    Status(u32),
}

/// The step of the connection after an event.
#[derive(Clone, Copy, Debug)]
enum FollowUp {
    /// The client waits before it sends a body.
    Continue(Stream),
    /// There is room for more of an answer.
    Pump(Stream),
}

impl Http2 {
    pub(super) fn new(site: Site) -> Self {
        Self {
            site,
            server: Server::new(Limits::default()),
            requests: StreamTable::new(),
            waiting: VecDeque::new(),
            is_broken: false,
        }
    }

    fn answer(&mut self, stream: Stream, what: What) {
        // One that is over already gets nothing.
        let Some(request) = self.requests.get_mut(stream) else {
            return;
        };
        match what {
            What::Answer(answer) => {
                let length = answer.body.len() as u64;
                let length = match request.is_head {
                    true => BodyLength::Withheld(length),
                    false => BodyLength::Bytes(length),
                };
                let fields = answer.headers.iter();
                let headers: Vec<(&str, &str)> = fields
                    .map(|(name, value)| (name.as_ref(), value.as_ref()))
                    .collect();
                let block = H2ResponseBlock::new(answer.status, &headers);
                let sent = block.map(|block| self.server.respond(stream, &block, length));
                if !request.is_head {
                    request.out = answer.body.into_owned();
                }
                let has_body = !request.out.is_empty();
                request.end = Some(End::Nothing);
                request.has_responded = true;
                if !matches!(sent, Ok(Ok(()))) || !has_body {
                    self.requests.remove(stream);
                    return;
                }
            }
            What::Message(reply) => {
                respond_to_call(&mut self.server, stream, request);
                // A reply is far shorter than a message may be.
                write_message(&reply.message, false, &mut request.out).unwrap_or_default();
            }
            What::End(status) => {
                respond_to_call(&mut self.server, stream, request);
                request.end = Some(End::Status(status));
            }
        }
        self.pump(stream);
    }

    /// Sends as much of an answer as there is room for.
    fn pump(&mut self, stream: Stream) {
        let Some(request) = self.requests.get_mut(stream) else {
            return;
        };
        let is_last = matches!(request.end, Some(End::Nothing));
        let rest = &request.out[request.sent..];
        if !rest.is_empty() {
            match self.server.send_body(stream, rest, is_last) {
                Ok(taken) => request.sent += taken,
                Err(_) => {
                    self.requests.remove(stream);
                    return;
                }
            }
        }
        let waiting = request.out.len() - request.sent;
        if waiting > OUT_BYTES_MAX && !request.is_held {
            request.is_held = true;
            self.server.hold(stream);
        }
        if waiting > 0 {
            return;
        }
        request.out.clear();
        request.sent = 0;
        if std::mem::take(&mut request.is_held) {
            self.server.release(stream);
        }
        if let Some(end) = request.end {
            if let End::Status(status) = end
                && let Ok(block) = TrailerBlock::new(&[("grpc-status", &status.to_string())])
            {
                // It may have been given up meanwhile.
                self.server
                    .send_trailers(stream, &block)
                    .unwrap_or_default();
            }
            self.requests.remove(stream);
        }
    }
}

impl Output for Http2 {
    fn fill(&mut self, now: Moment) {
        self.take(&[], now);
        while self.due().is_some_and(|due| due <= now)
            && let Some(Waiting { stream, what, .. }) = self.waiting.pop_front()
        {
            self.answer(stream, what);
        }
    }

    fn unsent(&self) -> &[u8] {
        self.server.output()
    }

    fn advance(&mut self, length: usize) {
        self.server.sent(length);
    }
}

impl Protocol for Http2 {
    type End = ();

    fn take(&mut self, input: &[u8], now: Moment) {
        let mut read = 0;
        while !self.is_broken {
            let advanced = self.server.advance(&input[read..]);
            let follow_up = match advanced {
                Ok((_, None)) => return,
                Ok((taken, Some(event))) => {
                    read += taken;
                    let (site, waiting) = (&self.site, &mut self.waiting);
                    take_event(site, &mut self.requests, waiting, event, now)
                }
                Err(_) => {
                    self.site.shard.errors.add(1);
                    self.is_broken = true;
                    return;
                }
            };
            match follow_up {
                // A request that is over already gets nothing.
                Some(FollowUp::Continue(stream)) => {
                    self.server.send_continue(stream).unwrap_or_default();
                }
                Some(FollowUp::Pump(stream)) => self.pump(stream),
                None => {}
            }
        }
    }

    fn due(&self) -> Option<Moment> {
        self.waiting.front().map(|waiting| waiting.due.moment)
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    fn is_cut(&self) -> bool {
        self.site.is_cut.get()
    }

    fn end(&self) -> Option<()> {
        let is_over = self.is_broken && self.unsent().is_empty();
        is_over.then_some(())
    }

    fn finish(&mut self) {
        let is_idle = self.server.open_streams() == 0 && self.server.finish().is_ok();
        self.site
            .shard
            .errors
            .add(u64::from(!is_idle && !self.is_broken));
    }
}

/// Sends the head of a call's answer, once.
fn respond_to_call(server: &mut Server, stream: Stream, request: &mut Http2Request) {
    if request.has_responded {
        return;
    }
    request.has_responded = true;
    if let Ok(block) = H2ResponseBlock::new(200, &[("content-type", "application/grpc")]) {
        // It may have been given up meanwhile.
        let responded = server.respond(stream, &block, BodyLength::Unknown);
        responded.unwrap_or_default();
    }
}

/// Puts a reply among those that wait, in the order in which they are due. A delay may
/// differ from one to the next; what is said on one stream keeps its order all the same.
fn put_in_order(waiting: &mut VecDeque<Waiting>, mut answered: Waiting) {
    let is_last = |last: &Waiting| last.due.moment <= answered.due.moment;
    if waiting.back().is_none_or(is_last) {
        return waiting.push_back(answered);
    }
    if let Some(before) = waiting
        .iter()
        .rfind(|queued| queued.stream == answered.stream)
    {
        answered.due.moment = answered.due.moment.max(before.due.moment);
    }
    let place = waiting.partition_point(|queued| queued.due.moment <= answered.due.moment);
    waiting.insert(place, answered);
}

/// Takes in an event; returns the step that follows, if any.
fn take_event(
    site: &Site,
    requests: &mut StreamTable<Http2Request>,
    waiting: &mut VecDeque<Waiting>,
    event: ServerEvent<'_>,
    now: Moment,
) -> Option<FollowUp> {
    let mut wait = |stream, what| {
        // The end of a call follows its last message, and is no request of its own.
        let mut queued = waiting.iter();
        let last = match what {
            What::End(_) => queued.rfind(|waiting| waiting.stream == stream),
            _ => None,
        };
        let due = last.map_or_else(|| site.due(now), |last| Due::at(last.due.moment));
        put_in_order(waiting, Waiting { due, stream, what });
    };
    match event {
        ServerEvent::Head { stream, head } => {
            requests.insert(stream, Http2Request::of(&head, site));
            let expect = head.fields.value("expect").unwrap_or_default();
            let is_waiting = expect.eq_ignore_ascii_case(b"100-continue");
            return is_waiting.then_some(FollowUp::Continue(stream));
        }
        ServerEvent::Body { stream, bytes } => {
            let request = requests.get_mut(stream)?;
            match &mut request.incoming {
                Http2Incoming::Plain(partial) => partial.push(bytes, site),
                Http2Incoming::Call(call) => {
                    let reply = |reply| wait(stream, What::Message(reply));
                    call.push(bytes, site, reply);
                    // As servers do, without waiting for the client's end of the stream.
                    if call.status != 0 {
                        let status = call.status;
                        request.incoming = Http2Incoming::Whole;
                        wait(stream, What::End(status));
                    }
                }
                Http2Incoming::Refused(_) => site.shard.bytes.add(bytes.len() as u64),
                Http2Incoming::Whole => {}
            }
        }
        ServerEvent::End { stream, .. } => {
            let request = requests.get_mut(stream)?;
            match std::mem::replace(&mut request.incoming, Http2Incoming::Whole) {
                Http2Incoming::Plain(partial) => {
                    let answer = partial.finish(site);
                    wait(stream, What::Answer(answer));
                }
                Http2Incoming::Call(mut call) => {
                    call.finish(&site.shard);
                    wait(stream, What::End(call.status));
                }
                Http2Incoming::Refused(with) => wait(stream, What::Answer(site.refused(with))),
                Http2Incoming::Whole => {}
            }
        }
        ServerEvent::Failed { stream, .. } => {
            let request = requests.remove(stream);
            let was_cut =
                request.is_some_and(|request| !matches!(request.incoming, Http2Incoming::Whole));
            site.shard.errors.add(u64::from(was_cut));
            // A connection with an entry here is not idle.
            waiting.retain(|queued| queued.stream != stream);
        }
        ServerEvent::Room { stream } => return Some(FollowUp::Pump(stream)),
    }
    None
}

impl Http2Request {
    fn of(head: &RequestHead<'_>, site: &Site) -> Self {
        let mut partial = Partial::new(head.method, head.path, site);
        for (name, value) in head.fields.iter() {
            if let Ok(name) = str::from_utf8(name) {
                partial.header(name, value);
            }
        }
        let is_head = partial.is_head();
        let incoming = if let Some(with) = site.refusal() {
            Http2Incoming::Refused(with)
        } else if partial.content_type().starts_with("application/grpc") {
            let encoding = head.fields.value("grpc-encoding");
            let stamp = partial.stamp();
            let call = grpc::CallIncoming::new(partial.target(), encoding, stamp, site);
            Http2Incoming::Call(call)
        } else {
            Http2Incoming::Plain(partial)
        };
        Self {
            incoming,
            is_head,
            has_responded: false,
            out: Vec::new(),
            sent: 0,
            is_held: false,
            end: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use stillwell_http::Scheme;
    use stillwell_http::h2::{Client, ClientEvent, H2ErrorCode, H2RequestBlock};
    use stillwell_plan::sink::IntakeService;
    use stillwell_units::Nanos;

    use super::super::fixture::site;
    use super::*;
    use crate::intake::Intake;

    /// A client and the sink that it talks to.
    struct Pair {
        client: Client,
        sink: Http2,
        /// Frames with replies that the client was not shown.
        unseen: Vec<u8>,
        replies: usize,
    }

    impl Pair {
        fn new(window: u32, delay: Nanos) -> Self {
            let service = IntakeService::DatadogStatefulLogs;
            let limits = Limits {
                stream_window_bytes: window,
                ..Limits::default()
            };
            Self {
                client: Client::new(limits),
                sink: Http2::new(site(Intake::new("a", &service, delay))),
                unseen: Vec::new(),
                replies: 0,
            }
        }

        /// Passes the output of each side to the other, except replies.
        fn exchange(&mut self) {
            let output = self.client.output().to_vec();
            self.client.sent(output.len());
            self.sink.take(&output, Moment::default());
            self.sink.fill(Moment::default());
            let output = self.sink.unsent().to_vec();
            self.sink.advance(output.len());
            let mut rest = output.as_slice();
            while let Some((head, _)) = rest.split_first_chunk::<9>() {
                let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8;
                let length = length + usize::from(head[2]) + 9;
                let (frame, after) = rest.split_at(length);
                rest = after;
                match head[3] {
                    0 => self.unseen.extend_from_slice(frame),
                    _ => self.show(frame),
                }
            }
        }

        fn show(&mut self, mut frames: &[u8]) {
            while let (taken, Some(event)) = self.client.advance(frames).unwrap() {
                frames = &frames[taken..];
                if let ClientEvent::Body { bytes, .. } = event {
                    self.replies += bytes.len();
                }
            }
        }
    }

    /// The kinds of `frames`, which are whole.
    fn kinds(mut frames: &[u8]) -> Vec<u8> {
        let mut kinds = Vec::new();
        while let Some((head, rest)) = frames.split_first_chunk::<9>() {
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8;
            kinds.push(head[3]);
            frames = &rest[length + usize::from(head[2])..];
        }
        kinds
    }

    #[test]
    fn a_request_that_its_client_cancels_does_not_wait() {
        let mut pair = Pair::new(1 << 16, Nanos::from_secs(60));
        let head = H2RequestBlock::new("GET", Scheme::Http, "sink", "/", &[]).unwrap();
        let streams = [(); 2].map(|()| pair.client.request(&head, BodyLength::None).unwrap());
        pair.exchange();
        assert_eq!(pair.sink.waiting.len(), 2);
        for (stream, left) in streams.into_iter().zip([1, 0]) {
            pair.client.reset(stream, H2ErrorCode::CANCEL);
            pair.exchange();
            assert_eq!(pair.sink.waiting.len(), left);
        }
        assert_eq!(pair.sink.due(), None);
    }

    #[test]
    fn a_client_that_expects_continue_may_send_its_body() {
        const HEADERS: u8 = 1;
        for (name, is_waiting) in [("expect", true), ("x-expect", false)] {
            let mut pair = Pair::new(1 << 16, Nanos::ZERO);
            let headers = [(name, "100-Continue")];
            let head = H2RequestBlock::new("POST", Scheme::Http, "sink", "/", &headers).unwrap();
            let stream = pair.client.request(&head, BodyLength::Bytes(2)).unwrap();
            let request = pair.client.output().to_vec();
            pair.client.sent(request.len());
            pair.sink.take(&request, Moment::default());
            let response = pair.sink.unsent().to_vec();
            pair.sink.advance(response.len());
            assert_eq!(kinds(&response).contains(&HEADERS), is_waiting);
            pair.show(&response);
            // The client sends the body, and has the answer.
            pair.client.send_body(stream, b"{}", true).unwrap();
            pair.exchange();
            assert_eq!(pair.sink.site.shard.messages.total(), 1);
        }
    }

    #[test]
    fn a_call_whose_replies_find_no_window_does_not_fill_the_memory() {
        let mut pair = Pair::new(1024, Nanos::ZERO);
        let method = "/datadog.intake.stateful.StatefulLogsService/LogsStream";
        let headers = [("content-type", "application/grpc")];
        let head = H2RequestBlock::new("POST", Scheme::Http, "sink", method, &headers).unwrap();
        let stream = pair.client.request(&head, BodyLength::Unknown).unwrap();
        // Batch number 0 with nothing in it, and its reply.
        let (message, reply_bytes) = ([0; 5], 5 + 4);
        let (mut offered, mut stuck) = (0, 0);
        while stuck < 3 {
            assert!(offered < 16 << 20, "nothing holds the client back");
            let messages = message.repeat(1000);
            let taken = pair.client.send_body(stream, &messages, false).unwrap();
            // Bytes cut by the window are sent whole later.
            let cut = taken % 5;
            offered += taken;
            if cut > 0 {
                let rest = &message[cut..];
                let more = pair.client.send_body(stream, rest, false).unwrap();
                offered += more;
            }
            stuck = if taken == 0 { stuck + 1 } else { 0 };
            pair.exchange();
        }
        let out = pair.sink.requests.get_mut(stream).unwrap().out.len();
        assert!(out > OUT_BYTES_MAX && out < 4 << 20, "{out}");
        // Once the client looks at its replies all goes on.
        while !pair.unseen.is_empty() {
            let frames = std::mem::take(&mut pair.unseen);
            pair.show(&frames);
            pair.exchange();
        }
        assert_eq!(pair.replies, offered / 5 * reply_bytes);
        assert!(pair.client.send_body(stream, &message, false).unwrap() > 0);
    }
}
