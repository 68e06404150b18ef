//! Warnings that make a run invalid.

use std::fmt;

use serde::{Deserialize, Serialize};
use stillwell_capture::RunOutcome;
use stillwell_plan::{GoalMetric, Phase, WorkUnit};
use stillwell_units::Nanos;
use stillwell_units::human::{counted, grouped, nanos, percent};

use crate::limits;

/// A reason why numbers of a run are unreliable, with its figures. Shares are shares of one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunWarning {
    /// The run did not go through all phases.
    NotCompleted {
        /// Its end.
        outcome: RunOutcome,
    },
    /// The target ended during the run.
    TargetDied {
        /// Phase in which it ended.
        phase: Phase,
        /// Its exit code, if it exited.
        code: Option<i32>,
        /// The signal that ended it, if one did.
        signal: Option<i32>,
        /// Last lines of its output.
        last_lines: Vec<String>,
    },
    /// A part of Stillwell failed.
    PartFailed {
        /// Name of the part.
        part: String,
        /// Its error.
        reason: String,
    },
    /// The CPU time of the target decreased, so another process replaced it. Only results of older versions have it.
    TargetRestarted,
    /// A signal stopped all of the target, or its cgroup was frozen, and no step did it.
    TargetStopped {
        /// Share of the measured samples at which it was.
        share: f64,
    },
    /// The kernel killed processes of the target because memory ran out.
    OutOfMemory {
        /// Their number.
        kills: u64,
    },
    /// No sample was taken for too long.
    SamplesMissing {
        /// Longest time between two samples.
        #[serde(rename = "gap_ns")]
        gap: Nanos,
        /// Largest accepted time.
        #[serde(rename = "limit_ns")]
        limit: Nanos,
    },
    /// The wall clock and the monotonic clock disagree about the length of the
    /// measured phase.
    ClockStepped {
        /// Difference of the clocks.
        #[serde(rename = "by_ns")]
        by: Nanos,
        /// Largest accepted value.
        #[serde(rename = "limit_ns")]
        limit: Nanos,
    },
    /// The hypervisor took CPU time of this host.
    CpuSteal {
        /// Share of the host's CPU time.
        share: f64,
        /// Largest accepted value.
        limit: f64,
    },
    /// Other programs used CPUs that the target wanted.
    TargetDelayed {
        /// Share of the time in which the target wanted a CPU.
        share: f64,
        /// Largest accepted value.
        limit: f64,
    },
    /// Other programs used CPUs that a generator or sink wanted.
    WorkerDelayed {
        /// Name of the thread.
        worker: String,
        /// Share of the measured time.
        share: f64,
        /// Largest accepted value.
        limit: f64,
    },
    /// A generator had something to send, was not blocked, and did not run.
    GeneratorLate {
        /// Name of the generator.
        id: String,
        /// Share of the measured time, of its worst worker.
        share: f64,
        /// Largest accepted value.
        limit: f64,
    },
    /// A generator at full speed was itself the limit.
    GeneratorLimit {
        /// Name of the generator.
        id: String,
        /// Share of the measured time in which its least busy worker was busy.
        share: f64,
        /// Largest accepted value.
        limit: f64,
    },
    /// A generator sent less than requested, and the target was not the cause.
    RateNotReached {
        /// Name of the generator.
        id: String,
        /// Unit of its rate.
        unit: WorkUnit,
        /// Requested units a second.
        requested_per_second: f64,
        /// Sent units a second.
        achieved_per_second: f64,
        /// Cause of the shortfall.
        because: ShortfallCause,
    },
    /// The host or its limits were not the same as for the other run of the pair.
    EnvironmentDiffers {
        /// The fact that differs.
        fact: String,
        /// Its value for the baseline.
        baseline: String,
        /// Its value for this run.
        here: String,
    },
    /// A sink could not decode request bodies: damaged, or of an unknown content coding.
    /// Their events are not counted.
    BodiesUnread {
        /// Name of the sink.
        id: String,
        /// Their number over the whole run.
        count: u64,
        /// Of these during the measured phase.
        #[serde(default)]
        measured: u64,
    },
    /// The kernel dropped datagrams of the target because a sink was too slow.
    DatagramsDropped {
        /// Name of the sink.
        id: String,
        /// Their number over the whole run.
        count: u64,
        /// Of these during the measured phase.
        #[serde(default)]
        measured: u64,
    },
    /// Clocks of machines were compared too coarsely for latencies between them.
    ClocksUncertain {
        /// Bound on the error of latencies.
        #[serde(rename = "error_ns")]
        error: Nanos,
        /// Largest accepted value.
        #[serde(rename = "limit_ns")]
        limit: Nanos,
    },
    /// A warning about one machine of a run on several.
    OnMachine {
        /// Role and node of its task.
        task: String,
        /// The warning.
        warning: Box<Self>,
    },
    /// A sink was the limit.
    SinkSaturated {
        /// Name of the sink.
        id: String,
        /// Share of the measured time in which a worker of it ran or waited for a CPU.
        share: f64,
        /// Largest accepted value.
        limit: f64,
    },
}

