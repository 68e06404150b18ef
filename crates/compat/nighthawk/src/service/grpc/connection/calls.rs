//! The calls of one connection, without I/O.

use std::cell::Cell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_http::grpc::{GrpcMessageReader, write_message};
use stillwell_http::h2::{
    BodyLength, H2ErrorCode, H2ResponseBlock, Limits, RequestHead, Server, ServerEvent, Stream,
    StreamTable, TrailerBlock,
};
use stillwell_scope::{Tasks, Token};
use stillwell_units::{Moment, as_usize};
use stillwell_wire::server::{Output, Protocol};
use tokio::select;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Notify, Semaphore};

use crate::service::access::Caller;
use crate::service::grpc::call::{Call, CallOutput, Handler, Loads, Methods, OUTGOING_BYTES_MAX};
use crate::service::grpc::status::{CallFailed, StatusCode};
use crate::service::role::HEALTH;

/// The longest message that is taken, in bytes.
const MESSAGE_BYTES_MAX: u32 = 16 << 20;

/// The longest message of a health check, in bytes: the name of a service. All callers may send
/// one, without a token.
const HEALTH_MESSAGE_BYTES_MAX: u32 = 4 << 10;

/// Calls at once: as many as there may be streams.
const CALLS_MAX: usize = 128;

/// Maximum number of messages of a call that wait for the connection; more block their sender.
const OUTGOING_MAX: usize = 16;

/// Maximum number of bytes of a call that wait for the client; beyond it, no more of its messages
/// are taken. Its sent bytes are removed from that number on, once they are half of all.
const UNSENT_MAX: usize = 256 << 10;

/// Maximum number of messages that wait for the handler of a call.
const INCOMING_MAX: usize = 16;

/// The header of a client that requests histograms with results.
pub(crate) const SAMPLES_HEADER: &str = "stillwell-samples";

type AnswerTask = Pin<Box<dyn Future<Output = ()>>>;

/// The calls of one connection.
pub(super) struct Calls {
    methods: Rc<dyn Methods>,
    caller: Caller,
    server: Server,
    signals: Rc<Signals>,
    calls: StreamTable<OpenCall>,
    /// Answers that are not started yet.
    pub(super) begun: Vec<AnswerTask>,
    /// Dropped with the connection: a call without a client is given up.
    tasks: Tasks,
    is_broken: bool,
}

/// Signals of handlers and the service to the connection.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// An answer has more to send, or has room for a message.
    pub(super) wake: Rc<Notify>,
    /// Loads of its calls that are in progress.
    pub(super) loads: Loads,
    /// True once the connection accepts no more calls.
    pub(super) is_closing: Cell<bool>,
}

/// A call in progress.
struct OpenCall {
    reader: GrpcMessageReader,
    /// Messages that wait to be delivered.
    pending: VecDeque<Vec<u8>>,
    /// True if its client may send no more for now: that bounds the messages that wait, and no
    /// other call of the connection waits for them.
    is_held: bool,
    /// To the handler; `None` once the client has ended and all messages are delivered.
    incoming: Option<Sender<Vec<u8>>>,
    /// From the handler. No other call waits for the client of this one.
    outgoing: Receiver<CallOutput>,
    has_ended: bool,
    /// Cancelled when the client gives the call up.
    gone: Token,
    out: Vec<u8>,
    sent: usize,
    has_responded: bool,
    end: Option<Result<(), CallFailed>>,
}

/// An event, without what it borrows.
enum CallEvent {
    Begin(Stream, CallHead),
    Message(Stream, Vec<Vec<u8>>, Option<CallFailed>),
    End(Stream),
    Failed(Stream),
    Room(Stream),
}

/// The head of a request.
struct CallHead {
    path: String,
    is_grpc: bool,
    includes_samples: bool,
    authorization: Option<Vec<u8>>,
}

impl Calls {
    pub(super) fn new(methods: Rc<dyn Methods>, caller: Caller, signals: Rc<Signals>) -> Self {
        Self {
            methods,
            caller,
            server: Server::new(Limits::default()),
            signals,
            calls: StreamTable::new(),
            begun: Vec::new(),
            tasks: Tasks::new(CALLS_MAX),
            is_broken: false,
        }
    }

