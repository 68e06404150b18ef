//! Statistics of comparisons of a baseline with itself: share of wrong verdicts, and
//! the smallest change that it can see.

mod figures;
mod trial;

use stillwell_plan::goal::Scale;
use stillwell_plan::{GoalMetric, WorkUnit};
use stillwell_units::{Nanos, Tolerance};

use crate::rule::Change;

pub use figures::{AppliedSlowdown, Compared, calibrated};
pub use trial::Trial;

/// Calibration of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedExperiment {
    /// Its name.
    pub name: String,
    /// Unit of the work that costs are divided by.
    pub work: WorkUnit,
    /// Comparisons of the baseline with itself, by the primary goal.
    pub self_comparison: SelfComparisonFigures,
    /// Comparisons with itself made worse, by the primary goal; or why there are
    /// none.
    pub worse: Result<WorseFound, String>,
    /// Visible changes of each goal; the first is the primary.
    pub goals: Vec<CalibratedGoal>,
    /// Time that one pair takes in the mean, start and stop included.
    pub pair_time: Nanos,
    /// The most pairs of a search, by the experiment's own settings.
    pub max_pairs: u32,
    /// Conditions of the runs.
    pub machine: MachineMet,
}

/// Comparisons in which nothing differs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SelfComparisonFigures {
    /// All that ended.
    pub comparisons: u32,
    /// Those of them that were invalid.
    pub invalid: u32,
    /// Called a change by the search, regressed or improved.
    pub flagged_by_search: u32,
    /// Called so after confirmation.
    pub flagged: u32,
    /// With an interval that does not hold zero.
    pub without_zero: u32,
    /// Called equivalent.
    pub equivalent: u32,
}

/// Comparisons in which the target was made worse.
#[derive(Clone, Debug, PartialEq)]
pub struct WorseFound {
    /// How.
    pub how: Slowdown,
    /// The change that it makes, on the scale of the primary goal; `None` if it is not known.
    pub truth: Option<f64>,
    /// All that ended.
    pub comparisons: u32,
    /// Those of them that were invalid.
    pub invalid: u32,
    /// Called regressed by the search.
    pub found_by_search: u32,
    /// Called so after confirmation.
    pub confirmed: u32,
    /// With an interval that holds the truth, if it is known.
    pub covered: Option<u32>,
    /// Values of each that has one estimated.
    pub changes: Vec<Change>,
}

/// Way to make a target worse.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Slowdown {
    /// CPU time is used in proportion to that of the target.
    Burn,
    /// It is stopped for a share of the time.
    Pause,
}

/// Visible changes of one goal.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedGoal {
    /// Metric that is compared.
    pub metric: GoalMetric,
    /// By what.
    pub scale: Scale,
    /// Smallest change that matters.
    pub tolerance: Tolerance,
    /// Comparisons of the baseline with itself that have a number for it.
    pub comparisons: u32,
    /// Those of them that the search called regressed or improved.
    pub flagged: u32,
    /// Valid pairs of these.
    pub pairs: u32,
    /// Standard deviation of the pairs' log ratios or differences about the mean
    /// of their comparison.
    pub pair_deviation: Option<f64>,
    /// The same if the runs of a pair were not next to each other:
    /// √2 times that of single runs over all of the calibration.
    pub apart_deviation: Option<f64>,
    /// The share of the pairs' variance that comes from within runs, and would
    /// shrink if they were longer; `None` where runs are too short to estimate it.
    pub within_share: Option<f64>,
    /// The length of run that would see most in the same time, in seconds; as
    /// above.
    pub better_seconds: Option<f64>,
    /// Visible change after a time.
    pub visible: Vec<Visible>,
}

/// The smallest change that is seen in four of five experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visible {
    /// The time that an experiment may take.
    pub minutes: u32,
    /// As many pairs fit into it, its confirmation left out.
    pub pairs: u32,
    /// The change, as a share or a difference; `None` where so few pairs have no
    /// verdict.
    pub change: Option<f64>,
}

/// Conditions of the runs of a calibration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineMet {
    /// Runs in all.
    pub runs: u32,
    /// Pairs that say nothing about the primary goal.
    pub pairs_discarded: u32,
    /// Code of each warning, and the number of runs with it; the most frequent first.
    pub warnings: Vec<(&'static str, u32)>,
    /// Share of the host's CPU time that others used, in the mean and at most.
    pub foreign: Option<(f64, f64)>,
    /// The same that the hypervisor took.
    pub steal: Option<(f64, f64)>,
}
