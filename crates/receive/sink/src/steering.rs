//! Changes how a sink behaves while it runs.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use stillwell_plan::serve::{DelayExpression, ExpressionInputs};
use stillwell_plan::step::{Refusal, RefusePlan, SinkChange};
use stillwell_scope::{Token, clock};
use stillwell_units::{ByteRate, Moment, Nanos, Seed, float_from_u64};
use stillwell_wire::ListenError;
use tokio::sync::Notify;

use crate::socket::{Place, SinkSocket};

/// Between looks whether the other workers have closed their sockets too.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Changes how a sink behaves while it runs. Clones are of the same sink.
#[derive(Clone, Debug)]
pub struct SinkControl(pub(crate) Arc<Steering>);

impl SinkControl {
    /// Makes the sink behave so from now on: its workers follow within a millisecond
    /// or so. Where it cannot listen again its workers fail, and with them the run.
    pub fn change(&self, change: &SinkChange) {
        self.0.change(change);
    }
}

/// State that the workers of one sink observe, and that one of them needs of the others.
#[derive(Debug)]
pub(crate) struct Steering {
    /// Grows with each change.
    version: AtomicU64,
    changed: Notify,
    behaviour: Mutex<Behaviour>,
    /// The limit of the sink's own plan.
    limit: Option<ByteRate>,
    workers: usize,
    listener: Mutex<SharedListener>,
    /// Requests since it was last said which are refused.
    requests: AtomicU64,
    /// Requests that have come and have no answer yet.
    active: AtomicU64,
    /// Random numbers that formulas call `rand()`.
    random: Mutex<Xoshiro256PlusPlus>,
}

/// The present behaviour of a sink.
#[derive(Clone, Debug)]
pub(crate) struct Behaviour {
    /// Number of times that its connections were cut.
    pub(crate) cuts: u64,
    pub(crate) is_down: bool,
    pub(crate) is_paused: bool,
    pub(crate) is_queueing: bool,
    pub(crate) limit: Option<ByteRate>,
    refusal: Option<RefusePlan>,
    delay: Option<Arc<Delay>>,
}

#[derive(Debug)]
struct Delay {
    formula: DelayExpression,
    since: Moment,
}

/// The sockets of all workers.
#[derive(Debug)]
struct SharedListener {
    place: Place,
    /// Workers whose socket is open.
    open: usize,
    /// From which others are shared, and after how many cuts it was opened: one that
    /// was cut since belongs to no connection.
    socket: Option<(u64, SinkSocket)>,
}

/// Reason why a sink that was down does not listen again.
#[derive(Debug, thiserror::Error)]
#[error("listen again after the sink was down")]
pub(crate) struct ReopenError {
    source: ReopenCause,
}

#[derive(Debug, thiserror::Error)]
enum ReopenCause {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("share its socket among workers")]
    Share(#[from] io::Error),
}

/// Requests of one connection that have no answer yet.
#[derive(Debug)]
pub(crate) struct Active {
    steering: Arc<Steering>,
    requests: u64,
}

impl Steering {
    /// Of a sink of so many workers, all of whose sockets are open.
    pub(crate) fn new(place: Place, workers: usize, limit: Option<ByteRate>, seed: &Seed) -> Self {
        Self {
            version: AtomicU64::new(0),
            changed: Notify::new(),
            behaviour: Mutex::new(Behaviour {
                cuts: 0,
                is_down: false,
                is_paused: false,
                is_queueing: false,
                limit,
                refusal: None,
                delay: None,
            }),
            limit,
            workers,
            listener: Mutex::new(SharedListener {
                place,
                open: workers,
                socket: None,
            }),
            requests: AtomicU64::new(0),
            active: AtomicU64::new(0),
            random: Mutex::new(Xoshiro256PlusPlus::from_seed(*seed.bytes())),
        }
    }

