//! State that the tasks of one worker share.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::SinkShard;
use stillwell_plan::sink::LinesPlan;
use stillwell_scope::{Stopping, Token};
use stillwell_wire::server::{Activity, Behaviour, Reader, ServerWorker, busy};
use tokio::io::AsyncRead;

use crate::ledger::{SharedLedger, Stamps};
use crate::prefixes::{Events, SharedPrefixes};
use crate::socket::SinkSocket;
use crate::steering::{ReopenError, Steering};
use crate::throttle::Throttle;

/// State that the tasks of one worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Counters, cancellation, time account and read buffer.
    pub(crate) base: Rc<ServerWorker>,
    /// Ledger for stamps, where they are configured.
    ledger: Option<Arc<SharedLedger>>,
    /// Required form of the lines whose stamps are entered.
    lines: Option<Arc<LinesPlan>>,
    /// Recorder of the times before events, where they are configured.
    prefixes: Option<Arc<SharedPrefixes>>,
    /// Limit of its speed, if it is slow on purpose.
    throttle: RefCell<Option<Rc<Throttle>>>,
    /// Changes of its behaviour, if there are any.
    steering: Option<Arc<Steering>>,
    /// The version of the behaviour that it follows.
    applied_version: Cell<u64>,
    is_paused: Cell<bool>,
}

/// The reads of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionReads {
    stopping: Stopping,
    activity: Activity,
}

