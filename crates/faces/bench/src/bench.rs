//! A bench and its two ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stillwell_scope::clock;

use crate::plan::{CheckedPlan, Plan, PlanError};
use crate::report::Report;
use crate::shared::Shared;
use crate::sink::Sink;
use crate::source::Source;

/// A bench under way.
#[derive(Debug)]
pub struct Bench {
    plan: CheckedPlan,
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

impl Bench {
    /// Makes a bench with its two ends. The schedule begins at the source's first call.
    ///
    /// # Errors
    /// [`BenchError::Plan`] for a plan that cannot be carried out.
    pub fn start(plan: Plan) -> Result<(Self, Source, Sink), BenchError> {
        let plan = CheckedPlan::try_from(plan)?;
        let shared = Arc::new(Shared::new(&plan));
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
        let Some(sent) = self.shared.take_sent() else {
            return Err(BenchError::SourceHeld);
        };
        let count = self.shared.sinks.load(Ordering::Acquire);
        if count > 0 {
            return Err(BenchError::SinksHeld { count });
        }
        let accounts = self.shared.take_accounts();
        let from = match self.shared.begin.load(Ordering::Acquire) {
            0 => clock::now(),
            _ => self.shared.measured_from(),
        };
        let stopped = self.shared.stop.load(Ordering::Relaxed);
        Ok(Report::of(&self.plan, sent, accounts, from, stopped))
    }
}
