//! State that the two ends of a bench share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stillwell_metric::Volume;
use stillwell_units::{Moment, Nanos};

use crate::plan::CheckedPlan;
use crate::sink::SinkAccount;

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
    pub(crate) fn new(plan: &CheckedPlan) -> Self {
        Self {
            stop: AtomicBool::new(false),
            events: plan.events,
            begin: AtomicU64::new(0),
            sinks: AtomicUsize::new(0),
            warmup: plan.warmup.into(),
            sent: Mutex::new(None),
            accounts: Mutex::new(Vec::new()),
        }
    }

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

    /// Takes the volume that the source sent; `None` while the source is in use.
    pub(crate) fn take_sent(&self) -> Option<Volume> {
        lock(&self.sent).take()
    }

    /// Takes the accounts of the sinks that ended.
    pub(crate) fn take_accounts(&self) -> Vec<SinkAccount> {
        std::mem::take(&mut *lock(&self.accounts))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
