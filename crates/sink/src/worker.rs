//! What the tasks of one worker share.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use stillwell_metric::SinkShard;
use stillwell_scope::{Drain, Stopping, Token};
use stillwell_units::Nanos;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::account::Account;
use crate::ledger::{SharedLedger, Stamps};
use crate::throttle::Throttle;

/// What is read in one go: enough that the call costs nothing beside the copy,
/// little enough to stay in the second-level cache. The largest datagram fits.
const BUFFER_BYTES: usize = 256 << 10;

/// So long, or so many reads, a loop goes on taking what its socket holds when it
/// is to end.
const DRAIN: Drain = Drain {
    length: Nanos::from_millis(100),
    items: 1024,
};

/// An idle worker's account is brought up to date so often.
const ACCOUNT_PERIOD: Duration = Duration::from_millis(100);

/// What the tasks of one worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) shard: Arc<SinkShard>,
    pub(crate) token: Token,
    pub(crate) account: Account,
    /// Where stamps are entered, if anybody wants to know.
    ledger: Option<Arc<SharedLedger>>,
    /// What holds it back, if it is slow on purpose.
    throttle: Option<Throttle>,
    /// Data is counted and forgotten, so one buffer serves all connections.
    buffer: RefCell<Vec<u8>>,
}

impl Worker {
    pub(crate) fn new(shard: Arc<SinkShard>, token: Token) -> Self {
        Self {
            shard,
            token,
            account: Account::begin(),
            ledger: None,
            throttle: None,
            buffer: RefCell::new(vec![0; BUFFER_BYTES]),
        }
    }

    /// The same, entering the stamps that it finds into `ledger`.
    pub(crate) fn with_ledger(self, ledger: Option<Arc<SharedLedger>>) -> Self {
        Self { ledger, ..self }
    }

    /// The same, reading no more than this from all streams together.
    pub(crate) fn with_throttle(self, throttle: Option<Throttle>) -> Self {
        Self { throttle, ..self }
    }

    /// Looks for stamps in what one connection or socket brings.
    pub(crate) fn stamps(&self) -> Stamps {
        Stamps::new(self.ledger.as_ref())
    }

    /// How one of the worker's loops over a socket ends.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping::new(&self.token, DRAIN)
    }

    /// Waits for data on `stream`, shows it to `take`, and gives its length: 0
    /// where the peer has closed. `None` once the worker is to end and nothing
    /// is left to read.
    pub(crate) async fn receive(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        stopping: &mut Stopping,
        mut take: impl FnMut(&[u8]),
    ) -> Option<io::Result<usize>> {
        let mut most = BUFFER_BYTES;
        if let Some(throttle) = &self.throttle {
            throttle.wait(&self.token).await;
            most = throttle.read_max().min(BUFFER_BYTES);
        }
        let reading = stopping.next(|context| {
            let mut buffer = self.buffer.borrow_mut();
            let mut read = ReadBuf::new(&mut buffer[..most]);
            let polled = Pin::new(&mut *stream).poll_read(context, &mut read);
            polled.map_ok(|()| {
                take(read.filled());
                read.filled().len()
            })
        });
        let read = reading.await;
        if let (Some(throttle), Some(Ok(length))) = (&self.throttle, &read) {
            throttle.took(*length);
        }
        read
    }

    /// As [`Self::receive`], for one datagram from `poll`.
    pub(crate) fn poll_datagram(
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
pub(crate) fn account_ticks() -> Interval {
    let mut ticks = interval(ACCOUNT_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