/// Cause of a generator's shortfall that is not the target.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShortfallCause {
    /// Its workers waited for a CPU.
    GeneratorLate,
    /// Its workers were busy all the time.
    GeneratorBusy,
    /// Connections could not be made or were closed.
    ConnectionsFailed,
    /// Nothing that was recorded explains it.
    Unknown,
}

impl RunWarning {
    /// Returns true if `metric` of a run with this warning is unreliable.
    #[must_use]
    pub fn spoils(&self, metric: &GoalMetric) -> bool {
        let by_wall_clock = metric.is_wall_based();
        // Other goals of what arrives are of the measured phase.
        let is_of_whole_run = matches!(metric, GoalMetric::Duplicated | GoalMetric::Loss);
        match self {
            // The costs of the target were measured correctly: it was not at its limit, or
            // the load came in bursts, or others used its CPU for a while.
            Self::GeneratorLimit { .. }
            | Self::GeneratorLate { .. }
            | Self::TargetDelayed { .. }
            | Self::WorkerDelayed { .. } => by_wall_clock,
            // The hypervisor takes time, no memory and no instructions.
            Self::CpuSteal { share, limit } => {
                let is_untouched = matches!(
                    metric,
                    GoalMetric::InstructionsPerEvent
                        | GoalMetric::Memory
                        | GoalMetric::MemoryPeak
                        | GoalMetric::MemorySlope
                );
                let limit_counted = limit * (limits::STEAL_SHARE_COUNTED / limits::STEAL_SHARE);
                by_wall_clock || (*share > limit_counted && !is_untouched)
            }
            Self::BodiesUnread { measured, .. } => {
                metric.is_of_arrivals() && (is_of_whole_run || *measured > 0)
            }
            Self::ClocksUncertain { .. } => matches!(metric, GoalMetric::EventLatency(_)),
            Self::OnMachine { warning, .. } => warning.spoils(metric),
            Self::DatagramsDropped { measured, .. } => {
                let is_received =
                    metric.is_of_arrivals() || *metric == GoalMetric::EgressThroughput;
                is_received && (is_of_whole_run || *measured > 0)
            }
            _ => true,
        }
    }
}

impl fmt::Display for RunWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCompleted { outcome } => write_outcome(outcome, f),
            Self::TargetDied {
                phase,
                code,
                signal,
                last_lines,
            } => {
                write!(f, "target died in phase {}", phase.name())?;
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
            Self::TargetRestarted => f.write_str(
                "target restarted while it was measured; start the program itself, not a supervisor",
            ),
            Self::TargetStopped { share } => write!(
                f,
                "target stopped: a signal had stopped it, or its cgroup was frozen, at {} of the \
                 measured samples; let it run, and repeat the run",
                percent(*share)
            ),
            Self::OutOfMemory { kills } => write!(
                f,
                "out of memory: the kernel killed {} of the target; raise its memory limit",
                counted(*kills, "process", "processes")
            ),
            Self::BodiesUnread { id, count, .. } => write!(
                f,
                "bodies unread: sink {id} could not decode {}, so their events are not counted; use \
                 gzip, deflate, zstd, Snappy or no content coding",
                counted(*count, "request body", "request bodies")
            ),
            Self::DatagramsDropped { id, count, .. } => write!(
                f,
                "datagrams dropped: the kernel dropped {count} because sink {id} was too slow; give \
                 it more workers, or send less"
            ),
            Self::EnvironmentDiffers {
                fact,
                baseline,
                here,
            } => write!(
                f,
                "environment differs within the pair: {fact} was {baseline} for the baseline and \
                 {here} for this run"
            ),
            Self::OnMachine { task, warning } => write!(f, "{task}: {warning}"),
            _ => self.write_limit(f),
        }
    }
}

