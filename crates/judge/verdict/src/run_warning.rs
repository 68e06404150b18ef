//! What makes a run invalid.

use std::fmt;

use serde::{Deserialize, Serialize};
use stillwell_capture::RunOutcome;
use stillwell_plan::{GoalMetric, Phase, RateUnit};
use stillwell_units::Nanos;

use crate::limits;

/// A reason not to believe a run's numbers, with the figures behind it. Shares
/// are shares of one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunWarning {
    /// It did not go through all of its phases.
    NotCompleted {
        /// How it ended instead.
        outcome: RunOutcome,
    },
    /// The subject ended while it should have run.
    SubjectDied {
        /// In this phase.
        phase: Phase,
        /// Its exit code, if it exited.
        code: Option<i32>,
        /// The signal that ended it, if one did.
        signal: Option<i32>,
        /// The last lines that it said.
        last_lines: Vec<String>,
    },
    /// A part of ours failed.
    PartFailed {
        /// The part.
        part: String,
        /// What it said.
        reason: String,
    },
    /// The subject's CPU total fell: it was another process.
    SubjectRestarted,
    /// The kernel killed processes of the subject for memory.
    OutOfMemory {
        /// How many.
        kills: u64,
    },
    /// For too long no sample was taken.
    SamplesMissing {
        /// The longest time between two beats.
        #[serde(rename = "gap_ns")]
        gap: Nanos,
        /// The longest that it may be.
        #[serde(rename = "limit_ns")]
        limit: Nanos,
    },
    /// The wall clock and the monotonic clock disagree about the length of the
    /// measured phase.
    ClockStepped {
        /// By so much.
        #[serde(rename = "by_ns")]
        by: Nanos,
        /// The most that it may be.
        #[serde(rename = "limit_ns")]
        limit: Nanos,
    },
    /// The hypervisor gave CPU time of this host to others.
    Steal {
        /// Share of the host's CPU time.
        share: f64,
        /// The most that it may be.
        limit: f64,
    },
    /// Others on this host used its CPUs.
    ForeignCpu {
        /// Share of the host's CPU time.
        share: f64,
        /// The most that it may be for the goals that it spoils.
        limit: f64,
    },
    /// A generator had something to send, nothing in its way, and did not run.
    GeneratorLate {
        /// The generator.
        id: String,
        /// Share of the measured time, of its worst worker.
        share: f64,
        /// The most that it may be.
        limit: f64,
    },
    /// A generator at full speed was itself the limit.
    GeneratorLimit {
        /// The generator.
        id: String,
        /// Share of the measured time in which its least busy worker was busy.
        share: f64,
        /// The most that it may be.
        limit: f64,
    },
    /// A generator sent less than it was asked for, and the subject was not the
    /// cause.
    RateNotReached {
        /// The generator.
        id: String,
        /// What its rate counts.
        unit: RateUnit,
        /// Asked units for each second.
        asked_per_second: f64,
        /// Sent units for each second.
        achieved_per_second: f64,
        /// What held it up.
        because: ShortfallCause,
    },
    /// The host or its limits were not the same as for the other run of the pair.
    EnvironmentDiffers {
        /// What.
        fact: String,
        /// How it was for the baseline.
        baseline: String,
        /// How it was for this run.
        here: String,
    },
    /// A sink received bodies that it could not read: broken, or packed in a way
    /// that it does not know. What was in them counts nowhere.
    BodiesUnread {
        /// The sink.
        id: String,
        /// How many.
        count: u64,
    },
    /// The kernel dropped datagrams that a sink had no time to take. The subject sent
    /// them.
    DatagramsDropped {
        /// The sink.
        id: String,
        /// How many.
        count: u64,
    },
    /// A sink was the limit.
    SinkSaturated {
        /// The sink.
        id: String,
        /// Share of the measured time in which a worker of it ran or waited for a CPU.
        share: f64,
        /// The most that it may be.
        limit: f64,
    },
}

/// What held a generator up that was not blocked by the subject.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShortfallCause {
    /// Its workers did not get to run.
    GeneratorLate,
    /// Its workers ran all the time.
    GeneratorBusy,
    /// Connections could not be made or were closed.
    ConnectionsFailed,
    /// Nothing that was recorded explains it.
    Unknown,
}

impl RunWarning {
    /// Whether a run with this warning says nothing about `metric`.
    #[must_use]
    pub fn spoils(&self, metric: &GoalMetric) -> bool {
        let by_wall_clock = metric.is_wall_based();
        match self {
            // The subject was not pushed to its limit, but what it did cost it
            // as much as it says.
            Self::GeneratorLimit { .. } => by_wall_clock,
            Self::ForeignCpu { share, .. } => by_wall_clock || *share > limits::FOREIGN_CPU_SHARE,
            Self::BodiesUnread { .. } => metric.is_of_arrivals(),
            Self::DatagramsDropped { .. } => {
                metric.is_of_arrivals() || *metric == GoalMetric::EgressThroughput
            }
            _ => true,
        }
    }
}

