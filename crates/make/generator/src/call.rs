//! One request and its answer over HTTP/1.1, with the answer's body: for
//! generators whose next step follows from what was answered.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use stillwell_http::{H1ResponseEvent, HeadError, RequestTemplate, ResponseParser, Target};
use stillwell_metric::Outcome;
use stillwell_wire::{Connection, DialError, Stream, dial};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::timeout;

use stillwell_wire::stream_outcome;
use stillwell_worker::{Sending, StampText, Wait, Worker, watched, write_header};

/// Maximum time for an answer, writing the request included.
const TIMEOUT: Duration = Duration::from_secs(30);

const BUFFER_BYTES: usize = 16 << 10;

/// Maximum number of bytes kept of an answer's body; more is read and dropped.
const BODY_BYTES_MAX: usize = 256 << 10;

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'h> {
    pub(crate) template: &'h RequestTemplate,
    /// Its stamp, if the head has one.
    pub(crate) stamp: Option<&'h StampText>,
}

impl<'h> From<&'h RequestTemplate> for Head<'h> {
    /// Without a stamp.
    fn from(template: &'h RequestTemplate) -> Self {
        let stamp = None;
        Self { template, stamp }
    }
}

/// The body of a request on its way out.
pub(crate) trait Outgoing {
    /// Returns the bytes that are not written yet.
    fn rest(&self) -> &[u8];

    /// The kernel has taken `bytes` more.
    fn wrote(&mut self, bytes: usize);
}

impl Outgoing for Sending<'_> {
    fn rest(&self) -> &[u8] {
        Self::rest(self)
    }

    fn wrote(&mut self, bytes: usize) {
        Self::wrote(self, bytes);
    }
}

/// A body that belongs to no schedule.
#[derive(Debug)]
pub(crate) struct Unscheduled<'a>(pub(crate) &'a [u8]);

impl Outgoing for Unscheduled<'_> {
    fn rest(&self) -> &[u8] {
        self.0
    }

    fn wrote(&mut self, bytes: usize) {
        self.0 = &self.0[bytes..];
    }
}

/// A connection on which no answer is outstanding.
#[derive(Debug)]
pub(crate) struct CallConnection {
    stream: Connection,
    parser: ResponseParser,
}

impl CallConnection {
    /// Opens one to `address`, a `host:port`.
    pub(crate) async fn open(address: &str) -> Result<Self, DialError> {
        let stream: Stream = dial::tcp(address).await?.into();
        Ok(Self {
            stream: stream.into(),
            parser: ResponseParser::new(),
        })
    }

    /// Returns true once the connection is closed by the server, or has bytes without a
    /// request. Waits for nothing.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let stream = &mut self.stream;
        poll_fn(|context| {
            let mut room = [0; 1];
            let read = Pin::new(&mut *stream).poll_read(context, &mut ReadBuf::new(&mut room));
            Poll::Ready(read.is_ready())
        })
        .await
    }
}

/// A whole answer; its body is the caller's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CallAnswer {
    pub(crate) status: u16,
    /// True where another request may follow.
    pub(crate) keep_alive: bool,
}

/// Makes calls, one at a time.
#[derive(Debug)]
pub(crate) struct Caller {
    head: Vec<u8>,
    buffer: Box<[u8]>,
    body: Vec<u8>,
}