    /// Reads `input`.
    pub(super) fn read(&mut self, input: &[u8]) {
        let mut read = 0;
        while !self.is_broken {
            let step = match self.server.advance(&input[read..]) {
                Ok((_, None)) => return,
                Ok((taken, Some(event))) => {
                    read += taken;
                    step(&mut self.calls, event)
                }
                Err(_) => {
                    self.is_broken = true;
                    return;
                }
            };
            if let Some(step) = step {
                self.step(step);
            }
        }
    }

    /// Hands over messages of all calls, as many as there is room for.
    pub(super) fn deliver_all(&mut self) {
        let calls = self.calls.iter();
        let waiting = calls.filter(|(_, call)| !call.pending.is_empty());
        for stream in waiting.map(|(stream, _)| stream).collect::<Vec<_>>() {
            self.deliver(stream);
        }
    }

    /// Hands over messages of the call on `stream`, as many as there is room for.
    fn deliver(&mut self, stream: Stream) {
        let Some(call) = self.calls.get_mut(stream) else {
            return;
        };
        if let Some(incoming) = &call.incoming {
            while !call.pending.is_empty() {
                match incoming.try_reserve() {
                    Ok(permit) => permit.send(call.pending.pop_front().unwrap_or_default()),
                    // The handler accepts no more of them.
                    Err(_) if incoming.is_closed() => call.pending.clear(),
                    Err(_) => {
                        call.is_held = true;
                        self.server.hold(stream);
                        return;
                    }
                }
            }
        }
        if std::mem::take(&mut call.is_held) {
            self.server.release(stream);
        }
        if call.has_ended {
            call.incoming = None;
        }
    }

    /// Takes the output of all handlers, of each as much as there is room for.
    fn collect_all(&mut self) {
        let calls = self.calls.iter();
        let waiting = calls.filter(|(_, call)| !call.outgoing.is_empty());
        for stream in waiting.map(|(stream, _)| stream).collect::<Vec<_>>() {
            while let Some(out) = self.calls.get_mut(stream).and_then(OpenCall::next_output) {
                self.out(stream, out);
            }
        }
    }

    /// Writes the output of the handler of the call on `stream`.
    fn out(&mut self, stream: Stream, out: CallOutput) {
        let Some(call) = self.calls.get_mut(stream) else {
            return;
        };
        match out {
            CallOutput::Message(message, _room) => {
                respond(&mut self.server, stream, call);
                if write_message(&message, false, &mut call.out).is_err() {
                    let why = "the response exceeds the maximum size of a message";
                    call.end = Some(Err(CallFailed::new(StatusCode::ResourceExhausted, why)));
                }
            }
            CallOutput::End(end) => {
                call.end.get_or_insert(end);
            }
        }
        self.send_body(stream);
    }

    fn step(&mut self, step: CallEvent) {
        match step {
            CallEvent::Begin(stream, beginning) => self.begin(stream, beginning),
            CallEvent::Message(stream, messages, failure) => {
                if let Some(call) = self.calls.get_mut(stream) {
                    call.pending.extend(messages);
                    if let Some(failure) = failure {
                        call.end.get_or_insert(Err(failure));
                        call.gone.cancel();
                    }
                }
                self.deliver(stream);
                self.send_body(stream);
            }
            CallEvent::End(stream) => {
                if let Some(call) = self.calls.get_mut(stream) {
                    call.has_ended = true;
                }
                self.deliver(stream);
            }
            CallEvent::Failed(stream) => {
                if let Some(call) = self.calls.remove(stream) {
                    call.gone.cancel();
                }
            }
            CallEvent::Room(stream) => self.send_body(stream),
        }
    }

