//! Moves the bytes of one connection of a server.

use std::future::{Future, pending, poll_fn};
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::time::Duration;

use stillwell_scope::{Stopping, clock};
use stillwell_units::Moment;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::select;
use tokio::time::{Instant, timeout, timeout_at};

use super::open::{Activity, busy};
use super::protocol::{Output, Protocol};
use super::worker::ServerWorker;
use crate::Timer;

/// A client may go on sending for this long on a connection that is closed early, so
/// it reads the end rather than a reset.
const LINGER_MAX: Duration = Duration::from_millis(100);

/// A client has this long to send the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// One read of a [`PlainReader`].
const PLAIN_BYTES: usize = 8 << 10;

/// The side of a worker that a connection reads through.
pub trait Reader {
    /// The state of one connection's reads.
    type State;

    /// The state at the start of a connection.
    fn begin(&self) -> Self::State;

    /// Waits for bytes on `stream`, shows them to `take`, and returns their number: 0 where
    /// the peer has closed, `None` once the server is to end. Cancel-safe.
    fn read(
        &self,
        state: &mut Self::State,
        stream: &mut (impl AsyncRead + Unpin),
        take: impl FnMut(&[u8]),
    ) -> impl Future<Output = Option<io::Result<usize>>>;

    /// Waits until the server is to end. Cancel-safe.
    fn stopped(&self) -> impl Future<Output = ()>;

    /// Returns true if the server's behaviour may change while it runs.
    fn is_steered(&self) -> bool {
        false
    }

    /// Returns true if it reads what has arrived at once, so a slow request is its client's
    /// doing.
    fn reads_at_once(&self) -> bool {
        true
    }

    /// The present behaviour.
    fn behaviour(&self) -> Behaviour {
        Behaviour::default()
    }

    /// Waits until the behaviour is another than that of `version`. Cancel-safe.
    fn changed(&self, _version: u64) -> impl Future<Output = ()> {
        pending()
    }
}

/// The behaviour of a server at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behaviour {
    /// Differs after each change.
    pub version: u64,
    /// True if responses are held back.
    pub holds_responses: bool,
}

impl Reader for ServerWorker {
    type State = Stopping;

    fn begin(&self) -> Stopping {
        self.stopping_stream()
    }

    async fn read(
        &self,
        stopping: &mut Stopping,
        stream: &mut (impl AsyncRead + Unpin),
        take: impl FnMut(&[u8]),
    ) -> Option<io::Result<usize>> {
        self.receive(stream, stopping, take).await
    }

    async fn stopped(&self) {
        self.token.cancelled().await;
    }
}

/// Reads without a worker, for pages of the control plane. Dropping the future of
/// [`drive`] ends the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainReader;

impl Reader for PlainReader {
    type State = Vec<u8>;

    fn begin(&self) -> Vec<u8> {
        vec![0; PLAIN_BYTES]
    }

    async fn read(
        &self,
        buffer: &mut Vec<u8>,
        stream: &mut (impl AsyncRead + Unpin),
        mut take: impl FnMut(&[u8]),
    ) -> Option<io::Result<usize>> {
        let read = stream.read(buffer).await;
        if let Ok(length) = read {
            take(&buffer[..length]);
        }
        Some(read)
    }

    async fn stopped(&self) {
        pending().await
    }
}

/// Serves one connection until `protocol` ends it, and returns the manner of the close.
/// `None` where nothing is left to do: the peer has closed, the connection broke, it was
/// cut, or the server is to end.
pub async fn drive<P: Protocol, R: Reader>(
    protocol: &mut P,
    reader: &R,
    state: &mut R::State,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> Option<P::End> {
    drive_watched(protocol, reader, state, &Activity::default(), stream).await
}

/// The same of a connection that is closed for another one while it is idle. It is not idle
/// while a response is due, now or later.
pub async fn drive_watched<P: Protocol, R: Reader>(
    protocol: &mut P,
    reader: &R,
    state: &mut R::State,
    activity: &Activity,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> Option<P::End> {
    let mut timer = DueTimer::default();
    let mut head = HeadDeadline::default();
    loop {
        let behaviour = reader.behaviour();
        let is_held = behaviour.holds_responses;
        send_due(protocol, stream, is_held).await.ok()?;
        if let Some(end) = protocol.end() {
            return Some(end);
        }
        let response_due = protocol.due();
        let due = response_due.filter(|_| !is_held);
        let is_full = protocol.is_full();
        let head_due = head.of(protocol.open_head().filter(|_| reader.reads_at_once()));
        let receive = async {
            if is_full {
                return pending().await;
            }
            let take = |bytes: &[u8]| protocol.take(bytes, clock::now());
            let reading = reader.read(state, stream, take);
            match head_due {
                None => reading.await,
                // A client that is too slow ends as one that has closed.
                Some(due) => timeout_at(due, reading).await.unwrap_or(Some(Ok(0))),
            }
        };
        let read = if due.is_none() && !is_full && !reader.is_steered() {
            receive.await
        } else {
            // All arms are cancel-safe.
            let waiting = pin!(async {
                select! {
                    biased;
                    waited = timer.until(due.unwrap_or(Moment::new(0))), if due.is_some() => match waited {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(None),
                    },
                    () = reader.changed(behaviour.version), if reader.is_steered() => ControlFlow::Continue(()),
                    read = receive => ControlFlow::Break(read),
                    () = reader.stopped(), if is_full => ControlFlow::Break(None),
                }
            });
            let waited = match response_due {
                Some(_) => busy(activity, waiting).await,
                None => waiting.await,
            };
            match waited {
                ControlFlow::Continue(()) => continue,
                ControlFlow::Break(read) => read,
            }
        };
        if protocol.is_cut() {
            return None;
        }
        match read? {
            Ok(1..) => {}
            Ok(0) | Err(_) => {
                protocol.finish();
                return None;
            }
        }
    }
}

/// Sends everything that is laid out, and everything that is due unless `is_held`.
///
/// # Errors
/// The connection broke.
pub async fn send_due(
    output: &mut impl Output,
    stream: &mut (impl AsyncWrite + Unpin),
    is_held: bool,
) -> io::Result<()> {
    let mut has_sent = false;
    loop {
        if !is_held && output.needs_filling() {
            output.fill(clock::now());
        }
        if output.unsent().is_empty() {
            return if has_sent {
                stream.flush().await
            } else {
                Ok(())
            };
        }
        has_sent = true;
        let write = |context: &mut std::task::Context<'_>| {
            Pin::new(&mut *stream).poll_write(context, output.unsent())
        };
        match poll_fn(write).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            length => output.advance(length),
        }
    }
}

