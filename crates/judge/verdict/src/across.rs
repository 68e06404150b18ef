//! Runs that were not made in pairs by one experiment: of several experiments, of
//! other tools, or plain columns of numbers.
//!
//! [`match_runs`] says which runs of one side belong to which of the other,
//! [`compare_group`] compares those metric by metric. A run is anything that has
//! numbers by name: [`ComparableRun`]. [`apply_holm`] corrects the verdicts of several groups.

mod columns;
mod family;
mod groups;
mod rows;
mod run;

use stillwell_metric::Unit;
use stillwell_plan::goal::{Direction, Scale};
use stillwell_units::Tolerance;

use crate::rule::{Change, Verdict};

pub use columns::{ColumnsAnswer, ColumnsQuestion, judge_paired, judge_unpaired};
pub use family::apply_holm;
pub use groups::{MatchedRuns, RunGroup, fits, match_runs};
pub use rows::{CompareOptions, compare_group};
pub use run::{ComparableRun, Missing, PairKey, RunNumber, SavedRun, listed, unit_of};

/// Reason why runs cannot be compared.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CompareError {
    /// No experiment has a requested name.
    #[error("no experiment on both sides is named {names}")]
    NoneNamed {
        /// The names.
        names: String,
    },
    /// Each experiment is on one side only.
    #[error("no experiment is on both sides: {alone}")]
    NoneOnBoth {
        /// The experiment is on which side.
        alone: String,
    },
    /// A side has runs of several variants.
    #[error("the {side} holds runs of several variants, {names}: choose one by PATH@NAME")]
    SeveralVariants {
        /// The side.
        side: &'static str,
        /// The variants.
        names: String,
    },
    /// Nothing of this name was recorded.
    #[error("no run has `{name}`; known names: {known}")]
    UnknownMetric {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The baseline has no number at all.
    #[error("nothing to compare: the baseline has no number")]
    NoNumber,
    /// Sides of unequal length, which cannot be paired by place.
    #[error("--paired needs the same number of runs on both sides: there are {left} and {right}")]
    Unequal {
        /// Runs of the baseline.
        left: usize,
        /// Runs that are compared with it.
        right: usize,
    },
}

/// A group of runs, compared metric by metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedGroup {
    /// Metrics that were compared; the first is the primary metric. At least one.
    pub rows: Vec<ComparisonRow>,
    /// Notes for readers, one sentence each.
    pub remarks: Vec<String>,
}

/// One metric, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    /// Its name, by which it is selected.
    pub metric: String,
    /// Unit of a value, in base units.
    pub unit: Unit,
    /// True if it is for each second.
    pub per_second: bool,
    /// True if its verdict decides over the exit code.
    pub primary: bool,
    /// Better direction, where that is known.
    pub direction: Option<Direction>,
    /// Smallest change that matters.
    pub tolerance: Tolerance,
    /// By what both sides are compared.
    pub scale: Scale,
    /// The runs of the baseline.
    pub baseline: ComparedRuns,
    /// The runs that are compared with it.
    pub comparison: ComparedRuns,
    /// Result of the comparison.
    pub finding: Finding,
    /// The verdict; `None` where none can be given.
    pub verdict: Option<Verdict>,
    /// Reason why there is no verdict, or not the one that a reader might expect.
    pub reason: Option<String>,
    /// Notes on its numbers.
    pub remarks: Vec<String>,
}

/// One side's runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparedRuns {
    /// One number a run.
    pub values: Vec<f64>,
    /// Runs without a number that could be used: which, and why.
    pub left_out: Vec<(String, String)>,
}

impl ComparedRuns {
    /// The arithmetic mean; `None` without runs.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let mut mean = None;
        for (value, count) in self.values.iter().zip(1_u32..) {
            let mean = mean.get_or_insert(0.0);
            *mean += (value - *mean) / f64::from(count);
        }
        mean
    }
}

/// Estimates from the runs of both sides, on the scale of the row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// A side has no number.
    Nothing,
    /// The plain difference of the means, of whose noise nothing is known;
    /// `None` where it has no value in percent of the baseline.
    Plain(Option<f64>),
    /// Welch's test on the runs' numbers.
    Unpaired {
        /// The change of the means with its 95 % interval.
        change: Change,
        /// Welch's t.
        t: f64,
        /// Its degrees of freedom.
        degrees: f64,
        /// Its two-sided p value; zero where t is infinite.
        p_value: f64,
        /// p of the Mann–Whitney test, where there are enough runs for it.
        mann_whitney_p: Option<f64>,
    },
    /// Student's t on the pairs' log ratios or differences.
    Paired {
        /// The mean change with its 95 % interval.
        change: Change,
        /// Number of pairs.
        pairs: u32,
        /// The two-sided p value; zero where all pairs show the same change.
        p_value: f64,
        /// p of Wilcoxon's signed-rank test, where there are enough pairs.
        wilcoxon_p: Option<f64>,
        /// The Hodges–Lehmann estimate on the same scale; `None` for more than
        /// [`COMPARED_CENTRE_PAIRS_MAX`](crate::limits::COMPARED_CENTRE_PAIRS_MAX) pairs.
        hodges_lehmann: Option<f64>,
    },
}

impl Finding {
    /// The change with its interval, if noise is known.
    #[must_use]
    pub const fn change(&self) -> Option<Change> {
        match self {
            Self::Unpaired { change, .. } | Self::Paired { change, .. } => Some(*change),
            Self::Nothing | Self::Plain(_) => None,
        }
    }

    /// The two-sided p value of the change, if noise is known.
    #[must_use]
    pub const fn p_value(&self) -> Option<f64> {
        match self {
            Self::Unpaired { p_value, .. } | Self::Paired { p_value, .. } => Some(*p_value),
            Self::Nothing | Self::Plain(_) => None,
        }
    }

    /// True if t is infinite: the sides differ, and nothing varies. The noise is not known then. The p value of
    /// zero counts in a correction and is not reported.
    #[must_use]
    pub fn has_infinite_t(&self) -> bool {
        match self {
            Self::Unpaired { t, .. } => t.is_infinite(),
            Self::Paired {
                change, p_value, ..
            } => *p_value <= 0.0 && change.upper <= change.lower,
            Self::Nothing | Self::Plain(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
