//! State of a load while it goes on, for displays and exporters.

use std::sync::Arc;

use stillwell_metric::{Histogram, Interval, LoadShard, LoadTime, Outcome, TimeState};
use stillwell_units::Nanos;

use super::LoadSecond;

/// Present phase of a load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LoadPhase {
    /// Requests are sent and not measured.
    Warmup,
    /// Requests are sent and measured.
    Measure,
    /// Nothing more is begun; requests under way may still end.
    Drain,
}

/// A load at the end of a piece of time, of a second or a little more; the first one is shorter
/// if nothing is reached, except in a generator of a fleet. Read from
/// the cells and recorders that make the final result: reading costs the workers
/// one relaxed load for each of their beats.
#[derive(Debug)]
pub struct LoadSnapshot<'a> {
    /// The present phase.
    pub phase: LoadPhase,
    /// Since measuring began; in the warm-up, since that began.
    pub elapsed: Nanos,
    /// Counts of each worker so far, warm-up included.
    pub shards: &'a [Arc<LoadShard>],
    /// The piece of time that has just ended. In the warm-up it has no times, but its outcomes are
    /// complete.
    pub second: &'a LoadSecond,
    /// Time breakdown of each worker in that piece, in the order of [`TimeState::ALL`].
    pub accounts: &'a [[Nanos; TimeState::ALL.len()]],
    pub(super) times: &'a [Option<Interval>],
    /// Times of each worker since measuring began, in the order of [`LoadTime::index`].
    pub(super) worker_times: &'a [Vec<Option<Histogram<u64>>>],
    pub(super) latencies: &'a Histogram<u64>,
}

impl LoadSnapshot<'_> {
    /// The records of `time` in this piece by all workers together, in nanoseconds; `None` if there
    /// are none.
    #[must_use]
    pub fn times(&self, time: LoadTime) -> Option<&Histogram<u64>> {
        self.times[time.index()].as_deref()
    }

    /// A count of all workers together, warm-up included.
    #[must_use]
    pub fn sum(&self, count: impl Fn(&LoadShard) -> u64) -> u64 {
        self.shards.iter().map(|shard| count(shard)).sum()
    }

    /// Returns true if nothing valid can be answered: every attempt to connect failed, or every
    /// response was malformed.
    #[must_use]
    pub fn is_unreached(&self) -> bool {
        is_unreached(self.shards)
    }

    /// Latencies of this piece as a reader wants them: from the intended time
    /// where there is a schedule, else from the sent time.
    #[must_use]
    pub const fn latencies(&self) -> &Histogram<u64> {
        self.latencies
    }
}

/// As [`LoadSnapshot::is_unreached`].
pub(super) fn is_unreached(shards: &[Arc<LoadShard>]) -> bool {
    let sum = |count: &dyn Fn(&LoadShard) -> u64| -> u64 {
        shards.iter().map(|shard| count(shard)).sum()
    };
    let ended = |outcome: Outcome| {
        let index = outcome.index();
        sum(&|shard| shard.outcomes[index].total() + shard.warmup_outcomes[index].total())
    };
    let mut answers = Outcome::ANSWERS.into_iter();
    if answers.any(|outcome| ended(outcome) > 0) {
        return false;
    }
    let opened = sum(&|shard| shard.connections.total());
    let failed = sum(&|shard| shard.connect_failures.total());
    (opened == 0 && failed > 0) || ended(Outcome::Malformed) > 0
}
