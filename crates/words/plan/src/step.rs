//! Steps during a run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::{ByteRate, ByteSize, Nanos};

use crate::PhasesPlan;
use crate::generator::WhenFull;
use crate::link::LinkChange;
use crate::serve::DelayExpression;

/// Something that happens at a set time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StepPlan {
    /// Time after the start of the measured phase.
    pub at: Nanos,
    /// The action.
    pub action: StepAction,
}

impl StepPlan {
    /// Returns true if it happens in a run of these `phases`: while measuring, and if it acts
    /// on the target in the drain as well.
    #[must_use]
    pub fn comes_in(&self, phases: &PhasesPlan) -> bool {
        let end = match self.action {
            StepAction::Target(_) => phases.measure + phases.drain,
            _ => phases.measure,
        };
        self.at < end
    }
}

/// Action of a step.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAction {
    /// Writes a note into the capture.
    Note(String),
    /// Sends the target a signal; a target that ends by it has died.
    Signal(TargetSignal),
    /// Changes how a sink behaves.
    Sink {
        /// The sink.
        id: String,
        /// The change.
        change: SinkChange,
    },
    /// Pauses, ends or starts the target.
    Target(TargetChange),
    /// Moves or empties the log that a generator writes, before its next block.
    File {
        /// The generator.
        id: String,
        /// How.
        rotate: WhenFull,
    },
    /// Changes a disk that shows a folder.
    Disk {
        /// Its mount point, as in its plan.
        path: PathBuf,
        /// The change.
        change: DiskChange,
    },
    /// Changes the links of a run whose target is in a separate network.
    Network {
        /// Between generators and the target.
        input: LinkChange,
        /// Between the target and sinks.
        output: LinkChange,
    },
}

/// Behaviour of a sink from a step on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkChange {
    /// Does not listen; connections are cut.
    Down,
    /// Listens again.
    Up,
    /// Reads no more than this, over all connections together.
    Slow(ByteRate),
    /// Reads nothing; connections stay.
    Pause,
    /// Reads again.
    Resume,
    /// Takes some requests and refuses others.
    Refuse(RefusePlan),
    /// Accepts requests and sends no answer until the next change; answers that
    /// waited go out then.
    Queue,
    /// Answers with this delay after the end of a request, in place of the sink's delay.
    Delay(DelayExpression),
    /// All but `Down` is undone: what the sink's own plan says holds again.
    Restore,
}

/// Behaviour of a disk from a step on.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskChange {
    /// It holds no more than it does then; what is deleted makes room again.
    Full,
    /// It is as fast and as large as this.
    Limits(DiskLimits),
    /// It is as its own plan says again, and what waits for it waits no longer.
    Restore,
}

/// Speed and size of a disk; `None` for unchanged.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct DiskLimits {
    /// Additional time of each `fsync`.
    pub fsync_delay: Option<Nanos>,
    /// Additional time for each MiB that `fsync` makes durable.
    pub fsync_delay_per_mib: Option<Nanos>,
    /// Maximum write rate.
    pub write_rate: Option<ByteRate>,
    /// Bytes that it holds.
    pub limit: Option<ByteSize>,
}

/// The requests that a sink refuses. The content of a refused request was not
/// delivered.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RefusePlan {
    /// The answer to them.
    pub with: Refusal,
    /// Of each million requests so many, evenly spread: every third is 333,333.
    pub per_million: u32,
}

/// The answer to a refused request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// This status, without a body.
    Status {
        /// From 300 to 599.
        status: u16,
        /// Seconds after which the client may come again.
        retry_after: Option<u32>,
    },
    /// The end of its connection.
    Close,
}

impl RefusePlan {
    /// Returns true if the request with this number, counted from 0 since the step, is
    /// refused.
    #[must_use]
    pub fn refuses(&self, request: u64) -> bool {
        let refused = |requests: u64| {
            u128::from(requests) * u128::from(self.per_million.min(MILLION)) / u128::from(MILLION)
        };
        refused(request.saturating_add(1)) > refused(request)
    }
}

/// All.
const MILLION: u32 = 1_000_000;

/// A change of the target.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetChange {
    /// All of its processes are stopped.
    Pause,
    /// They go on.
    Resume,
    /// It ends by this signal, as planned; by the end of its grace it is killed.
    End(TargetSignal),
    /// It starts again, by the same command and in the same place, once it has
    /// ended.
    Start,
}

/// A signal for a target.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TargetSignal {
    /// Continue after a stop.
    Cont,
    /// Hang up: by custom, read the configuration again.
    Hup,
    /// Interrupt.
    Int,
    /// End at once.
    Kill,
    /// Quit.
    Quit,
    /// Stop until continued.
    Stop,
    /// End.
    Term,
    /// First of the program's own.
    Usr1,
    /// Second of the program's own.
    Usr2,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_shares_so_many_of_a_million_are_refused(share in 0_u32..=MILLION, from: u32) {
            let plan = RefusePlan { with: Refusal::Close, per_million: share };
            let from = u64::from(from);
            let count = |requests: u64| (0..requests).filter(|at| plan.refuses(from + at)).count();
            // Evenly spread: any stretch has its share, give or take one.
            let stretch = 1000;
            let expected = f64::from(share) / 1000.0;
            let refused = f64::from(u32::try_from(count(stretch)).unwrap());
            prop_assert!((refused - expected).abs() < 1.0001, "{} of {}", refused, expected);
        }
    }

    #[test]
    fn every_tenth_and_all_and_none() {
        let plan = |per_million| RefusePlan {
            with: Refusal::Close,
            per_million,
        };
        let refused: Vec<u64> = (0..30).filter(|at| plan(100_000).refuses(*at)).collect();
        assert_eq!(refused, [9, 19, 29]);
        assert!((0..30).all(|at| plan(MILLION).refuses(at)));
        assert!(!(0..30).any(|at| plan(0).refuses(at)));
    }
}