    fn begin(&mut self, stream: Stream, beginning: CallHead) {
        if !beginning.is_grpc {
            if let Ok(block) = H2ResponseBlock::new(415, &[]) {
                // It may have been given up meanwhile.
                let responded = self.server.respond(stream, &block, BodyLength::None);
                responded.unwrap_or_default();
            }
            self.server.reset(stream, H2ErrorCode::NO_ERROR);
            return;
        }
        let (sender, incoming) = channel(INCOMING_MAX);
        let (outgoing, receiver) = channel(OUTGOING_MAX);
        let gone = Token::new();
        let call = Call {
            incoming,
            outgoing: outgoing.clone(),
            room: Arc::new(Semaphore::new(as_usize(OUTGOING_BYTES_MAX))),
            wake: Rc::clone(&self.signals.wake),
            loads: self.signals.loads.clone(),
            includes_samples: beginning.includes_samples,
            caller: self.caller,
        };
        let authorization = beginning.authorization.as_deref();
        let handler = self.methods.open(&beginning.path, authorization, call);
        let mut open = OpenCall {
            reader: GrpcMessageReader::new(message_bytes_max(&beginning.path)),
            pending: VecDeque::new(),
            is_held: false,
            incoming: Some(sender),
            outgoing: receiver,
            has_ended: false,
            gone: gone.clone(),
            out: Vec::new(),
            sent: 0,
            has_responded: false,
            end: None,
        };
        match handler {
            Ok(handler) => {
                let wake = Rc::clone(&self.signals.wake);
                let answer = async move {
                    answer(handler, outgoing, gone).await;
                    wake.notify_one();
                };
                self.begun.push(Box::pin(answer));
            }
            Err(refusal) => open.end = Some(Err(refusal)),
        }
        self.calls.insert(stream, open);
        self.send_body(stream);
    }

    /// Sends as much of an answer as there is room for, and its end.
    fn send_body(&mut self, stream: Stream) {
        let Some(call) = self.calls.get_mut(stream) else {
            return;
        };
        if call.sent < call.out.len() {
            let rest = &call.out[call.sent..];
            match self.server.send_body(stream, rest, false) {
                Ok(taken) => call.sent += taken,
                Err(_) => return,
            }
        }
        if call.sent < call.out.len() {
            // A client that is slower than the handler never has all of it. The rest is moved, and is
            // not longer than the sent part.
            if call.sent >= UNSENT_MAX.max(call.out.len() / 2) {
                call.out.drain(..call.sent);
                call.sent = 0;
            }
            return;
        }
        call.out.clear();
        call.sent = 0;
        let Some(end) = call.end.take() else {
            return;
        };
        finish(&mut self.server, stream, call, &end);
        if !call.has_ended {
            // The client need not go on.
            self.server.reset(stream, H2ErrorCode::NO_ERROR);
        }
        call.gone.cancel();
        self.calls.remove(stream);
    }
}

impl OpenCall {
    /// Returns the next output of the handler, if there is some and room for it.
    fn next_output(&mut self) -> Option<CallOutput> {
        match self.out.len() - self.sent < UNSENT_MAX {
            true => self.outgoing.try_recv().ok(),
            false => None,
        }
    }
}

impl Output for Calls {
    fn fill(&mut self, _: Moment) {
        self.tasks.reap();
        for task in self.begun.drain(..) {
            self.tasks.spawn(task);
        }
        self.deliver_all();
        self.collect_all();
        if self.signals.is_closing.get() {
            self.server.close();
        }
        // Lays out what has got room.
        self.read(&[]);
    }

    fn unsent(&self) -> &[u8] {
        self.server.output()
    }

    fn advance(&mut self, length: usize) {
        self.server.sent(length);
    }
}

impl Protocol for Calls {
    type End = ();

    fn take(&mut self, input: &[u8], _: Moment) {
        self.read(input);
    }

    fn due(&self) -> Option<Moment> {
        None
    }

    fn end(&self) -> Option<()> {
        let is_idle = self.signals.is_closing.get() && self.server.open_streams() == 0;
        (self.unsent().is_empty() && (self.is_broken || is_idle)).then_some(())
    }

    fn finish(&mut self) {}
}

/// Runs `handler` to its end, unless the client goes before.
async fn answer(handler: Handler, outgoing: Sender<CallOutput>, gone: Token) {
    let end = select! {
        () = gone.cancelled() => return,
        end = handler => end,
    };
    // The connection may be gone.
    drop(outgoing.send(CallOutput::End(end)).await);
}

/// Sends the head of a call's answer, once.
fn respond(server: &mut Server, stream: Stream, call: &mut OpenCall) {
    if call.has_responded {
        return;
    }
    call.has_responded = true;
    if let Ok(block) = H2ResponseBlock::new(200, &[("content-type", "application/grpc")]) {
        // It may have been given up meanwhile.
        let responded = server.respond(stream, &block, BodyLength::Unknown);
        responded.unwrap_or_default();
    }
}

