//! Notes about a run, which do not make it invalid.

use std::fmt;

use serde::{Deserialize, Serialize};
use stillwell_capture::BusyProgram;
use stillwell_metric::CountingObstacle;
use stillwell_plan::WorkUnit;
use stillwell_units::human::{bytes, counted, grouped, nanos, percent};
use stillwell_units::{Nanos, float_from_u64};

use crate::limits;
use crate::run_warning::RunWarning;

/// A note about a run, which does not make it invalid. Shares are shares of one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunNote {
    /// The target used less than a quarter of a core, so its CPU time for each event is not compared.
    LightLoad {
        /// Its CPU seconds for each second.
        cpu_share: f64,
    },
    /// Every response had a status of 400 or above.
    NoSuccess {
        /// The most frequent status.
        status: u16,
    },
    /// The target did not accept the requested rate.
    TargetSaturated {
        /// Name of the generator that it blocked.
        id: String,
        /// Unit of the rate.
        unit: WorkUnit,
        /// Requested units a second.
        requested_per_second: f64,
        /// Sent units a second.
        achieved_per_second: f64,
        /// Share of the measured time in which the generator was blocked.
        blocked_share: f64,
    },
    /// There is no target, and the receiver of a generator did not accept the requested rate.
    ReceiverSaturated {
        /// Name of the generator that it blocked.
        id: String,
        /// Unit of the rate.
        unit: WorkUnit,
        /// Requested units a second.
        requested_per_second: f64,
        /// Sent units a second.
        achieved_per_second: f64,
        /// Share of the measured time in which the generator was blocked.
        blocked_share: f64,
    },
    /// A generator woke up late often, each time by little.
    LateWakeups {
        /// Name of the generator.
        id: String,
        /// Share of the measured time, of its worst worker.
        share: f64,
        /// 99th percentile of the lateness of sends.
        #[serde(rename = "lateness_p99_ns")]
        lateness_p99: Nanos,
    },
    /// Blocks are so large that a run holds few of them.
    CoarseBlocks {
        /// Name of the generator.
        id: String,
        /// The largest block, in bytes.
        block_max: u64,
        /// Share of what the schedule sends in a run.
        share: f64,
    },
    /// Sends failed.
    SendsFailed {
        /// Their outcome.
        outcome: String,
        /// Their number.
        count: u64,
        /// Share of all sends.
        share: f64,
    },
    /// The target's metrics page could not be read.
    ScrapeNeverAnswered {
        /// URL of the page.
        url: String,
    },
    /// Other programs used CPUs of this host.
    ForeignCpu {
        /// Share of the host's CPU time.
        share: f64,
        /// Share of the time in which the target wanted a CPU that they took; `None` if
        /// unknown.
        target_delayed: Option<f64>,
        /// Those that used most.
        busiest: Vec<BusyProgram>,
    },
    /// A limit was exceeded, and the plan lets the numbers count.
    Relaxed {
        /// The warning that is ignored.
        warning: Box<RunWarning>,
    },
    /// The plan requests stricter limits.
    Strict,
    /// Tasks of the host waited for a resource, Stillwell's among them.
    Pressure {
        /// `CPU`, `memory` or `storage`.
        resource: String,
        /// Share of the measured time.
        share: f64,
    },
    /// The CPU quota of the target's cgroup throttled it.
    Throttled {
        /// Share of the measured time.
        share: f64,
    },
    /// The host dropped packets.
    PacketsDropped {
        /// Their number.
        count: u64,
    },
    /// The manifest has no CPU count, so steal and foreign CPU were not checked.
    HostCpusUnknown,
    /// A rate rose or fell during the measured phase, so there is no steady state.
    NotSteady {
        /// Series of the rate.
        series: String,
        /// From the measured window's start to its end, as a share of the mean.
        drift: f64,
    },
    /// Latency rose during the measured phase, as if a queue filled.
    LatencyGrew {
        /// Series of the latency.
        series: String,
        /// Growth of its median from the measured window's start to its end, as a share of the mean.
        growth: f64,
    },
    /// The run was still warming up when it was measured.
    WarmupTooShort {
        /// Series of the rate that shows it.
        series: String,
        /// Load time that was left out.
        #[serde(rename = "warmup_ns")]
        warmup: Nanos,
        /// Load time to leave out; `None` for half of the load or more.
        #[serde(rename = "cut_ns")]
        cut: Option<Nanos>,
        /// Difference of the rate before that from the rate after it, as a share.
        apart: f64,
    },
    /// Instructions of the target were to be counted and were not.
    InstructionsNotCounted {
        /// The reason.
        obstacle: CountingObstacle,
    },
    /// Instructions of the target were counted in user mode alone.
    UserInstructions {
        /// Level of `perf_event_paranoid`, if it could be read.
        paranoid: Option<i64>,
    },
    /// The CPU's counter of instructions did not run all the time, because others used it.
    CounterShared {
        /// Share of the target's CPU time in which it ran.
        share: f64,
    },
    /// A sink did not record some points of series.
    PointsSkipped {
        /// Name of the sink.
        id: String,
        /// Code of the reason: too many series, no type, no number.
        reason: String,
        /// Number of points.
        count: u64,
    },
    /// The run has more series than a summary keeps.
    SeriesLeftOut {
        /// Number of series that were left out.
        count: u32,
    },
    /// An isolation feature was unavailable.
    NotIsolated {
        /// The feature.
        what: String,
        /// The reason.
        why: String,
    },
    /// A message from the run itself.
    Message {
        /// The message, one sentence.
        text: String,
    },
}