impl Worker {
    pub(crate) fn new(shard: Arc<SinkShard>, token: Token) -> Self {
        Self {
            base: Rc::new(ServerWorker::new(shard, token)),
            ledger: None,
            lines: None,
            prefixes: None,
            throttle: RefCell::default(),
            steering: None,
            applied_version: Cell::new(0),
            is_paused: Cell::new(false),
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

    /// The same, of events with times before them, which are recorded there.
    pub(crate) fn with_prefixes(self, prefixes: Option<Arc<SharedPrefixes>>) -> Self {
        Self { prefixes, ..self }
    }

    /// The same, reading no more than this from all streams together.
    pub(crate) fn with_throttle(self, throttle: Option<Throttle>) -> Self {
        let throttle = RefCell::new(throttle.map(Rc::new));
        Self { throttle, ..self }
    }

    /// The same, with behaviour that changes.
    pub(crate) fn with_steering(self, steering: Option<Arc<Steering>>) -> Self {
        Self { steering, ..self }
    }

    /// Changes of its behaviour, if there are any.
    pub(crate) const fn steering(&self) -> Option<&Arc<Steering>> {
        self.steering.as_ref()
    }

    /// Returns true if the moment at which it finds an event is recorded.
    pub(crate) const fn times_events(&self) -> bool {
        self.ledger.is_some() || self.prefixes.is_some()
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

    /// The reads of a connection with this activity.
    pub(crate) fn reads(&self, activity: Activity) -> ConnectionReads {
        ConnectionReads {
            stopping: self.base.stopping_stream(),
            activity,
        }
    }

    /// Waits for data on `stream`, shows it to `take`, and gives its length: 0
    /// where the peer has closed. `None` once the worker is to end and nothing
    /// more comes. The connection is not idle while the sink is paused or waits for
    /// its limit.
    pub(crate) async fn receive(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        reads: &mut ConnectionReads,
        take: impl FnMut(&[u8]),
    ) -> Option<io::Result<usize>> {
        self.receive_at_most(usize::MAX, stream, reads, take).await
    }

    /// The same, with no more than `bytes_max` at once.
    pub(crate) async fn receive_at_most(
        &self,
        bytes_max: usize,
        stream: &mut (impl AsyncRead + Unpin),
        reads: &mut ConnectionReads,
        mut take: impl FnMut(&[u8]),
    ) -> Option<io::Result<usize>> {
        loop {
            let version = self.apply_steering();
            if self.is_paused.get() {
                busy(&reads.activity, self.until_resumed(version)).await?;
                continue;
            }
            let throttle = self.throttle.borrow().clone();
            let mut most = bytes_max;
            if let Some(throttle) = &throttle {
                let wait = busy(&reads.activity, throttle.wait(&self.base.token));
                if self.unless_changed(version, wait).await.is_none() {
                    continue;
                }
                most = most.min(throttle.read_max());
            }
            let reading = reads.stopping.next(|context| {
                let base = &self.base;
                base.poll_receive(context, stream, most, &mut take)
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

    /// Follows the changes since it last looked. Returns the version that it follows now.
    pub(crate) fn apply_steering(&self) -> u64 {
        let Some(steering) = &self.steering else {
            return 0;
        };
        let version = steering.version();
        if self.applied_version.replace(version) != version {
            let now = steering.behaviour();
            self.is_paused.set(now.is_paused);
            let throttle = now.limit;
            let throttle = throttle.map(|limit| Throttle::share(limit, steering.workers()));
            self.throttle.replace(throttle.map(Rc::new));
        }
        version
    }

    /// Returns true if it reads nothing for now.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    /// Waits for a change; `None` where it is to end: it reads no more then.
    pub(crate) async fn until_resumed(&self, version: u64) -> Option<()> {
        // Both arms are cancel-safe. Changes before its end are followed.
        tokio::select! {
            biased;
            () = self.changed_from(version) => Some(()),
            () = self.base.token.cancelled() => None,
        }
    }

    /// Returns the result of `future`, which is given up where something changes first.
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

    /// Waits until the behaviour differs from `version`; for ever where nothing changes it.
    /// Cancel-safe.
    pub(crate) async fn changed_from(&self, version: u64) {
        match &self.steering {
            Some(steering) => steering.changed_from(version).await,
            None => pending().await,
        }
    }

    /// Waits until its connections are to be cut once more than `seen` times; for ever where
    /// they are never cut. Cancel-safe.
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

    /// Returns true if its connections are to be cut once more than `seen` times.
    pub(crate) fn is_cut_off(&self, seen: u64) -> bool {
        let steering = self.steering.as_ref();
        steering.is_some_and(|steering| steering.behaviour().cuts_off(seen))
    }

    /// Its socket is closed: waits until there is another, with how often connections
    /// had been cut by then. `None` where it is to end.
    pub(crate) async fn reopened(&self) -> Result<Option<(SinkSocket, u64)>, ReopenError> {
        let Some(steering) = &self.steering else {
            return Ok(None);
        };
        steering.closed();
        steering.reopen(&self.base.token).await
    }
}

impl Reader for Worker {
    type State = ConnectionReads;

    fn begin(&self) -> ConnectionReads {
        self.reads(Activity::default())
    }

    async fn read(
        &self,
        reads: &mut ConnectionReads,
        stream: &mut (impl AsyncRead + Unpin),
        take: impl FnMut(&[u8]),
    ) -> Option<io::Result<usize>> {
        self.receive(stream, reads, take).await
    }

    async fn stopped(&self) {
        self.base.token.cancelled().await;
    }

    fn is_steered(&self) -> bool {
        self.steering.is_some()
    }

    fn reads_at_once(&self) -> bool {
        self.steering.is_none() && self.throttle.borrow().is_none()
    }

    fn behaviour(&self) -> Behaviour {
        let version = self.apply_steering();
        let steering = self.steering.as_ref();
        Behaviour {
            version,
            holds_responses: steering.is_some_and(|steering| steering.behaviour().is_queueing),
        }
    }

    async fn changed(&self, version: u64) {
        self.changed_from(version).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use stillwell_metric::Labels;
    use stillwell_plan::step::SinkChange;
    use stillwell_scope::clock;
    use stillwell_units::{ByteRate, Seed};
    use stillwell_wire::server::watched;
    use tokio::io::duplex;

    use super::*;
    use crate::socket::Place;
    use crate::steering::SinkControl;

    fn worker() -> Worker {
        Worker::new(Arc::new(SinkShard::new(Labels::none())), Token::new())
    }

    /// Waits for data that the client does not send; returns true if the connection is idle then.
    async fn becomes_idle(worker: &Worker) -> bool {
        let (_client, mut stream) = duplex(64);
        let activity = Activity::default();
        let mut reads = worker.reads(Rc::clone(&activity));
        let receiving = worker.receive(&mut stream, &mut reads, |_| {});
        let mut receiving = pin!(watched(Rc::clone(&activity), receiving));
        poll_fn(|context| {
            assert!(receiving.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        activity.get() <= clock::now()
    }

    #[tokio::test]
    async fn a_connection_is_not_idle_while_its_sink_does_not_read() {
        assert!(becomes_idle(&worker()).await);
        let place = Place::Nowhere;
        let steering = Arc::new(Steering::new(place, 1, None, &Seed::from_number(1)));
        let control = SinkControl(Arc::clone(&steering));
        let paused = worker().with_steering(Some(steering));
        for (change, is_idle) in [(SinkChange::Pause, false), (SinkChange::Resume, true)] {
            control.change(&change);
            assert_eq!(becomes_idle(&paused).await, is_idle, "{change:?}");
        }
        let throttle = Throttle::share(ByteRate::try_new(1).unwrap(), 1);
        throttle.took(600);
        let slow = worker().with_throttle(Some(throttle));
        assert!(!becomes_idle(&slow).await);
    }
}