/// Says how a call has ended.
fn finish(server: &mut Server, stream: Stream, call: &mut OpenCall, end: &Result<(), CallFailed>) {
    respond(server, stream, call);
    let (number, message) = match end {
        Ok(()) => (0, String::new()),
        Err(ended) => (ended.code.number(), ended.escaped_message()),
    };
    let number = number.to_string();
    let mut fields = vec![("grpc-status", number.as_str())];
    if !message.is_empty() {
        fields.push(("grpc-message", &message));
    }
    if let Ok(block) = TrailerBlock::new(&fields) {
        // It may have been given up meanwhile.
        server.send_trailers(stream, &block).unwrap_or_default();
    }
}

fn step(calls: &mut StreamTable<OpenCall>, event: ServerEvent<'_>) -> Option<CallEvent> {
    Some(match event {
        ServerEvent::Head { stream, head } => CallEvent::Begin(stream, beginning(&head)),
        ServerEvent::Body { stream, bytes } => {
            let call = calls.get_mut(stream)?;
            let (messages, failure) = read(&mut call.reader, bytes);
            CallEvent::Message(stream, messages, failure)
        }
        ServerEvent::End { stream, .. } => CallEvent::End(stream),
        ServerEvent::Failed { stream, .. } => CallEvent::Failed(stream),
        ServerEvent::Room { stream } => CallEvent::Room(stream),
    })
}

fn beginning(head: &RequestHead<'_>) -> CallHead {
    let value = |name: &str| head.fields.value(name);
    let content = value("content-type").unwrap_or_default();
    CallHead {
        path: head.path.to_owned(),
        is_grpc: head.method == "POST" && content.starts_with(b"application/grpc"),
        includes_samples: value(SAMPLES_HEADER).is_some_and(|value| value != b"0"),
        authorization: value("authorization").map(<[u8]>::to_vec),
    }
}

/// Returns the longest message of a call of the method at `path`, in bytes.
fn message_bytes_max(path: &str) -> u32 {
    let path = path.strip_prefix('/').unwrap_or_default();
    match path.split_once('/') {
        Some((HEALTH, _)) => HEALTH_MESSAGE_BYTES_MAX,
        _ => MESSAGE_BYTES_MAX,
    }
}