    fn change(&self, change: &SinkChange) {
        let mut now = lock(&self.behaviour);
        match change {
            SinkChange::Down => {
                now.is_down = true;
                now.cuts += 1;
            }
            SinkChange::Up => now.is_down = false,
            SinkChange::Slow(limit) => now.limit = Some(*limit),
            SinkChange::Pause => now.is_paused = true,
            SinkChange::Resume => now.is_paused = false,
            SinkChange::Refuse(plan) => {
                self.requests.store(0, Ordering::Relaxed);
                now.refusal = Some(*plan);
                now.is_queueing = false;
            }
            SinkChange::Queue => now.is_queueing = true,
            SinkChange::Delay(formula) => {
                now.delay = Some(Arc::new(Delay {
                    formula: formula.clone(),
                    since: clock::now(),
                }));
            }
            SinkChange::Restore => {
                now.limit = self.limit;
                now.is_paused = false;
                now.is_queueing = false;
                now.refusal = None;
                now.delay = None;
            }
        }
        drop(now);
        self.version.fetch_add(1, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// To be read before [`Self::behaviour`], and given to [`Self::changed_from`].
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the intended behaviour of the sink.
    pub(crate) fn behaviour(&self) -> Behaviour {
        lock(&self.behaviour).clone()
    }

    /// Returns the number of workers that share what the sink may read.
    pub(crate) const fn workers(&self) -> usize {
        self.workers
    }

    /// Waits until there is a version other than this. Cancel-safe.
    pub(crate) async fn changed_from(&self, version: u64) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look, so no change falls between the two.
            changed.as_mut().enable();
            if self.version() != version {
                return;
            }
            changed.await;
        }
    }

    /// Returns the refusal of the request that begins now, if there is one.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let plan = lock(&self.behaviour).refusal?;
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        plan.refuses(number).then_some(plan.with)
    }

    /// Counts requests that came, until what it gives is dropped.
    pub(crate) fn begin(self: &Arc<Self>, requests: u64) -> Active {
        self.active.fetch_add(requests, Ordering::Relaxed);
        Active {
            steering: Arc::clone(self),
            requests,
        }
    }

    /// Returns the delay of answers now, if it was set.
    pub(crate) fn delay(&self) -> Option<Nanos> {
        let delay = lock(&self.behaviour).delay.clone()?;
        let inputs = ExpressionInputs {
            active_requests: float_from_u64(self.active.load(Ordering::Relaxed)),
            seconds: clock::now().since(delay.since).as_secs_f64(),
        };
        let mut generator = lock(&self.random);
        let mut random = || float_from_u64(generator.next_u64() >> 11) / float_from_u64(1 << 53);
        Some(delay.formula.evaluate(&inputs, &mut random))
    }

    /// Waits until answers may go out. Cancel-safe.
    pub(crate) async fn until_answering(&self) {
        loop {
            let version = self.version();
            if !self.behaviour().is_queueing {
                return;
            }
            self.changed_from(version).await;
        }
    }

    /// A worker has closed its socket.
    pub(crate) fn closed(&self) {
        let mut listener = lock(&self.listener);
        listener.open = listener.open.saturating_sub(1);
        listener.socket = None;
    }

    /// Waits until the sink is up, and gives this worker's socket and how often
    /// connections had been cut by then; `None` where `token` is
    /// cancelled first. A worker calls [`Self::closed`] before.
    pub(crate) async fn reopen(
        &self,
        token: &Token,
    ) -> Result<Option<(SinkSocket, u64)>, ReopenError> {
        loop {
            let version = self.version();
            let Behaviour { is_down, cuts, .. } = self.behaviour();
            if !is_down {
                let socket = self
                    .try_open(cuts)
                    .map_err(|source| ReopenError { source })?;
                if let Some(socket) = socket {
                    return Ok(Some((socket, cuts)));
                }
                // Another worker does not know of the cut yet.
                tokio::time::sleep(LOOK_AGAIN).await;
                if token.is_cancelled() {
                    return Ok(None);
                }
                continue;
            }
            // Both arms are cancel-safe.
            tokio::select! {
                () = self.changed_from(version) => {}
                () = token.cancelled() => return Ok(None),
            }
        }
    }

    fn try_open(&self, cuts: u64) -> Result<Option<SinkSocket>, ReopenCause> {
        let mut listener = lock(&self.listener);
        let socket = match &listener.socket {
            Some((after, socket)) if *after == cuts => socket.share()?,
            _ if listener.open > 0 => return Ok(None),
            _ => {
                let Some(socket) = listener.place.listen()? else {
                    return Ok(None);
                };
                let shared = socket.share()?;
                // Kept only as long as others need theirs.
                listener.socket = (self.workers > 1).then_some((cuts, socket));
                shared
            }
        };
        listener.open += 1;
        if listener.open == self.workers {
            listener.socket = None;
        }
        Ok(Some(socket))
    }
}

impl Behaviour {
    /// Returns true if a worker that has seen so many cuts is to close what it has.
    pub(crate) const fn cuts_off(&self, seen: u64) -> bool {
        self.cuts != seen
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let active = &self.steering.active;
        active.fetch_sub(self.requests, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked with it in hand left it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