impl RunWarning {
    /// Returns the code in JSON.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ClocksUncertain { .. } => "clocks_uncertain",
            Self::OnMachine { warning, .. } => warning.code(),
            Self::NotCompleted { .. } => "not_completed",
            Self::TargetDied { .. } => "target_died",
            Self::PartFailed { .. } => "part_failed",
            Self::TargetRestarted => "target_restarted",
            Self::TargetStopped { .. } => "target_stopped",
            Self::OutOfMemory { .. } => "out_of_memory",
            Self::SamplesMissing { .. } => "samples_missing",
            Self::ClockStepped { .. } => "clock_stepped",
            Self::CpuSteal { .. } => "cpu_steal",
            Self::TargetDelayed { .. } => "target_delayed",
            Self::WorkerDelayed { .. } => "worker_delayed",
            Self::GeneratorLate { .. } => "generator_late",
            Self::GeneratorLimit { .. } => "generator_limit",
            Self::RateNotReached { .. } => "rate_not_reached",
            Self::EnvironmentDiffers { .. } => "environment_differs",
            Self::BodiesUnread { .. } => "bodies_unread",
            Self::DatagramsDropped { .. } => "datagrams_dropped",
            Self::SinkSaturated { .. } => "sink_saturated",
        }
    }

    /// Returns true if a limit was exceeded, and the numbers exist: `validity: off` ignores it.
    #[must_use]
    pub const fn is_of_limit(&self) -> bool {
        if let Self::OnMachine { warning, .. } = self {
            return warning.is_of_limit();
        }
        matches!(
            self,
            Self::ClocksUncertain { .. }
                | Self::ClockStepped { .. }
                | Self::CpuSteal { .. }
                | Self::GeneratorLate { .. }
                | Self::GeneratorLimit { .. }
                | Self::RateNotReached { .. }
                | Self::SamplesMissing { .. }
                | Self::SinkSaturated { .. }
                | Self::TargetDelayed { .. }
                | Self::WorkerDelayed { .. }
        )
    }

    /// Returns true if a sink missed events that may have reached it: the target need not have
    /// lost them.
    pub(crate) const fn hides_arrivals(&self) -> bool {
        if let Self::OnMachine { warning, .. } = self {
            return warning.hides_arrivals();
        }
        matches!(
            self,
            Self::BodiesUnread { .. } | Self::DatagramsDropped { .. }
        )
    }

    /// Returns true if the target failed, and not a generator, a sink or the host.
    #[must_use]
    pub const fn is_of_target(&self) -> bool {
        matches!(
            self,
            Self::TargetDied { .. }
                | Self::TargetRestarted
                | Self::OutOfMemory { .. }
                | Self::NotCompleted {
                    outcome: RunOutcome::NeverReady { .. }
                }
        )
    }

    /// Writes a warning whose measured value is above its limit.
    fn write_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |share: &f64, limit: &f64| (percent(*share), percent(*limit));
        match self {
            Self::SamplesMissing { gap, limit } => write!(
                f,
                "samples missing for {} (limit {}): the machine was too busy, or suspended; repeat the \
                 run",
                nanos(*gap),
                nanos(*limit)
            ),
            Self::ClockStepped { by, limit } => write!(
                f,
                "clock stepped by {} (limit {}) while the target was measured; repeat the run when \
                 time synchronisation is stable",
                nanos(*by),
                nanos(*limit)
            ),
            Self::CpuSteal { share, limit } => {
                let (share, limit) = of(share, limit);
                write!(
                    f,
                    "CPU steal: the hypervisor took {share} of the host's CPU time (limit {limit}, \
                     twice as much for CPU time); use another machine or another time"
                )
            }
            Self::TargetDelayed { share, limit } => {
                let (share, limit) = of(share, limit);
                write!(
                    f,
                    "target delayed: it waited for other programs for {share} of the time in which it needed \
                     a CPU (limit {limit}); stop those programs (CPU and memory goals are not affected)"
                )
            }
            Self::WorkerDelayed {
                worker,
                share,
                limit,
            } => {
                let (share, limit) = of(share, limit);
                write!(
                    f,
                    "worker delayed: {worker} waited for other programs for {share} of the time (limit \
                     {limit}), so load and latency are not as requested; stop those programs (CPU and memory goals are \
                     not affected)"
                )
            }
            Self::GeneratorLate { id, share, limit } => {
                let (share, limit) = of(share, limit);
                write!(
                    f,
                    "generator late: the workers of `{id}` had something to send but no CPU for \
                     {share} of the time (limit {limit}); free a CPU or lower the rate"
                )
            }
            Self::GeneratorLimit { id, share, limit } => {
                let (share, limit) = of(share, limit);
                write!(
                    f,
                    "generator limit: {id} was busy for {share} of the time (limit {limit}) and not \
                     blocked by the target; use more workers or larger blocks"
                )
            }
            _ => self.write_limit_of_part(f),
        }
    }

    /// Writes a warning about a sink or a rate that was not reached.
    fn write_limit_of_part(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SinkSaturated { id, share, limit } => {
                let (share, limit) = (percent(*share), percent(*limit));
                write!(
                    f,
                    "sink saturated: {id} was busy for {share} of the time (limit {limit}); give it \
                     more workers or lower the rate"
                )
            }
            Self::ClocksUncertain { error, limit } => write!(
                f,
                "clocks uncertain: latencies between machines may be wrong by {} (limit {}); use a \
                 store that answers faster, or synchronise the clocks",
                nanos(*error),
                nanos(*limit)
            ),
            Self::RateNotReached {
                id,
                unit,
                requested_per_second,
                achieved_per_second,
                because,
            } => write!(
                f,
                "rate not reached: generator {id} sent {} of {} {}/s: {}",
                grouped(*achieved_per_second),
                grouped(*requested_per_second),
                unit.plural(),
                because.text()
            ),
            _ => Ok(()),
        }
    }
}

