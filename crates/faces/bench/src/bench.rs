//! A bench and its two ends.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stillwell_metric::Volume;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

use crate::plan::{Plan, PlanError};
use crate::report::Report;
use crate::sink::{Sink, SinkAccount};
use crate::source::Source;

/// A bench under way.
#[derive(Debug)]
pub struct Bench {
    plan: Plan,
    shared: Arc<Shared>,
}

/// Reasons for which a bench did not begin, or has no report.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BenchError {
    /// A plan that cannot be carried out.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The source is still there.
    #[error("the source is still in use: drop it before the bench ends")]
    SourceHeld,
    /// Sinks are still there, and what they saw would be missing.
    #[error(
        "sinks are still in use ({count}): join their threads or drop them before the bench ends"
    )]
    SinksHeld {
        /// Number of sinks.
        count: usize,
    },
}

/// State that the ends share. For each event they only read `stop`.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) stop: AtomicBool,
    /// Events of the plan.
    pub(crate) events: u64,
    /// When the schedule began, in nanoseconds; 0 before.
    pub(crate) begin: AtomicU64,
    pub(crate) sinks: AtomicUsize,
    warmup: Nanos,
    sent: Mutex<Option<Volume>>,
    accounts: Mutex<Vec<SinkAccount>>,
}

impl Shared {
    /// When measuring begins.
    pub(crate) fn measured_from(&self) -> Moment {
        Moment::new(self.begin.load(Ordering::Acquire)) + self.warmup
    }

    pub(crate) fn source_ended(&self, sent: Volume) {
        *lock(&self.sent) = Some(sent);
    }

    pub(crate) fn sink_ended(&self, account: SinkAccount) {
        lock(&self.accounts).push(account);
        self.sinks.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Bench {
    /// Makes a bench with its two ends. The schedule begins at the source's first call.
    ///
    /// # Errors
    /// [`BenchError::Plan`] for a plan that cannot be carried out.
    pub fn start(plan: Plan) -> Result<(Self, Source, Sink), BenchError> {
        plan.check()?;
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            events: plan.events,
            begin: AtomicU64::new(0),
            sinks: AtomicUsize::new(0),
            warmup: plan.warmup.into(),
            sent: Mutex::new(None),
            accounts: Mutex::new(Vec::new()),
        });
        let source = Source::new(&plan, Arc::clone(&shared));
        let sink = Sink::new(Arc::clone(&shared));
        Ok((Self { plan, shared }, source, sink))
    }

    /// Has the source end before its time.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the report, once both ends are dropped: an event that has not arrived by then
    /// is lost.
    ///
    /// # Errors
    /// [`BenchError`] while an end is still held. The bench is gone then, since
    /// what that end saw would be missing.
    pub fn finish(self) -> Result<Report, BenchError> {
        let Some(sent) = lock(&self.shared.sent).take() else {
            return Err(BenchError::SourceHeld);
        };
        let count = self.shared.sinks.load(Ordering::Acquire);
        if count > 0 {
            return Err(BenchError::SinksHeld { count });
        }
        let accounts = std::mem::take(&mut *lock(&self.shared.accounts));
        let from = match self.shared.begin.load(Ordering::Acquire) {
            0 => clock::now(),
            _ => self.shared.measured_from(),
        };
        let stopped = self.shared.stop.load(Ordering::Relaxed);
        Ok(Report::of(&self.plan, sent, accounts, from, stopped))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