impl Caller {
    pub(crate) fn new() -> Self {
        Self {
            head: Vec::new(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            body: Vec::new(),
        }
    }

    /// The body of the last answer, as far as it is kept.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Sends one request over `link` and reads its answer. After a failure the
    /// link is of no use.
    pub(crate) async fn call(
        &mut self,
        worker: &Worker,
        link: &mut CallConnection,
        head: impl Into<Head<'_>>,
        outgoing: &mut impl Outgoing,
    ) -> Result<CallAnswer, Outcome> {
        self.head.clear();
        self.body.clear();
        let head = head.into();
        head.template
            .write_head(outgoing.rest().len() as u64, &mut self.head);
        if let Some(stamp) = head.stamp {
            write_header(stamp, &mut self.head);
        }
        let whole = async {
            let written = self.write(worker, link, outgoing).await;
            match (self.read(worker, link).await, written) {
                (Ok(answer), Ok(())) => Ok(answer),
                // It answered before it had read all, and wants no more.
                (Ok(answer), Err(_)) => Ok(CallAnswer {
                    keep_alive: false,
                    ..answer
                }),
                (Err(_), Err(error)) => Err(stream_outcome(&error)),
                (Err(outcome), Ok(())) => Err(outcome),
            }
        };
        timeout(TIMEOUT, whole)
            .await
            .unwrap_or(Err(Outcome::TimedOut))
    }

    async fn write(
        &self,
        worker: &Worker,
        link: &mut CallConnection,
        outgoing: &mut impl Outgoing,
    ) -> io::Result<()> {
        let mut head = self.head.as_slice();
        while !(head.is_empty() && outgoing.rest().is_empty()) {
            let stream = &mut link.stream;
            let parts = [IoSlice::new(head), IoSlice::new(outgoing.rest())];
            let write = |context: &mut Context<'_>| {
                Pin::new(&mut *stream).poll_write_vectored(context, &parts)
            };
            let bytes = watched(worker, Wait::Room, write).await?;
            if bytes == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            let of_head = bytes.min(head.len());
            head = &head[of_head..];
            outgoing.wrote(bytes - of_head);
        }
        link.stream.flush().await
    }

    async fn read(
        &mut self,
        worker: &Worker,
        link: &mut CallConnection,
    ) -> Result<CallAnswer, Outcome> {
        let mut head = None;
        loop {
            let (stream, buffer) = (&mut link.stream, &mut self.buffer);
            let read = |context: &mut Context<'_>| poll_read(stream, buffer, context);
            let bytes = watched(worker, Wait::Other, read)
                .await
                .map_err(|error| stream_outcome(&error))?;
            if bytes == 0 {
                // The end of the connection may be the end of the answer.
                return match (link.parser.finish(), head) {
                    (Ok(Some(H1ResponseEvent::End)), Some(answer)) => Ok(CallAnswer {
                        keep_alive: false,
                        ..answer
                    }),
                    _ => Err(Outcome::PeerClosed),
                };
            }
            let input = &self.buffer[..bytes];
            if let Some(answer) = digest(&mut link.parser, input, &mut head, &mut self.body)? {
                return Ok(answer);
            }
        }
    }
}

/// Feeds the parser; gives the answer once it is whole.
fn digest(
    parser: &mut ResponseParser,
    input: &[u8],
    head: &mut Option<CallAnswer>,
    body: &mut Vec<u8>,
) -> Result<Option<CallAnswer>, Outcome> {
    let mut read = 0;
    loop {
        let advanced = parser.advance(&input[read..]);
        let (consumed, event) = advanced.map_err(|_| Outcome::Malformed)?;
        read += consumed;
        match event {
            None => return Ok(None),
            Some(H1ResponseEvent::Body(part)) => {
                let room = BODY_BYTES_MAX.saturating_sub(body.len());
                body.extend_from_slice(&part[..part.len().min(room)]);
            }
            Some(H1ResponseEvent::Head(response)) => {
                *head = Some(CallAnswer {
                    status: response.status,
                    keep_alive: response.keep_alive,
                });
            }
            Some(H1ResponseEvent::End) => {
                let answer = head.ok_or(Outcome::Malformed)?;
                return Ok(Some(CallAnswer {
                    // Bytes without a request cannot be distinguished from the next answer.
                    keep_alive: answer.keep_alive && read == input.len(),
                    ..answer
                }));
            }
        }
    }
}

fn poll_read(
    stream: &mut Connection,
    buffer: &mut [u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(buffer);
    let polled = Pin::new(stream).poll_read(context, &mut buffer);
    polled.map_ok(|()| buffer.filled().len())
}

/// The head of `POST`s to `path` at `target`.
pub(crate) fn post(
    target: &Target,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<RequestTemplate, HeadError> {
    RequestTemplate::new("POST", path, &target.authority(), headers)
}
