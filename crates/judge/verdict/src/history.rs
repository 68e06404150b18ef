//! Movement of goals over many results: trends and change points.
//!
//! [`condense`] turns one experiment of one result into a [`Measurement`] for each
//! metric. [`trends`] sets the measurements of many results in time and looks for
//! the places at which their level moved.
//!
//! Where one and the same build was the baseline of result after result it is an
//! anchor: the log ratio of each result's pairs against it knows nothing of how fast
//! the machine was that day, and these ratios make the trend. Where the baseline
//! changed from result to result the comparison's own numbers do, drift of the machine
//! and all.
//!
//! A change that is found is a lead: it is for a paired comparison of the two
//! revisions to confirm it.

mod condense;
mod judge;
mod otava;
mod permutation;

use std::path::PathBuf;

use stillwell_plan::experiment::GitSource;
use stillwell_plan::goal::{Direction, Scale};
use stillwell_plan::{GoalMetric, WorkUnit};
use stillwell_stats::change::{ChangePoint, OtavaOptions};
use stillwell_units::Tolerance;

pub use self::condense::condense;
pub use self::judge::trends;

/// With fewer points nothing is looked for: there are too few orders in which
/// they could be.
pub const POINTS_MIN: usize = 6;

/// One experiment of one result.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryPoint {
    /// The experiment.
    pub experiment: String,
    /// Variant that was compared with the baseline.
    pub comparison: String,
    /// Unit of the work that costs are divided by.
    pub work: WorkUnit,
    /// When, where and of what it was measured.
    pub origin: Origin,
    /// The measured metric: one for each metric. The goals come first, in the order
    /// of the plan.
    pub measurements: Vec<Measurement>,
}

/// When, where and of what something was measured.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Origin {
    /// When the result began: milliseconds since 1970.
    pub time_millis: u64,
    /// The name of the results folder.
    pub run: String,
    /// The commit that the comparison was built from, in full, if it was.
    pub commit: Option<String>,
    /// Name that was typed for that commit; `None` where the commit was typed.
    pub version: Option<String>,
    /// SHA-256 of the comparison's executable, if it is known.
    pub executable: Option<String>,
    /// Identity of the baseline: its commit, or the hash of its
    /// executable; `None` where neither is known.
    pub anchor: Option<String>,
    /// The kind of machine.
    pub machine: Option<String>,
    /// A hash of the workload: points of another workload are not compared.
    pub workload: String,
    /// The folder of the experiment.
    pub folder: PathBuf,
    /// Build instructions of its revisions, if they are built.
    pub git: Option<GitSource>,
}

/// One metric of one experiment of one result.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The measured metric.
    pub metric: GoalMetric,
    /// Better direction.
    pub direction: Direction,
    /// Smallest change that matters.
    pub tolerance: Tolerance,
    /// Its role in its experiment.
    pub role: Role,
    /// Valid pairs, of both stages: at least one.
    pub pairs: u32,
    /// Mean of the baseline's runs in these pairs, in the metric's base unit:
    /// geometric where compared by ratio.
    pub baseline_mean: f64,
    /// The same of the comparison's.
    pub comparison_mean: f64,
    /// Mean of the pairs' log ratios, or differences.
    pub delta: f64,
    /// Standard deviation of these; `None` for one pair.
    pub deviation: Option<f64>,
}

impl Measurement {
    /// Standard error of `delta` by its own pairs; `None` for one pair.
    #[must_use]
    pub fn standard_error(&self) -> Option<f64> {
        Some(self.deviation? / f64::from(self.pairs).sqrt())
    }
}

/// Role of a metric in its experiment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// The goal that gated.
    Primary,
    /// A goal beside it.
    Secondary,
    /// No goal, but recorded.
    Recorded,
}

/// Method of change detection.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendOptions {
    /// By which test.
    pub method: Method,
    /// Changes must be larger than this share.
    pub magnitude: f64,
    /// Only these metrics, in this order; the goals if none.
    pub metrics: Vec<GoalMetric>,
    /// Only so many of the latest points.
    pub last: Option<usize>,
}

/// By which test changes are looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Stillwell's: finds something in this share of histories in which nothing
    /// changed, at most.
    Stillwell {
        /// Above 0 and below 1.
        alarm_rate: f64,
    },
    /// Apache Otava 0.8.0's, for those who compare with it; its alarm rate is
    /// many times what its p value seems to say.
    Otava(OtavaOptions),
}