/// The messages that `bytes` complete, and what is wrong with them.
fn read(reader: &mut GrpcMessageReader, bytes: &[u8]) -> (Vec<Vec<u8>>, Option<CallFailed>) {
    let (mut messages, mut read) = (Vec::new(), 0);
    loop {
        match reader.advance(&bytes[read..]) {
            Ok((_, None)) => return (messages, None),
            Ok((_, Some(message))) if message.is_compressed => {
                let why = "compressed messages are not supported";
                return (
                    messages,
                    Some(CallFailed::new(StatusCode::Unimplemented, why)),
                );
            }
            Ok((taken, Some(message))) => {
                read += taken;
                messages.push(message.bytes.to_vec());
            }
            Err(error) => {
                let ended = CallFailed::new(StatusCode::InvalidArgument, error.to_string());
                return (messages, Some(ended));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::pending;
    use std::net::{IpAddr, Ipv4Addr};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use stillwell_http::Scheme;
    use stillwell_http::h2::{Client, ClientEvent, H2RequestBlock};
    use stillwell_scope::clock;
    use tokio::task::unconstrained;

    use super::*;

    /// Size of a message with its head of five bytes.
    const MESSAGE_BYTES: usize = 64 << 10;

    /// Methods whose calls do not end. A test sends output in place of their handlers.
    #[derive(Default)]
    struct EndlessMethods {
        opened: RefCell<Vec<Call>>,
    }

    impl Methods for EndlessMethods {
        fn open(&self, _: &str, _: Option<&[u8]>, call: Call) -> Result<Handler, CallFailed> {
            self.opened.borrow_mut().push(call);
            Ok(Box::pin(pending::<Result<(), CallFailed>>()))
        }
    }

    /// Passes the output of each side to the other, once. Returns how much of a body the client
    /// received, in bytes.
    fn exchange(client: &mut Client, calls: &mut Calls) -> usize {
        let output = client.output().to_vec();
        client.sent(output.len());
        calls.read(&output);
        let output = calls.unsent().to_vec();
        calls.advance(output.len());
        let (mut input, mut received) = (output.as_slice(), 0);
        while let (taken, Some(event)) = client.advance(input).unwrap() {
            input = &input[taken..];
            if let ClientEvent::Body { bytes, .. } = event {
                received += bytes.len();
            }
        }
        received
    }

    /// A client with `N` calls in progress, and the calls as their handlers have them.
    fn open_calls<const N: usize>() -> (Client, Calls, [Call; N]) {
        let mut client = Client::new(Limits {
            stream_window_bytes: 64 << 10,
            ..Limits::default()
        });
        let caller = Caller {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let methods = Rc::new(EndlessMethods::default());
        let shared = Rc::clone(&methods);
        let mut calls = Calls::new(shared, caller, Rc::default());
        let headers = [("content-type", "application/grpc"), ("te", "trailers")];
        let request = H2RequestBlock::new("POST", Scheme::Http, "localhost", "/a.B/C", &headers);
        let request = request.unwrap();
        for _ in 0..N {
            client.request(&request, BodyLength::Unknown).unwrap();
        }
        exchange(&mut client, &mut calls);
        calls.begun.clear();
        let opened = methods.opened.take();
        (client, calls, opened.try_into().unwrap())
    }

    /// Sends a message of `length` bytes on `call`. Returns true if there is room for it.
    fn try_send(call: &Call, length: usize) -> bool {
        let sending = pin!(unconstrained(call.send(vec![0; length])));
        let mut context = Context::from_waker(Waker::noop());
        matches!(sending.poll(&mut context), Poll::Ready(Ok(())))
    }

    #[tokio::test]
    async fn messages_of_a_call_that_wait_for_the_connection_are_bounded_in_number_and_bytes() {
        let bytes_max = as_usize(OUTGOING_BYTES_MAX);
        for (length, expected) in [
            (0, OUTGOING_MAX),
            (1, OUTGOING_MAX),
            (bytes_max / 4, 4),
            (bytes_max / 4 + 1, 3),
            (bytes_max, 1),
            (bytes_max * 16, 1),
        ] {
            let (_client, mut calls, [call]) = open_calls::<1>();
            let accepted = || (0..100).take_while(|_| try_send(&call, length)).count();
            assert_eq!(accepted(), expected, "{length}");
            // A message that was taken needs its room no longer.
            let stream = calls.calls.iter().next().unwrap().0;
            let open = calls.calls.get_mut(stream).unwrap();
            while open.outgoing.try_recv().is_ok() {}
            assert_eq!(accepted(), expected, "{length}");
        }
    }

    #[tokio::test]
    async fn the_output_of_a_call_is_bounded_although_its_client_is_slower_than_its_handler() {
        let (mut client, mut calls, [call]) = open_calls::<1>();
        let stream = calls.calls.iter().next().unwrap().0;
        let mut received = 0;
        while received < 64 * UNSENT_MAX {
            while try_send(&call, MESSAGE_BYTES - 5) {}
            calls.fill(clock::now());
            let kept = calls.calls.get_mut(stream).unwrap().out.len();
            assert!(kept <= 2 * (UNSENT_MAX + MESSAGE_BYTES), "{kept}");
            let arrived = exchange(&mut client, &mut calls);
            assert!(arrived > 0, "nothing arrives after {received} bytes");
            received += arrived;
        }
    }

    #[tokio::test]
    async fn a_call_whose_client_takes_nothing_holds_up_no_other_call() {
        let (mut client, mut calls, [slow, fast]) = open_calls::<2>();
        // Its window is full, then the room for its output, then its queue.
        while try_send(&slow, MESSAGE_BYTES - 5) {
            while try_send(&slow, MESSAGE_BYTES - 5) {}
            calls.fill(clock::now());
        }
        assert!(try_send(&fast, MESSAGE_BYTES - 5));
        fast.outgoing.try_send(CallOutput::End(Ok(()))).unwrap();
        calls.fill(clock::now());
        exchange(&mut client, &mut calls);
        assert_eq!(client.open_streams(), 1);
    }
}
