//! Unary gRPC calls over HTTP/2: a block a message, one call in flight on each
//! connection. Stamps are in the text of messages or in the metadata of calls.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use stillwell_http::Target;
use stillwell_http::grpc::{MessageCounter, http_status, message_head, status};
use stillwell_http::h2::{
    BodyLength, Client, ClientEvent, H2RequestBlock, H2StreamFailure, Limits, RequestRefused,
    Stream,
};
use stillwell_metric::Outcome;
use stillwell_payload::BlockSet;
use stillwell_scope::{Tasks, clock};
use stillwell_stamp::HEADER;
use stillwell_units::Moment;
use stillwell_wire::{Connection, DialError, Stream as Socket, dial};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use stillwell_wire::stream_outcome;
use stillwell_worker::{
    Backoff, Marks, Opener, Sending, Slice, TransportError, Wait, Worker, watched,
};

/// Maximum time of a call.
const TIMEOUT: Duration = Duration::from_secs(30);

const BUFFER_BYTES: usize = 16 << 10;

/// The common part of all connections of a generator.
#[derive(Clone, Debug)]
pub(crate) struct Grpc {
    shared: Arc<GrpcShared>,
}

#[derive(Debug)]
struct GrpcShared {
    /// `host:port` to dial.
    address: String,
    head: H2RequestBlock,
}

impl Grpc {
    pub(crate) fn new(url: &str) -> Result<Self, TransportError> {
        let target: Target = url.parse()?;
        let headers = [("content-type", "application/grpc"), ("te", "trailers")];
        let head = H2RequestBlock::new(
            "POST",
            target.scheme(),
            &target.authority(),
            target.path_and_query(),
            &headers,
        )?;
        Ok(Self {
            shared: Arc::new(GrpcShared {
                address: target.dial_address(),
                head,
            }),
        })
    }
}

impl Opener for Grpc {
    fn open(&self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        for _ in 0..connections {
            tasks.spawn(send(Rc::clone(worker), self.clone()));
        }
    }
}

/// One connection, opened again whenever it is lost or has done its last call,
/// until the worker ends.
async fn send(worker: Rc<Worker>, grpc: Grpc) {
    let mut backoff = Backoff::new();
    let mut feed = CallFeed {
        left: None,
        marks: worker.marks(),
    };
    let dial = || Line::open(&grpc.shared.address);
    while let Some(mut line) = worker.connect(&mut backoff, dial).await {
        let head = &grpc.shared.head;
        match run_session(&worker, head, &mut line, &mut feed, &mut backoff).await {
            CallEnd::Ended => return,
            CallEnd::Agreed => {}
            CallEnd::Lost => {
                if worker.pause(&mut backoff).await.is_none() {
                    return;
                }
            }
        }
    }
}

/// The next calls of one connection, independent of the socket under it.
#[derive(Debug)]
struct CallFeed {
    /// Taken, and not begun when the connection ended.
    left: Option<CallBlock>,
    /// The stamps of its messages, if they have any.
    marks: Option<Marks>,
}

/// The message of a call.
#[derive(Debug)]
struct CallBlock {
    set: Rc<BlockSet>,
    slice: Slice,
    /// When it was first sent, to a server that did not begin the call.
    sent: Option<Moment>,
}

/// The way a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CallEnd {
    /// The worker is to end.
    Ended,
    /// The server takes no more calls on it.
    Agreed,
    /// In the middle of a call.
    Lost,
}

