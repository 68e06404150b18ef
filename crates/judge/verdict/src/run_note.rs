//! What readers should know of a run, and what does not make it invalid.

use std::fmt;

use serde::{Deserialize, Serialize};
use stillwell_plan::RateUnit;
use stillwell_units::{ByteSize, Nanos};

use crate::limits;
use crate::run_warning::{Percent, unit_word};

/// Something that readers should know. Shares are shares of one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunNote {
    /// The subject used less than a quarter of a core: CPU per event is not
    /// compared.
    LightLoad {
        /// Its CPU seconds for each second.
        cpu_share: f64,
    },
    /// The subject did not take the asked rate.
    SubjectSaturated {
        /// The generator that it blocked.
        id: String,
        /// What the rate counts.
        unit: RateUnit,
        /// Asked units for each second.
        asked_per_second: f64,
        /// Sent units for each second.
        achieved_per_second: f64,
        /// Share of the measured time in which the generator was blocked.
        blocked_share: f64,
    },
    /// A generator woke late at many sends, by little.
    WakesLate {
        /// The generator.
        id: String,
        /// Share of the measured time, of its worst worker.
        share: f64,
        /// How late 99 of 100 sends were at most.
        #[serde(rename = "lateness_p99_ns")]
        lateness_p99: Nanos,
    },
    /// Blocks are so large that a run holds few of them.
    CoarseBlocks {
        /// The generator.
        id: String,
        /// The largest block, in bytes.
        block_max: u64,
        /// Of what a run sends by its schedule.
        share: f64,
    },
    /// Sends did not end well.
    SendsFailed {
        /// How, as the `outcome` label says it.
        outcome: String,
        /// How many.
        count: u64,
        /// Share of all.
        share: f64,
    },
    /// The subject's own metrics could not be read.
    ScrapeNeverAnswered {
        /// Their page.
        url: String,
    },
    /// Tasks of the host waited for a resource; ours among them.
    Pressure {
        /// `CPU`, `memory` or `storage`.
        resource: String,
        /// Share of the measured time.
        share: f64,
    },
    /// The subject's cgroup was held back by its CPU quota.
    Throttled {
        /// Share of the measured time.
        share: f64,
    },
    /// The host dropped packets.
    PacketsDropped {
        /// How many.
        count: u64,
    },
    /// The host's CPUs are not counted in the manifest, so steal and foreign CPU
    /// were not held against their limits.
    HostCpusUnknown,
    /// A rate rose or fell while it was measured: there is no steady state that
    /// the run stands for.
    NotSteady {
        /// The rate, by its series.
        series: String,
        /// From the measured window's start to its end, as a share of the mean.
        drift: f64,
    },
    /// The run was still warming up when it was measured.
    WarmupTooShort {
        /// The rate that shows it, by its series.
        series: String,
        /// Load that was left out.
        #[serde(rename = "warmup_ns")]
        warmup: Nanos,
        /// Load that should have been; `None` for half of the load or more.
        #[serde(rename = "cut_ns")]
        cut: Option<Nanos>,
        /// How far the rate before that lay from the rate after it.
        apart: f64,
    },
    /// A sink was to record series and passed some of their points over.
    PointsPassedOver {
        /// The sink.
        id: String,
        /// Why, in a word of its own: too many series, no type, no number.
        reason: String,
        /// So many points.
        count: u64,
    },
    /// There were more series than a summary keeps.
    SeriesLeftOut {
        /// So many of them were left out.
        count: u32,
    },
    /// Something was wanted and could not be had.
    NotIsolated {
        /// What.
        what: String,
        /// Why not.
        why: String,
    },
    /// What the run said of itself.
    Message {
        /// One sentence.
        text: String,
    },
}

impl RunNote {
    /// Whether `other` says the same with other figures.
    #[must_use]
    pub fn is_same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::SubjectSaturated { id, .. }, Self::SubjectSaturated { id: other, .. })
            | (Self::WakesLate { id, .. }, Self::WakesLate { id: other, .. })
            | (Self::CoarseBlocks { id, .. }, Self::CoarseBlocks { id: other, .. }) => id == other,
            (Self::SendsFailed { outcome, .. }, Self::SendsFailed { outcome: other, .. }) => {
                outcome == other
            }
            (
                Self::PointsPassedOver { id, reason, .. },
                Self::PointsPassedOver {
                    id: other_id,
                    reason: other,
                    ..
                },
            ) => (id, reason) == (other_id, other),
            (
                Self::Pressure { resource, .. },
                Self::Pressure {
                    resource: other, ..
                },
            ) => resource == other,
            (Self::LightLoad { .. }, Self::LightLoad { .. })
            | (Self::Throttled { .. }, Self::Throttled { .. })
            | (Self::PacketsDropped { .. }, Self::PacketsDropped { .. })
            | (Self::NotSteady { .. }, Self::NotSteady { .. })
            | (Self::WarmupTooShort { .. }, Self::WarmupTooShort { .. })
            | (Self::SeriesLeftOut { .. }, Self::SeriesLeftOut { .. }) => true,
            _ => self == other,
        }
    }
}

