//! State that the tasks of one worker share.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use stillwell_metric::SinkShard;
use stillwell_scope::{Drain, Stopping, Token};
use stillwell_units::Nanos;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::account::TimeAccount;

/// Size of a read: large enough that the call costs nothing beside the copy, small enough for
/// the second-level cache. The largest datagram fits.
const BUFFER_BYTES: usize = 256 << 10;

/// Limits on a loop that still takes what its socket holds when it is to end: a time, and a
/// number of reads.
const DRAIN: Drain = Drain {
    length: Nanos::from_millis(100),
    items: 1024,
    quiet: Nanos::ZERO,
};

/// The same for a stream that has not ended: bytes that a target wrote last wait in its side
/// of the socket until ours has room.
const STREAM_DRAIN: Drain = Drain {
    length: Nanos::from_millis(250),
    quiet: Nanos::from_millis(50),
    ..DRAIN
};

/// An idle worker's account is brought up to date so often.
const ACCOUNT_PERIOD: Duration = Duration::from_millis(100);

/// State that the tasks of one worker share.
#[derive(Debug)]
pub struct ServerWorker {
    /// The counters that only this worker writes.
    pub shard: Arc<SinkShard>,
    /// Ends the worker.
    pub token: Token,
    /// Time breakdown of the worker.
    pub account: TimeAccount,
    /// Data is counted and forgotten, so one buffer serves all connections.
    buffer: RefCell<Vec<u8>>,
}

impl ServerWorker {
    /// A worker whose time account begins now.
    #[must_use]
    pub fn new(shard: Arc<SinkShard>, token: Token) -> Self {
        Self {
            shard,
            token,
            account: TimeAccount::begin(),
            buffer: RefCell::new(vec![0; BUFFER_BYTES]),
        }
    }

    /// The end of one of the worker's loops over a listener or over datagrams.
    #[must_use]
    pub fn stopping(&self) -> Stopping {
        Stopping::new(&self.token, DRAIN)
    }

    /// The end of a loop over a stream, for [`ServerWorker::receive`].
    #[must_use]
    pub fn stopping_stream(&self) -> Stopping {
        Stopping::new(&self.token, STREAM_DRAIN)
    }

    /// Waits for data on `stream`, shows it to `take`, and returns its length: 0
    /// where the peer has closed. `None` once the worker is to end and nothing
    /// more comes. Cancel-safe.
    pub async fn receive(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        stopping: &mut Stopping,
        mut take: impl FnMut(&[u8]),
    ) -> Option<io::Result<usize>> {
        stopping
            .next(|context| self.poll_receive(context, stream, usize::MAX, &mut take))
            .await
    }

    /// One read of at most `bytes_max`, shown to `take`. Returns its length.
    pub fn poll_receive(
        &self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin),
        bytes_max: usize,
        take: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<usize>> {
        let mut buffer = self.buffer.borrow_mut();
        let mut read = ReadBuf::new(&mut buffer[..bytes_max.min(BUFFER_BYTES)]);
        let polled = Pin::new(&mut *stream).poll_read(context, &mut read);
        polled.map_ok(|()| {
            take(read.filled());
            read.filled().len()
        })
    }

    /// One datagram from `poll`, shown to `take`.
    pub fn poll_datagram(
        &self,
        poll: impl FnOnce(&mut ReadBuf<'_>) -> Poll<io::Result<()>>,
        take: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<()>> {
        let mut buffer = self.buffer.borrow_mut();
        let mut read = ReadBuf::new(&mut buffer);
        poll(&mut read).map_ok(|()| take(read.filled()))
    }
}

/// Ticks that keep an idle worker's account up to date.
#[must_use]
pub fn account_ticks() -> Interval {
    let mut ticks = interval(ACCOUNT_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