impl ShortfallCause {
    /// Returns the cause, and what to do, in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::GeneratorLate => "its workers waited for a CPU; free one",
            Self::GeneratorBusy => "its workers were busy; use more workers or larger blocks",
            Self::ConnectionsFailed => "connections failed; see the outcomes and the target's log",
            Self::Unknown => "no recorded cause; measure for longer",
        }
    }
}

fn write_outcome(outcome: &RunOutcome, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match outcome {
        RunOutcome::Unfinished => {
            f.write_str("run not completed: Stillwell ended before the run did; repeat the run")
        }
        RunOutcome::Completed => f.write_str("run completed"),
        RunOutcome::CouldNotStart { reason } => write!(f, "run could not start: {reason}"),
        RunOutcome::NeverReady { reason } => write!(f, "target never ready: {reason}"),
        RunOutcome::TargetDied { phase } => write!(f, "target died in phase {}", phase.name()),
        RunOutcome::PartFailed { part, reason } => write!(f, "{part} failed: {reason}"),
        RunOutcome::Interrupted { signal } => write!(f, "run interrupted by signal {signal}"),
        RunOutcome::StorageFailed { reason } => {
            write!(f, "capture not written: {reason}")
        }
        RunOutcome::Overdue { phase } => write!(
            f,
            "deadline exceeded: phase {} did not end in time",
            phase.name()
        ),
    }
}