/// Makes call after call on one connection. One that fails is not made again; one
/// that the connection did not take, or the server did not begin, is `left`.
async fn run_session(
    worker: &Worker,
    head: &H2RequestBlock,
    line: &mut Line,
    feed: &mut CallFeed,
    backoff: &mut Backoff,
) -> CallEnd {
    let mut has_answered = false;
    loop {
        let block = match feed.left.take() {
            Some(left) => left,
            None => match worker.next_block().await {
                Some(taken) => taken.into(),
                None => return CallEnd::Ended,
            },
        };
        // A server that ends idle connections loses no call. One that never answers is called all the same.
        if has_answered && !line.is_open().await {
            feed.left = Some(block);
            return CallEnd::Agreed;
        }
        let sent = block.sent.unwrap_or_else(clock::now);
        worker.mark(&block.set, block.slice, feed.marks.as_mut());
        let marks = feed.marks.as_ref();
        let stamp = marks.and_then(Marks::header);
        let stamp = stamp.map(|stamp| (HEADER, stamp.as_slice()));
        let begun = line
            .client
            .request_with(head, stamp.as_slice(), BodyLength::Unknown);
        let stream = match begun {
            Ok(stream) => stream,
            Err(refused) => {
                feed.left = Some(block);
                // `Busy` where the server allows no calls at all.
                return match refused {
                    RequestRefused::Busy | RequestRefused::Failed => CallEnd::Lost,
                    RequestRefused::GoingAway { .. } | RequestRefused::Exhausted => CallEnd::Agreed,
                };
            }
        };
        let mut sending = block.sending(worker, marks);
        let call = line.call(worker, stream, &mut sending);
        match timeout(TIMEOUT, call)
            .await
            .unwrap_or(Err(Outcome::TimedOut))
        {
            Ok(outcome) => {
                let now = clock::now();
                let mut state = worker.state.borrow_mut();
                state.record_answer(block.slice.intended, sent, now);
                drop(state);
                worker.shard.count(outcome);
                worker.shard.response_bytes.add(line.answered_bytes);
                backoff.reset();
                has_answered = true;
            }
            // Servers that end every connection before an answer would keep it for ever.
            Err(_) if line.is_refused && has_answered => {
                take_back(worker, sending, marks);
                let sent = Some(sent);
                feed.left = Some(CallBlock { sent, ..block });
                return CallEnd::Agreed;
            }
            Err(outcome) => {
                worker.shard.count(outcome);
                return CallEnd::Lost;
            }
        }
    }
}

impl From<(Rc<BlockSet>, Slice)> for CallBlock {
    fn from((set, slice): (Rc<BlockSet>, Slice)) -> Self {
        let sent = None;
        Self { set, slice, sent }
    }
}

impl CallBlock {
    /// Its block on its way out, which was marked with `marks` if there are any. It counts once.
    fn sending<'a>(&'a self, worker: &'a Worker, marks: Option<&'a Marks>) -> Sending<'a> {
        match self.sent {
            None => worker.sending_of_marked(&self.set, self.slice, marks),
            Some(_) => worker.sending_again_of_marked(&self.set, self.slice, marks),
        }
    }
}

/// Counts all of the message `sending`, whose call the server did not begin: nothing of it counts
/// when it is sent again. Its stamps in `marks` give their numbers to those that follow.
fn take_back(worker: &Worker, mut sending: Sending<'_>, marks: Option<&Marks>) {
    sending.wrote(sending.rest().len());
    if let Some((stamping, marks)) = worker.stamping().zip(marks) {
        marks.take_back(stamping, 0);
    }
}

/// One connection.
#[derive(Debug)]
struct Line {
    connection: Connection,
    client: Client,
    buffer: Box<[u8]>,
    /// Bytes of the messages of the last call's answer, if it succeeded.
    answered_bytes: u64,
    /// True if the server ended the last call by GOAWAY and did not begin it.
    is_refused: bool,
}

/// The received part of a call.
#[derive(Clone, Copy, Debug, Default)]
struct CallProgress {
    http_status: Option<u16>,
    grpc_status: Option<u32>,
    messages: MessageCounter,
    end: Option<Result<(), Outcome>>,
}

impl Line {
    async fn open(address: &str) -> Result<Self, DialError> {
        let socket: Socket = dial::tcp(address).await?.into();
        Ok(Self {
            connection: socket.into(),
            client: Client::new(Limits::default()),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            answered_bytes: 0,
            is_refused: false,
        })
    }