impl RunNote {
    /// Returns true if `right` has the same meaning with different figures.
    #[must_use]
    pub fn is_same_kind(&self, right: &Self) -> bool {
        match (self, right) {
            (Self::TargetSaturated { id, .. }, Self::TargetSaturated { id: right, .. })
            | (Self::ReceiverSaturated { id, .. }, Self::ReceiverSaturated { id: right, .. })
            | (Self::LateWakeups { id, .. }, Self::LateWakeups { id: right, .. })
            | (Self::CoarseBlocks { id, .. }, Self::CoarseBlocks { id: right, .. }) => id == right,
            (Self::SendsFailed { outcome, .. }, Self::SendsFailed { outcome: right, .. }) => {
                outcome == right
            }
            (
                Self::PointsSkipped { id, reason, .. },
                Self::PointsSkipped {
                    id: other_id,
                    reason: right,
                    ..
                },
            ) => (id, reason) == (other_id, right),
            (
                Self::Pressure { resource, .. },
                Self::Pressure {
                    resource: right, ..
                },
            ) => resource == right,
            (Self::LightLoad { .. }, Self::LightLoad { .. })
            | (Self::Throttled { .. }, Self::Throttled { .. })
            | (Self::PacketsDropped { .. }, Self::PacketsDropped { .. })
            | (Self::NotSteady { .. }, Self::NotSteady { .. })
            | (Self::LatencyGrew { .. }, Self::LatencyGrew { .. })
            | (Self::WarmupTooShort { .. }, Self::WarmupTooShort { .. })
            | (Self::CounterShared { .. }, Self::CounterShared { .. })
            | (Self::ForeignCpu { .. }, Self::ForeignCpu { .. })
            | (Self::SeriesLeftOut { .. }, Self::SeriesLeftOut { .. }) => true,
            (Self::Relaxed { warning }, Self::Relaxed { warning: right }) => {
                warning.code() == right.code()
            }
            _ => self == right,
        }
    }
}

impl fmt::Display for RunNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LightLoad { cpu_share } => write!(
                f,
                "light load: the target used {} of a core; below {}, going to sleep and waking up \
                 is usually most of its CPU time, which can hide a change; raise the rate",
                percent(*cpu_share),
                percent(limits::LIGHT_LOAD_SHARE)
            ),
            Self::NoSuccess { status } => write!(
                f,
                "no request succeeded: most responses had status {status}; check the path and the method"
            ),
            Self::TargetSaturated {
                id,
                unit,
                requested_per_second,
                achieved_per_second,
                blocked_share,
            } => write!(
                f,
                "target saturated: it accepted {} of {} {}/s of generator {id}, and blocked it for {} \
                 of the time; the variants may not have had the same schedule; lower the rate, \
                 unless this is what you test",
                grouped(*achieved_per_second),
                grouped(*requested_per_second),
                unit.plural(),
                percent(*blocked_share)
            ),
            Self::ReceiverSaturated {
                id,
                unit,
                requested_per_second,
                achieved_per_second,
                blocked_share,
            } => write!(
                f,
                "receiver saturated: it accepted {} of {} {}/s of generator {id}, and blocked it for \
                 {} of the time; lower the rate",
                grouped(*achieved_per_second),
                grouped(*requested_per_second),
                unit.plural(),
                percent(*blocked_share)
            ),
            Self::ScrapeNeverAnswered { url } => write!(
                f,
                "target's metrics not read: {url} did not answer; check the URL in `observe`"
            ),
            Self::Message { text } => f.write_str(text),
            _ => self.write_sends(f),
        }
    }
}