/// The time by which the head of a request must be whole.
#[derive(Debug, Default)]
pub struct HeadDeadline {
    open: Option<(u64, Instant)>,
}

impl HeadDeadline {
    /// Returns the deadline of the head in progress, which is that of request `number`; it
    /// begins when this number is seen first.
    #[expect(
        clippy::disallowed_methods,
        reason = "the deadline is for tokio's timer"
    )]
    pub fn of(&mut self, number: Option<u64>) -> Option<Instant> {
        let is_same = |open: &(u64, Instant)| Some(open.0) == number;
        let begun = || number.map(|number| (number, Instant::now() + HEAD_MAX));
        self.open = self.open.filter(is_same).or_else(begun);
        self.open.map(|(_, due)| due)
    }
}

/// A timer that is made once it is needed.
#[derive(Debug, Default)]
pub struct DueTimer {
    timer: Option<Timer>,
}

impl DueTimer {
    /// Waits until `due`. Cancel-safe.
    ///
    /// # Errors
    /// The kernel has no descriptor for a timer.
    pub async fn until(&mut self, due: Moment) -> io::Result<()> {
        let timer = match self.timer.take() {
            Some(timer) => timer,
            None => Timer::new()?,
        };
        self.timer.insert(timer).until(due).await;
        Ok(())
    }
}

/// Closes this side and reads until the peer has closed its own, so bytes which it
/// still sends do not destroy the response. `discard` reads once and returns whether more
/// may come.
pub async fn linger<S: AsyncWrite + Unpin>(
    stream: &mut S,
    mut discard: impl AsyncFnMut(&mut S) -> bool,
) {
    // Over TLS the close is a record, for which a peer that reads nothing leaves no room.
    let closed = async {
        if stream.shutdown().await.is_ok() {
            while discard(stream).await {}
        }
    };
    timeout(LINGER_MAX, closed).await.unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::task::Poll;

    use stillwell_units::Nanos;
    use tokio::io::duplex;

    use super::super::open::watched;
    use super::*;

    /// A connection with one response, or without.
    struct OneResponse {
        due: Option<Moment>,
    }

    impl Output for OneResponse {
        fn fill(&mut self, _: Moment) {}

        fn unsent(&self) -> &[u8] {
            &[]
        }

        fn advance(&mut self, _: usize) {}
    }

    impl Protocol for OneResponse {
        type End = ();

        fn take(&mut self, _: &[u8], _: Moment) {}

        fn due(&self) -> Option<Moment> {
            self.due
        }

        fn end(&self) -> Option<()> {
            None
        }

        fn finish(&mut self) {}
    }

    /// Reads, and holds responses or not.
    struct HoldingReader {
        holds_responses: bool,
    }

    impl Reader for HoldingReader {
        type State = Vec<u8>;

        fn begin(&self) -> Vec<u8> {
            PlainReader.begin()
        }

        async fn read(
            &self,
            buffer: &mut Vec<u8>,
            stream: &mut (impl AsyncRead + Unpin),
            take: impl FnMut(&[u8]),
        ) -> Option<io::Result<usize>> {
            PlainReader.read(buffer, stream, take).await
        }

        async fn stopped(&self) {
            pending().await
        }

        fn is_steered(&self) -> bool {
            self.holds_responses
        }

        fn behaviour(&self) -> Behaviour {
            Behaviour {
                version: 0,
                holds_responses: self.holds_responses,
            }
        }
    }

    #[tokio::test]
    async fn a_connection_is_not_idle_while_its_response_is_delayed_or_held() {
        let now = clock::now();
        let later = now + Nanos::from_secs(60);
        for (due, holds_responses, is_busy) in [
            (None, false, false),
            (None, true, false),
            (Some(later), false, true),
            (Some(later), true, true),
            (Some(now), true, true),
        ] {
            let (mut protocol, reader) = (OneResponse { due }, HoldingReader { holds_responses });
            let (_client, mut stream) = duplex(64);
            let (activity, mut buffer) = (Activity::default(), reader.begin());
            let driven = drive_watched(&mut protocol, &reader, &mut buffer, &activity, &mut stream);
            let mut driven = pin!(watched(Rc::clone(&activity), driven));
            poll_fn(|context| {
                assert!(driven.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            let is_active = activity.get() > clock::now();
            assert_eq!(is_active, is_busy, "{due:?}, {holds_responses}");
        }
    }
}
