//! One request and its answer, without allocation.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use stillwell_http::{RequestTemplate, ResponseEvent, ResponseParser};
use stillwell_metric::Outcome;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::slice::{Sending, Slice};
use crate::transport::stream_outcome;
use crate::worker::{Wait, Worker};

/// How long an answer may take from the sent time on.
const TIMEOUT: Nanos = Nanos::from_secs(30);

const BUFFER_BYTES: usize = 64 << 10;

/// A whole answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    status: u16,
    /// Whether another request may follow.
    pub(super) keep_alive: bool,
}

impl Answer {
    pub(super) const fn outcome(self) -> Outcome {
        Outcome::of_status(self.status)
    }
}

/// What one connection after the other uses again.
#[derive(Debug)]
pub(super) struct Lane<'w> {
    worker: &'w Worker,
    template: &'w RequestTemplate,
    head: Vec<u8>,
    buffer: Box<[u8]>,
    alarm: Alarm,
}

impl<'w> Lane<'w> {
    pub(super) fn new(worker: &'w Worker, template: &'w RequestTemplate) -> Self {
        Self {
            worker,
            template,
            head: Vec::with_capacity(template.head_bytes_max()),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            alarm: Alarm::new(),
        }
    }

    pub(super) const fn worker(&self) -> &'w Worker {
        self.worker
    }

    /// Whether the server has closed the connection, or said something unasked.
    /// Costs no system call where it has not.
    pub(super) fn is_closed(&mut self, stream: &TcpStream) -> bool {
        !matches!(stream.try_read(&mut self.buffer), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Sends one request and reads its answer.
    pub(super) async fn request(
        &mut self,
        stream: &mut TcpStream,
        parser: &mut ResponseParser,
        slice: Slice,
    ) -> Result<Answer, Outcome> {
        let sent = clock::now();
        self.alarm.deadline = sent + TIMEOUT;
        let mut sending = self.worker.sending(slice);
        self.head.clear();
        self.template
            .write_head(sending.rest().len() as u64, &mut self.head);
        let refused = self.write(stream, &mut sending).await?;
        let answer = match (self.read(stream, parser).await, refused) {
            (Ok(answer), None) => answer,
            // It answered before it had read all, and wants no more.
            (Ok(answer), Some(_)) => Answer {
                keep_alive: false,
                ..answer
            },
            (Err(outcome), refused) => return Err(refused.unwrap_or(outcome)),
        };
        let mut state = self.worker.state.borrow_mut();
        state.record_answer(slice.intended, sent, clock::now());
        Ok(answer)
    }

    /// Writes head and body. Gives an outcome where the kernel refused: there
    /// may still be an answer that says why.
    async fn write(
        &mut self,
        stream: &TcpStream,
        sending: &mut Sending<'_>,
    ) -> Result<Option<Outcome>, Outcome> {
        let mut head = self.head.as_slice();
        while !(head.is_empty() && sending.rest().is_empty()) {
            let parts = [IoSlice::new(head), IoSlice::new(sending.rest())];
            match stream.try_write_vectored(&parts) {
                Ok(bytes) => {
                    let of_head = bytes.min(head.len());
                    head = &head[of_head..];
                    if bytes > of_head {
                        sending.wrote(bytes - of_head);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let room = |context: &mut Context<'_>| stream.poll_write_ready(context);
                    if let Err(error) = self.alarm.wait(self.worker, Wait::Room, room).await? {
                        return Ok(Some(stream_outcome(&error)));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Ok(Some(stream_outcome(&error))),
            }
        }
        Ok(None)
    }

    /// Reads one answer.
    async fn read(
        &mut self,
        stream: &mut TcpStream,
        parser: &mut ResponseParser,
    ) -> Result<Answer, Outcome> {
        let mut head = None;
        loop {
            let buffer = &mut self.buffer;
            let arrival = |context: &mut Context<'_>| poll_read(stream, buffer, context);
            let arrived = self.alarm.wait(self.worker, Wait::Other, arrival).await?;
            let bytes = arrived.map_err(|error| stream_outcome(&error))?;
            if bytes == 0 {
                // The end of the connection may be the end of the answer.
                return match (parser.finish(), head) {
                    (Ok(Some(ResponseEvent::End)), Some((status, _))) => Ok(Answer {
                        status,
                        keep_alive: false,
                    }),
                    _ => Err(Outcome::PeerClosed),
                };
            }
            if let Some(answer) = digest(parser, &self.buffer[..bytes], &mut head)? {
                return Ok(answer);
            }
        }
    }
}

/// Feeds the parser; gives the answer once it is whole.
fn digest(
    parser: &mut ResponseParser,
    input: &[u8],
    head_seen: &mut Option<(u16, bool)>,
) -> Result<Option<Answer>, Outcome> {
    let mut read = 0;
    loop {
        let (consumed, event) = parser
            .advance(&input[read..])
            .map_err(|_| Outcome::Malformed)?;
        read += consumed;
        match event {
            None => return Ok(None),
            Some(ResponseEvent::Body(_)) => {}
            Some(ResponseEvent::Head(head)) => {
                *head_seen = Some((head.status, head.keep_alive));
            }
            Some(ResponseEvent::End) => {
                let (status, keep_alive) = head_seen.ok_or(Outcome::Malformed)?;
                return Ok(Some(Answer {
                    status,
                    // What nobody asked for cannot be told from the next answer.
                    keep_alive: keep_alive && read == input.len(),
                }));
            }
        }
    }
}

fn poll_read(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(buffer);
    // Unlike `try_read` this knows that a short read has emptied the socket, and
    // saves the system call that would say so.
    match Pin::new(stream).poll_read(context, &mut buffer) {
        Poll::Ready(Ok(())) => Poll::Ready(Ok(buffer.filled().len())),
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Pending => Poll::Pending,
    }
}

/// The deadline of the request under way. The runtime's timer is set once every
/// [`TIMEOUT`] and not for each request.
#[derive(Debug)]
struct Alarm {
    deadline: Moment,
    /// Goes off no later than `deadline`.
    sleep: Pin<Box<Sleep>>,
}

impl Alarm {
    fn new() -> Self {
        Self {
            deadline: clock::now() + TIMEOUT,
            sleep: Box::pin(sleep(TIMEOUT.as_duration())),
        }
    }

    /// Waits for `what` until the deadline.
    async fn wait<T>(
        &mut self,
        worker: &Worker,
        wait: Wait,
        mut what: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Outcome> {
        let mut is_waiting = false;
        let output = poll_fn(|context| {
            if let Poll::Ready(output) = what(context) {
                return Poll::Ready(Ok(output));
            }
            while self.sleep.as_mut().poll(context).is_ready() {
                let left = self.deadline.since(clock::now());
                if left == Nanos::ZERO {
                    return Poll::Ready(Err(Outcome::TimedOut));
                }
                let later = self.sleep.deadline() + left.as_duration();
                self.sleep.as_mut().reset(later);
            }
            if !is_waiting {
                is_waiting = true;
                worker.state.borrow_mut().suspend(wait, clock::now());
            }
            Poll::Pending
        })
        .await;
        if is_waiting {
            worker.state.borrow_mut().resume(wait, clock::now());
        }
        output
    }
}