    /// Takes in what came between two calls, such as GOAWAY, and waits for nothing. False if the peer closed the connection.
    async fn is_open(&mut self) -> bool {
        loop {
            let (connection, buffer) = (&mut self.connection, &mut self.buffer);
            let look = |context: &mut Context<'_>| {
                Poll::Ready(poll_read(&mut *connection, &mut *buffer, context))
            };
            let bytes = match poll_fn(look).await {
                Poll::Pending => return true,
                Poll::Ready(Ok(bytes @ 1..)) => bytes,
                Poll::Ready(_) => return false,
            };
            let mut read = 0;
            loop {
                match self.client.advance(&self.buffer[read..bytes]) {
                    Ok((_, None)) => break,
                    Ok((taken, Some(_))) => read += taken,
                    Err(_) => return false,
                }
            }
        }
    }

    /// Sends a call's only message, and returns its outcome: an error where the connection is
    /// of no use any more.
    async fn call(
        &mut self,
        worker: &Worker,
        stream: Stream,
        sending: &mut Sending<'_>,
    ) -> Result<Outcome, Outcome> {
        let length = u32::try_from(sending.rest().len()).map_err(|_| Outcome::SendFailed)?;
        let mut head = &message_head(length, false)[..];
        let mut progress = CallProgress::default();
        self.answered_bytes = 0;
        self.is_refused = false;
        loop {
            let mut taken_of_message = 0;
            // A server may answer before it has read all, and want no more.
            if !head.is_empty()
                && let Ok(taken) = self.client.send_body(stream, head, false)
            {
                head = &head[taken..];
            }
            if head.is_empty()
                && !sending.rest().is_empty()
                && let Ok(taken) = self.client.send_body(stream, sending.rest(), true)
            {
                taken_of_message = taken;
            }
            self.write(worker).await.map_err(|e| stream_outcome(&e))?;
            if taken_of_message > 0 {
                sending.wrote(taken_of_message);
            }
            let has_room = self.listen(&[], stream, &mut progress)?;
            if let Some(end) = progress.end {
                end?;
                let outcome = progress.outcome();
                if outcome == Outcome::Ok {
                    self.answered_bytes = progress.messages.bytes();
                }
                return Ok(outcome);
            }
            if has_room || (taken_of_message > 0 && !sending.rest().is_empty()) {
                continue;
            }
            self.read(worker, stream, &mut progress).await?;
        }
    }

    async fn write(&mut self, worker: &Worker) -> io::Result<()> {
        while !self.client.output().is_empty() {
            let (connection, output) = (&mut self.connection, self.client.output());
            let write =
                |context: &mut Context<'_>| Pin::new(&mut *connection).poll_write(context, output);
            match watched(worker, Wait::Room, write).await? {
                0 => return Err(ErrorKind::WriteZero.into()),
                bytes => self.client.sent(bytes),
            }
        }
        let connection = &mut self.connection;
        poll_fn(|context| Pin::new(&mut *connection).poll_flush(context)).await
    }

    /// Reads once, and takes in what it says.
    async fn read(
        &mut self,
        worker: &Worker,
        stream: Stream,
        progress: &mut CallProgress,
    ) -> Result<(), Outcome> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let connection = &mut self.connection;
        let read = |context: &mut Context<'_>| poll_read(connection, &mut buffer, context);
        let read = watched(worker, Wait::Other, read).await;
        let bytes = read.map_err(|error| stream_outcome(&error))?;
        if bytes == 0 {
            return Err(Outcome::PeerClosed);
        }
        self.listen(&buffer[..bytes], stream, progress)?;
        self.buffer = buffer;
        Ok(())
    }

    /// Takes in `input`; gives whether there is more room for the call's body.
    fn listen(
        &mut self,
        input: &[u8],
        stream: Stream,
        progress: &mut CallProgress,
    ) -> Result<bool, Outcome> {
        let (mut read, mut has_room) = (0, false);
        loop {
            let advanced = self.client.advance(&input[read..]);
            let (taken, event) = advanced.map_err(|_| Outcome::Malformed)?;
            read += taken;
            match event {
                None => return Ok(has_room),
                Some(ClientEvent::Head { stream: of, head }) if of == stream => {
                    progress.http_status = Some(head.status);
                    progress.grpc_status = status(head.fields);
                }
                Some(ClientEvent::Body { stream: of, bytes }) if of == stream => {
                    let taken = progress.messages.take(bytes);
                    taken.map_err(|_| Outcome::Malformed)?;
                }
                Some(ClientEvent::End {
                    stream: of,
                    trailers,
                }) if of == stream => {
                    progress.grpc_status = trailers.and_then(status).or(progress.grpc_status);
                    progress.end = Some(Ok(()));
                }
                Some(ClientEvent::Failed { stream: of, cause }) if of == stream => {
                    let is_away = self.client.going_away().is_some();
                    self.is_refused = is_away && cause == H2StreamFailure::Refused;
                    progress.end = Some(Err(outcome_of(cause)));
                }
                Some(ClientEvent::Room { stream: of }) if of == stream => has_room = true,
                Some(_) => {}
            }
        }
    }
}

impl CallProgress {
    /// The outcome of a whole answer.
    fn outcome(self) -> Outcome {
        match (self.http_status, self.grpc_status) {
            (Some(200), Some(status)) => Outcome::of_status(http_status(status)),
            // It was no gRPC server that answered.
            (Some(200) | None, _) => Outcome::Malformed,
            (Some(status), _) => Outcome::of_status(status),
        }
    }
}

const fn outcome_of(cause: H2StreamFailure) -> Outcome {
    match cause {
        H2StreamFailure::Malformed { .. } => Outcome::Malformed,
        _ => Outcome::PeerClosed,
    }
}

fn poll_read(
    connection: &mut Connection,
    buffer: &mut [u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(buffer);
    let polled = Pin::new(connection).poll_read(context, &mut buffer);
    polled.map_ok(|()| buffer.filled().len())
}