impl RunNote {
    /// Writes a note about the sends of a generator.
    fn write_sends(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LateWakeups {
                id,
                share,
                lateness_p99,
            } => write!(
                f,
                "late sends: generator {id} was late for {} of the time, by at most {} for 99 % of the sends",
                percent(*share),
                nanos(*lateness_p99)
            ),
            Self::CoarseBlocks {
                id,
                block_max,
                share,
            } => write!(
                f,
                "coarse blocks: one block of generator {id}, {}, may be {} of what a run sends; use \
                 smaller blocks, or measure for longer",
                bytes(float_from_u64(*block_max)),
                percent(*share)
            ),
            Self::SendsFailed {
                outcome,
                count,
                share,
            } => write!(
                f,
                "sends failed: {count} ended as {outcome} ({} of all); see the target's log",
                percent(*share)
            ),
            _ => self.write_host(f),
        }
    }

    /// Writes a note about the host and its limits.
    fn write_host(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pressure { resource, share } => write!(
                f,
                "{resource} shortage: programs waited for it {} of the time",
                percent(*share)
            ),
            Self::ForeignCpu {
                share,
                target_delayed,
                busiest,
            } => {
                let share = percent(*share);
                write!(f, "other programs used {share} of the host's CPU time")?;
                for (index, program) in busiest.iter().enumerate() {
                    let sign = if index == 0 { ": " } else { ", " };
                    let BusyProgram { name, pid, .. } = program;
                    let cpu = percent(program.cpu_share);
                    write!(f, "{sign}{name} (process {pid}) {cpu} of a CPU")?;
                }
                match target_delayed {
                    Some(delayed) => write!(
                        f,
                        "; the target waited for them for {} of the time in which it needed a CPU",
                        percent(*delayed)
                    ),
                    None => f.write_str("; their effect on the target is unknown"),
                }
            }
            Self::Relaxed { warning } => {
                write!(f, "ignored because of `validity: off`: {warning}")
            }
            Self::Strict => f.write_str(
                "`validity: strict`: the limits of steal, delay and lateness are halved",
            ),
            Self::Throttled { share } => write!(
                f,
                "CPU throttling: the target's quota stopped it for {} of the time; raise `cpu.max` \
                 of its cgroup, or accept it",
                percent(*share)
            ),
            Self::PacketsDropped { count } => write!(
                f,
                "packets dropped: the host dropped {count}; lower the rate"
            ),
            Self::HostCpusUnknown => {
                f.write_str("host's CPU count unknown: CPU steal and foreign CPU were not checked")
            }
            Self::NotIsolated { what, why } => write!(f, "not isolated: {what}: {why}"),
            _ => self.write_counters(f),
        }
    }

    /// Writes a note about the CPU's counters.
    fn write_counters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InstructionsNotCounted { obstacle } => {
                write!(f, "instructions not counted: {obstacle}")?;
                match obstacle.remedy() {
                    Some(remedy) => write!(f, "; {remedy}"),
                    None => Ok(()),
                }
            }
            Self::UserInstructions { paranoid } => {
                f.write_str("instructions in user mode alone were counted")?;
                match paranoid {
                    Some(level) => write!(
                        f,
                        ": perf_event_paranoid is {level}; 1 permits those in the kernel too"
                    ),
                    None => Ok(()),
                }
            }
            Self::CounterShared { share } => write!(
                f,
                "counter shared: the CPU's counter of instructions ran for {} of the target's CPU time; end \
                 other profilers, and use CPUs of one kind for the target",
                percent(*share)
            ),
            _ => self.write_series(f),
        }
    }

    /// Writes a note about series.
    fn write_series(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSteady { series, drift } => write!(
                f,
                "no steady state: {series} {} by {} while it was measured; use longer runs, or a \
                 longer warm-up",
                if *drift < 0.0 { "fell" } else { "rose" },
                percent(*drift)
            ),
            Self::LatencyGrew { series, growth } => write!(
                f,
                "latency grew: the median of {series} rose by {} while it was measured, as if a queue \
                 filled, so longer runs have higher latencies; use a lower rate",
                percent(*growth)
            ),
            Self::WarmupTooShort {
                series,
                warmup,
                cut,
                apart,
            } => {
                let until = match cut {
                    Some(cut) => format!("the first {}", nanos(*cut)),
                    None => "half of the load or longer".to_owned(),
                };
                write!(
                    f,
                    "warm-up too short: {series} differed by {} for {until}, but the warm-up was \
                     only {}; use a longer warm-up",
                    percent(*apart),
                    nanos(*warmup)
                )
            }
            Self::PointsSkipped { id, reason, count } => {
                let why = match reason.as_str() {
                    "too_many" => "it records 100,000 series at most",
                    "untyped" => "their series have no type",
                    "no_number" => "their values are not finite numbers",
                    right => right,
                };
                write!(
                    f,
                    "points skipped: sink {id} did not record {}: {why}",
                    counted(*count, "point", "points")
                )
            }
            Self::SeriesLeftOut { count } => {
                write!(f, "too many series: {count} are not in the summary")
            }
            _ => Ok(()),
        }
    }
}