impl fmt::Display for RunNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LightLoad { cpu_share } => write!(
                f,
                "light load: the subject used {} of a core; below {} CPU per event is mostly \
                 wake-ups",
                Percent(*cpu_share),
                Percent(limits::LIGHT_LOAD_SHARE)
            ),
            Self::SubjectSaturated {
                id,
                unit,
                asked_per_second,
                achieved_per_second,
                blocked_share,
            } => write!(
                f,
                "subject saturated: it took {achieved_per_second:.0} of the {asked_per_second:.0} {} \
                 that generator {id} was asked for each second, and blocked it for {} of the time; \
                 the variants may not have had the same schedule",
                unit_word(*unit),
                Percent(*blocked_share)
            ),
            Self::WakesLate {
                id,
                share,
                lateness_p99,
            } => write_late(f, id, *share, *lateness_p99),
            Self::CoarseBlocks {
                id,
                block_max,
                share,
            } => write_coarse(f, id, ByteSize::new(*block_max), *share),
            Self::SendsFailed {
                outcome,
                count,
                share,
            } => write!(
                f,
                "sends failed: {count} ended as {outcome} ({} of all)",
                Percent(*share)
            ),
            Self::ScrapeNeverAnswered { url } => {
                write!(
                    f,
                    "the subject's metrics were never read: {url} did not answer"
                )
            }
            Self::Pressure { resource, share } => write!(
                f,
                "pressure: tasks waited for {resource} for {} of the time",
                Percent(*share)
            ),
            Self::Throttled { share } => write!(
                f,
                "the subject was held back by its CPU quota for {} of the time",
                Percent(*share)
            ),
            Self::PacketsDropped { count } => write!(f, "the host dropped {count} packets"),
            Self::HostCpusUnknown => {
                f.write_str("steal and foreign CPU were not judged: the host's CPUs are not known")
            }
            Self::NotIsolated { what, why } => write!(f, "not isolated: {what}: {why}"),
            Self::Message { text } => f.write_str(text),
            _ => self.write_series(f),
        }
    }
}

impl RunNote {
    /// What the series themselves say.
    fn write_series(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSteady { series, drift } => write!(
                f,
                "no steady state: {series} {} by {} while it was measured; take longer runs, or a \
                 longer warm-up",
                if *drift < 0.0 { "fell" } else { "rose" },
                Percent(drift.abs())
            ),
            Self::WarmupTooShort {
                series,
                warmup,
                cut,
                apart,
            } => {
                write!(
                    f,
                    "warm-up too short: {series} was {} off ",
                    Percent(*apart)
                )?;
                match cut {
                    Some(cut) => write!(f, "until {cut} of load, and {warmup} were left out"),
                    None => write!(
                        f,
                        "for half of the load or longer, and {warmup} were left out"
                    ),
                }
            }
            Self::PointsPassedOver { id, reason, count } => {
                let why = match reason.as_str() {
                    "too_many" => "it records 100000 series at most",
                    "untyped" => "their series say no type",
                    "no_number" => "their values are infinite or no numbers",
                    other => other,
                };
                write!(f, "sink `{id}` did not record {count} points: {why}")
            }
            Self::SeriesLeftOut { count } => {
                write!(
                    f,
                    "{count} series were left out of the summary: there are too many"
                )
            }
            _ => Ok(()),
        }
    }
}

fn write_late(
    f: &mut fmt::Formatter<'_>,
    id: &str,
    share: f64,
    lateness_p99: Nanos,
) -> fmt::Result {
    let share = Percent(share);
    write!(
        f,
        "generator {id} woke late for {share} of the time, by at most {lateness_p99} for 99 of 100 \
         sends"
    )
}

fn write_coarse(
    f: &mut fmt::Formatter<'_>,
    id: &str,
    block_max: ByteSize,
    share: f64,
) -> fmt::Result {
    let share = Percent(share);
    write!(
        f,
        "blocks of generator {id} are coarse: one of {block_max} may be {share} of what a run sends; \
         state smaller blocks, or measure for longer"
    )
}
