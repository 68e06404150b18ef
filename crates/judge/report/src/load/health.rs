//! The health of a load generator, and the reason for its end.

use std::fmt;

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// Figures that show if a generator was the limit of its own measurement.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorHealth {
    /// The requested rate, on average over the measured time, in requests a second over all
    /// workers; `None` in a closed loop without a rate, or at full speed.
    pub requested_per_second: Option<f64>,
    /// The rate that was sent, likewise: of requests that were given to a
    /// connection, so not of those that were dropped or never found one.
    pub sent_per_second: f64,
    /// Time of each worker by state.
    pub workers: Vec<WorkerHealth>,
    /// CPU time of all of our process during the measured time.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// Share of the host's CPU time that others used, the target's excluded
    /// where it is known.
    pub foreign_cpu_share: Option<f64>,
    /// Share of the host's CPU time that the hypervisor gave to others.
    pub steal_share: Option<f64>,
    /// Warnings, the worst first.
    pub warnings: Vec<HealthWarning>,
}

impl GeneratorHealth {
    /// Returns true if the result is valid for the target: no warning invalidates it.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.warnings.iter().any(|warning| warning.invalidates)
    }

    /// Returns the sent requests a second, as a share of the requested rate.
    #[must_use]
    pub fn achieved_share(&self) -> Option<f64> {
        let requested = self
            .requested_per_second
            .filter(|requested| *requested > 0.0)?;
        Some(self.sent_per_second / requested)
    }
}

/// Time of one worker by state; the four states make up the measured time.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerHealth {
    /// The worker's name, as its result has it: `worker_0`.
    pub name: String,
    /// Waited for its schedule.
    #[serde(rename = "ahead_ns")]
    pub idle: Nanos,
    /// Waited for its peer.
    #[serde(rename = "blocked_ns")]
    pub blocked: Nanos,
    /// Ran: CPU time, without the time spent waiting for the schedule.
    #[serde(rename = "running_ns")]
    pub running: Nanos,
    /// Was due, free to run, and did not.
    #[serde(rename = "late_ns")]
    pub late: Nanos,
    /// CPU time of its thread, connecting included where there is no warm-up; with
    /// what went into waiting for the schedule without sleeping.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// Runnable, and had no CPU.
    #[serde(rename = "run_delay_ns")]
    pub run_delay: Nanos,
}

/// A warning about a result.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HealthWarning {
    /// A word for programs, such as `late` or `steal`.
    pub code: String,
    /// A sentence for readers, without a full stop.
    pub text: String,
    /// True if the result is unreliable because of it.
    pub invalidates: bool,
}

/// Reason for the end of a load.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Its time was over.
    #[default]
    Duration,
    /// All requested requests had been sent.
    Requests,
    /// A termination predicate, `COUNTER:THRESHOLD`, came true.
    TerminationPredicate(String),
    /// A failure predicate, likewise: the load failed.
    FailurePredicate(String),
    /// A signal stopped it.
    Stopped,
    /// A part of the generator failed: what, as a sentence.
    PartFailed(String),
}

impl Ending {
    /// Returns true if the load failed, even if it measured something.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::FailurePredicate(_) | Self::PartFailed(_))
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duration => f.write_str("its duration was over"),
            Self::Requests => f.write_str("all requests were sent"),
            Self::TerminationPredicate(predicate) => {
                write!(f, "termination predicate {predicate} was met")
            }
            Self::FailurePredicate(predicate) => {
                write!(f, "failure predicate {predicate} was met")
            }
            Self::Stopped => f.write_str("stopped by a signal"),
            Self::PartFailed(what) => write!(f, "{what}"),
        }
    }
}
