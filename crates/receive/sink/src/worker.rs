//! What the tasks of one worker share.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use stillwell_metric::SinkShard;
use stillwell_plan::LinesPlan;
use stillwell_scope::{Drain, Stopping, Token};
use stillwell_units::Nanos;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::account::Account;
use crate::ledger::{SharedLedger, Stamps};
use crate::prefixes::{Events, SharedPrefixes};
use crate::steering::{ReopenError, Socket, Steering};
use crate::throttle::Throttle;

/// What is read in one go: enough that the call costs nothing beside the copy,
/// little enough to stay in the second-level cache. The largest datagram fits.
const BUFFER_BYTES: usize = 256 << 10;

/// So long, or so many reads, a loop goes on taking what its socket holds when it
/// is to end.
const DRAIN: Drain = Drain {
    length: Nanos::from_millis(100),
    items: 1024,
    quiet: Nanos::ZERO,
};

/// The same of a stream that has not ended: what a subject wrote in its last moment
/// lies in its own side of the socket until ours has room.
const STREAM_DRAIN: Drain = Drain {
    length: Nanos::from_millis(250),
    quiet: Nanos::from_millis(50),
    ..DRAIN
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
    /// What lines must look like whose stamps are entered.
    lines: Option<Arc<LinesPlan>>,
    /// Where times that stand before events are entered, if they do.
    prefixes: Option<Arc<SharedPrefixes>>,
    /// What holds it back, if it is slow on purpose.
    throttle: RefCell<Option<Rc<Throttle>>>,
    /// What changes how it behaves, if anything does.
    steering: Option<Arc<Steering>>,
    /// Which version of that it follows.
    heeded: Cell<u64>,
    is_paused: Cell<bool>,
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
            lines: None,
            prefixes: None,
            throttle: RefCell::default(),
            steering: None,
            heeded: Cell::new(0),
            is_paused: Cell::new(false),
            buffer: RefCell::new(vec![0; BUFFER_BYTES]),
        }
    }

    /// The same, entering the stamps that it finds into `ledger`.
    pub(crate) fn with_ledger(self, ledger: Option<Arc<SharedLedger>>) -> Self {
        Self { ledger, ..self }
    }

    /// The same, entering only the stamps in lines that look like this.
    pub(crate) fn with_lines(self, lines: Option<Arc<LinesPlan>>) -> Self {
        Self { lines, ..self }
    }

    /// The same, of events before which times stand, which are entered there.
    pub(crate) fn with_prefixes(self, prefixes: Option<Arc<SharedPrefixes>>) -> Self {
        Self { prefixes, ..self }
    }

    /// The same, reading no more than this from all streams together.
    pub(crate) fn with_throttle(self, throttle: Option<Throttle>) -> Self {
        let throttle = RefCell::new(throttle.map(Rc::new));
        Self { throttle, ..self }
    }

    /// The same, behaving as it is told.
    pub(crate) fn with_steering(self, steering: Option<Arc<Steering>>) -> Self {
        Self { steering, ..self }
    }

    /// What changes how it behaves, if anything does.
    pub(crate) const fn steering(&self) -> Option<&Arc<Steering>> {
        self.steering.as_ref()
    }

    /// Looks for stamps in what one connection or socket brings.
    pub(crate) fn stamps(&self) -> Stamps {
        Stamps::new(self.ledger.as_ref(), self.lines.as_ref())
    }

    /// Reads the events of one connection or socket: lines, or what has a time before
    /// it.
    pub(crate) fn events(&self) -> Events {
        Events::new(self.prefixes.as_ref())
    }

    /// How one of the worker's loops over a listener or over datagrams ends.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping::new(&self.token, DRAIN)
    }

    /// How one over a stream ends, for [`Worker::receive`].
    pub(crate) fn stopping_stream(&self) -> Stopping {
        Stopping::new(&self.token, STREAM_DRAIN)
    }

    /// Waits for data on `stream`, shows it to `take`, and gives its length: 0
    /// where the peer has closed. `None` once the worker is to end and nothing
    /// more comes.
    pub(crate) async fn receive(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        stopping: &mut Stopping,
        mut take: impl FnMut(&[u8]),
    ) -> Option<io::Result<usize>> {
        loop {
            let version = self.heed();
            if self.is_paused.get() {
                self.until_resumed(version).await?;
                continue;
            }
            let throttle = self.throttle.borrow().clone();
            let mut most = BUFFER_BYTES;
            if let Some(throttle) = &throttle {
                let wait = throttle.wait(&self.token);
                if self.unless_changed(version, wait).await.is_none() {
                    continue;
                }
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
            let Some(read) = self.unless_changed(version, reading).await else {
                continue;
            };
            if let (Some(throttle), Some(Ok(length))) = (&throttle, &read) {
                throttle.took(*length);
            }
            return read;
        }
    }

    /// Follows what it was told since it last looked. Gives the version that it
    /// follows now.
    pub(crate) fn heed(&self) -> u64 {
        let Some(steering) = &self.steering else {
            return 0;
        };
        let version = steering.version();
        if self.heeded.replace(version) != version {
            let now = steering.behaviour();
            self.is_paused.set(now.is_paused);
            let throttle = now.limit;
            let throttle = throttle.map(|limit| Throttle::share(limit, steering.workers()));
            self.throttle.replace(throttle.map(Rc::new));
        }
        version
    }

    /// Whether it reads nothing for now.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    /// Waits for a change; `None` where it is to end: it reads no more then.
    pub(crate) async fn until_resumed(&self, version: u64) -> Option<()> {
        // Both arms are cancel-safe. What it was told before its end is heeded.
        tokio::select! {
            biased;
            () = self.changed_from(version) => Some(()),
            () = self.token.cancelled() => None,
        }
    }

    /// What `future` gives, which is given up where something changes first.
    async fn unless_changed<T>(&self, version: u64, future: impl Future<Output = T>) -> Option<T> {
        if self.steering.is_none() {
            return Some(future.await);
        }
        tokio::select! {
            biased;
            () = self.changed_from(version) => None,
            done = future => Some(done),
        }
    }

    /// Waits until it is told something else than in `version`; for ever where nothing
    /// tells it. Cancel-safe.
    pub(crate) async fn changed_from(&self, version: u64) {
        match &self.steering {
            Some(steering) => steering.changed_from(version).await,
            None => pending().await,
        }
    }

    /// Waits until its connections are to be cut once more than `seen` times; for ever
    /// where nobody cuts them. Cancel-safe.
    pub(crate) async fn cut(&self, seen: u64) {
        let Some(steering) = &self.steering else {
            return pending().await;
        };
        loop {
            let version = steering.version();
            if steering.behaviour().cuts_off(seen) {
                return;
            }
            steering.changed_from(version).await;
        }
    }

    /// Whether its connections are to be cut once more than `seen` times.
    pub(crate) fn is_cut_off(&self, seen: u64) -> bool {
        let steering = self.steering.as_ref();
        steering.is_some_and(|steering| steering.behaviour().cuts_off(seen))
    }

    /// Its socket is closed: waits until there is another, with how often connections
    /// had been cut by then. `None` where it is to end.
    pub(crate) async fn reopened(&self) -> Result<Option<(Socket, u64)>, ReopenError> {
        let Some(steering) = &self.steering else {
            return Ok(None);
        };
        steering.closed();
        steering.reopen(&self.token).await
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