impl fmt::Display for RunWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCompleted { outcome } => write_outcome(outcome, f),
            Self::SubjectDied {
                phase,
                code,
                signal,
                last_lines,
            } => {
                write!(f, "the subject died in phase {}", phase.name())?;
                match (code, signal) {
                    (_, Some(signal)) => write!(f, " by signal {signal}")?,
                    (Some(code), None) => write!(f, " with exit code {code}")?,
                    (None, None) => {}
                }
                match last_lines.last() {
                    Some(line) => write!(f, "; its last line: {line}"),
                    None => Ok(()),
                }
            }
            Self::PartFailed { part, reason } => write!(f, "{part} failed: {reason}"),
            Self::SubjectRestarted => f.write_str("the subject restarted while it was measured"),
            Self::OutOfMemory { kills } => {
                write!(
                    f,
                    "the kernel killed {kills} of the subject's processes for memory"
                )
            }
            Self::SamplesMissing { gap, limit } => {
                write!(f, "no sample was taken for {gap} (limit {limit})")
            }
            Self::ClockStepped { by, limit } => {
                write!(f, "the wall clock stepped by {by} (limit {limit})")
            }
            Self::Steal { share, limit } => write!(
                f,
                "the hypervisor took {} of the host's CPU time (limit {})",
                Percent(*share),
                Percent(*limit)
            ),
            Self::ForeignCpu { share, limit } => write!(
                f,
                "others used {} of the host's CPU time (limit {})",
                Percent(*share),
                Percent(*limit)
            ),
            Self::BodiesUnread { id, count } => write!(
                f,
                "sink {id} could not read {count} bodies: what was in them is not counted"
            ),
            Self::DatagramsDropped { id, count } => write!(
                f,
                "the kernel dropped {count} datagrams on their way into sink {id}, which was too slow \
                 for them: give it more workers, or send less"
            ),
            Self::EnvironmentDiffers {
                fact,
                baseline,
                here,
            } => write!(
                f,
                "the environment differs within the pair: {fact} was {baseline} for the baseline \
                 and {here} for this run"
            ),
            _ => self.write_limit(f),
        }
    }
}

impl RunWarning {
    /// Whether it is the subject that failed, and not the rig or the host.
    #[must_use]
    pub const fn is_of_subject(&self) -> bool {
        matches!(
            self,
            Self::SubjectDied { .. }
                | Self::SubjectRestarted
                | Self::OutOfMemory { .. }
                | Self::NotCompleted {
                    outcome: RunOutcome::NeverReady { .. }
                }
        )
    }

    /// Who of ours was the limit.
    fn write_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GeneratorLate { id, share, limit } => write!(
                f,
                "generator {id} was late for {} of the time (limit {})",
                Percent(*share),
                Percent(*limit)
            ),
            Self::GeneratorLimit { id, share, limit } => write!(
                f,
                "generator {id} was the limit: busy for {} of the time (limit {}) and not blocked",
                Percent(*share),
                Percent(*limit)
            ),
            Self::SinkSaturated { id, share, limit } => write!(
                f,
                "sink {id} was the limit: busy for {} of the time (limit {})",
                Percent(*share),
                Percent(*limit)
            ),
            Self::RateNotReached {
                id,
                unit,
                asked_per_second,
                achieved_per_second,
                because,
            } => write!(
                f,
                "generator {id} sent {achieved_per_second:.0} of the {asked_per_second:.0} {} asked \
                 for each second: {}",
                unit_word(*unit),
                because.words()
            ),
            _ => Ok(()),
        }
    }
}

impl ShortfallCause {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::GeneratorLate => "its workers did not get to run",
            Self::GeneratorBusy => "its workers could not make more",
            Self::ConnectionsFailed => "connections failed",
            Self::Unknown => "nothing recorded says why",
        }
    }
}

fn write_outcome(outcome: &RunOutcome, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match outcome {
        RunOutcome::Unfinished => f.write_str("the run was cut off"),
        RunOutcome::Completed => f.write_str("the run completed"),
        RunOutcome::CouldNotStart { reason } => write!(f, "the run could not start: {reason}"),
        RunOutcome::NeverReady { reason } => write!(f, "the subject was never ready: {reason}"),
        RunOutcome::SubjectDied { phase } => {
            write!(f, "the subject died in phase {}", phase.name())
        }
        RunOutcome::PartFailed { part, reason } => write!(f, "{part} failed: {reason}"),
        RunOutcome::Interrupted { signal } => write!(f, "the run was ended by signal {signal}"),
        RunOutcome::StorageFailed { reason } => {
            write!(f, "the capture could not be written: {reason}")
        }
        RunOutcome::Overdue { phase } => {
            write!(f, "phase {} did not end by its deadline", phase.name())
        }
    }
}

/// What a rate counts, in the plural.
pub(crate) const fn unit_word(unit: RateUnit) -> &'static str {
    match unit {
        RateUnit::Bytes => "bytes",
        RateUnit::Events => "events",
        RateUnit::Blocks => "blocks",
    }
}

/// A share of one as a percentage with a digit behind the point.
pub(crate) struct Percent(pub(crate) f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 1000.0).round() / 10.0;
        write!(f, "{tenths} %")
    }
}
