//! Comparisons of what was measured elsewhere or before: one number a run on
//! each side, paired or not.
//!
//! The order is that of all reports: the answer, how large and how sure, what to
//! doubt. Where nothing is known of the noise, no verdict is given and the reason
//! stands in its place.

mod ancestors;
mod document;
mod json;

use stillwell_metric::Unit;
use stillwell_plan::{Direction, Scale};
use stillwell_units::Tolerance;
use stillwell_verdict::{Change, Verdict};

pub use ancestors::{AncestorTables, SmpTable, SoakTable};
pub use json::COMPARISON_SCHEMA;

use crate::{Format, Style};

/// All that is told of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonReport {
    /// What the baseline is, as it was typed.
    pub baseline: String,
    /// What is compared with it, as it was typed.
    pub comparison: String,
    /// One for each experiment; at least one.
    pub groups: Vec<ComparisonGroup>,
    /// What readers should know of all of it, one sentence each.
    pub remarks: Vec<String>,
    /// The command that gives this again.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
}

/// Two sets of runs that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonGroup {
    /// The experiment, where there is one.
    pub name: Option<String>,
    /// What was compared; the first is the primary metric. At least one.
    pub rows: Vec<ComparisonRow>,
    /// The tables of an ancestor's method, if one was asked for.
    pub ancestors: Option<AncestorTables>,
    /// What readers should know of it, one sentence each.
    pub remarks: Vec<String>,
}

/// One metric, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    /// Its name, by which it can be asked for.
    pub metric: String,
    /// What one of it is, in base units.
    pub unit: Unit,
    /// Whether it is for each second.
    pub per_second: bool,
    /// Whether its verdict decides over the exit code.
    pub primary: bool,
    /// Which way is better, where that is known.
    pub direction: Option<Direction>,
    /// How large a change must be to matter.
    pub tolerance: Tolerance,
    /// By what both sides are compared.
    pub scale: Scale,
    /// The runs of the baseline.
    pub baseline: ComparedRuns,
    /// The runs that are compared with it.
    pub comparison: ComparedRuns,
    /// What they say.
    pub finding: Finding,
    /// The verdict; `None` where none can be given.
    pub verdict: Option<Verdict>,
    /// Why there is no verdict, or not the one that a reader might expect.
    pub reason: Option<String>,
    /// What to know when reading its numbers.
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

/// What two sides' runs say, on the scale of the row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// A side has no number.
    Nothing,
    /// The plain difference of the means, of whose noise nothing is known;
    /// `None` where it cannot be told in percent of the baseline.
    Plain(Option<f64>),
    /// Welch's test on the runs' numbers.
    Unpaired {
        /// The change of the means with its 95 % interval.
        change: Change,
        /// Welch's t.
        t: f64,
        /// Its degrees of freedom.
        degrees: f64,
        /// Its two-sided p value.
        p_value: f64,
        /// p of the Mann–Whitney test, where so many runs can tell anything.
        mann_whitney_p: Option<f64>,
    },
    /// Student's t on the pairs' log ratios or differences.
    Paired {
        /// The mean change with its 95 % interval.
        change: Change,
        /// How many pairs.
        pairs: u32,
        /// The two-sided p value.
        p_value: f64,
        /// p of Wilcoxon's signed-rank test, where so many pairs can tell
        /// anything.
        wilcoxon_p: Option<f64>,
        /// The Hodges–Lehmann estimate on the same scale.
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
}

/// The report in this form; `style` is for terminals.
#[must_use]
pub fn render_comparison(report: &ComparisonReport, format: Format, style: Style) -> String {
    format.render(style, || document::document(report), || json::json(report))
}

#[cfg(test)]
mod tests;