/// One metric of one experiment over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// The experiment.
    pub experiment: String,
    /// Variant that was compared with the baseline.
    pub comparison: String,
    /// Unit of the work that costs are divided by, as the latest result had it.
    pub work: WorkUnit,
    /// The measured metric.
    pub metric: GoalMetric,
    /// Better direction.
    pub direction: Direction,
    /// By what levels are compared.
    pub scale: Scale,
    /// Smallest change that matters, as the latest result had it.
    pub tolerance: Tolerance,
    /// True if a change for the worse is an alarm: of primary goals, and of
    /// requested metrics.
    pub gates: bool,
    /// Basis of its values.
    pub basis: Basis,
    /// In order of time; at least one.
    pub points: Vec<TrendPoint>,
    /// Points that are compared with each other begin at these places: the
    /// first, and wherever the workload or the anchor changed. Otava compares all.
    pub stretches: Vec<usize>,
    /// The fewest points in which the method can find anything, where they lie in
    /// one stretch.
    pub points_needed: usize,
    /// Changes of the level, in order of time.
    pub leads: Vec<Lead>,
    /// Probability that a history without any change has a split as clear as the
    /// clearest of this one; `None` where nothing was tested, or by Otava's
    /// method.
    pub p_value: Option<f64>,
    /// State at its latest point.
    pub latest: Latest,
}

/// Basis of the values of a trend.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Basis {
    /// Log ratios of pairs against an anchor, or differences.
    Anchor,
    /// The comparison's own level: its logarithm, or the number itself where
    /// compared by difference.
    Level,
}

/// One point of a trend.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendPoint {
    /// When, where and of what.
    pub origin: Origin,
    /// The measured metric.
    pub measured: Measurement,
    /// Value that enters the test, as the trend's [`Basis`] has it.
    pub value: f64,
}

/// A place at which a level moved.
#[derive(Clone, Debug, PartialEq)]
pub struct Lead {
    /// The first point of the new level.
    pub index: usize,
    /// The level before, as the values of the trend are: their mean since the
    /// lead before, or the start.
    pub before: f64,
    /// The level from here to the next lead, or the end.
    pub after: f64,
    /// Standard deviation of the values before; 0 for one.
    pub deviation_before: f64,
    /// Standard deviation of those after.
    pub deviation_after: f64,
    /// The change from one level to the other: after / before − 1, or the
    /// difference where that is the scale.
    pub change: f64,
    /// Probability that chance alone would bring this forth, as the method has it.
    pub p_value: f64,
    /// True if it is a change for the worse.
    pub worse: bool,
    /// True if it is as large as the tolerance.
    pub matters: bool,
    /// The same in plain values, as Otava reports it.
    pub plain: ChangePoint,
    /// Other changes at the same point.
    pub suspects: Vec<Suspect>,
}

/// Evidence against the program as the cause of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Suspect {
    /// The machine is another one.
    OtherMachine,
    /// The program is the same one.
    SameProgram,
}

/// State of a trend at its latest point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Latest {
    /// There are too few points for the method to find anything.
    TooFew,
    /// No change was found.
    Steady,
    /// The latest change was for the better.
    Better,
    /// The latest change was for the worse.
    Worse,
}

impl Latest {
    /// The word in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooFew => "too few",
            Self::Steady => "steady",
            Self::Better => "better",
            Self::Worse => "worse",
        }
    }
}

impl Trend {
    /// The latest change, where it is for the worse and as large as the
    /// tolerance, and the trend gates.
    #[must_use]
    pub fn alarm(&self) -> Option<&Lead> {
        let last = self.latest_lead()?;
        (self.gates && last.worse && last.matters).then_some(last)
    }

    /// The latest change since the workload or the baseline changed: what was before is not compared with the latest
    /// result.
    pub(crate) fn latest_lead(&self) -> Option<&Lead> {
        let start = self.stretches.last().copied().unwrap_or(0);
        self.leads.last().filter(|lead| lead.index >= start)
    }
}

/// Returns the `last` latest points of each experiment and variant, by time; all points, in their
/// order, without a number.
#[must_use]
pub fn latest(points: &[HistoryPoint], last: Option<usize>) -> Vec<HistoryPoint> {
    let mut points = points.to_vec();
    let Some(last) = last else {
        return points;
    };
    points.sort_by_key(|point| (point.origin.time_millis, point.origin.run.clone()));
    let is_latest = |place: usize| {
        let test = |point: &HistoryPoint| (point.experiment.clone(), point.comparison.clone());
        let value = test(&points[place]);
        let later = points[place + 1..].iter();
        later.filter(|point| test(point) == value).count() < last
    };
    let kept = (0..points.len()).filter(|place| is_latest(*place));
    kept.map(|place| points[place].clone()).collect()
}

#[cfg(test)]
mod tests;
