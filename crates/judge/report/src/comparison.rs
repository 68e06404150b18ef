//! Comparisons of what was measured elsewhere or before: one number a run on
//! each side, paired or not.
//!
//! The order is that of all reports: the answer, its size and certainty, the warnings. If
//! the noise is unknown, the report gives the reason instead of a verdict.

mod ancestors;
mod charts;
mod document;
mod json;

pub use ancestors::{AncestorTables, SmpTable, SoakTable};
pub use json::COMPARISON_SCHEMA;
pub use stillwell_verdict::across::{ComparedRuns, ComparisonRow, Finding};

use crate::document::Curve;

/// The content of a comparison's report.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonReport {
    /// The baseline, as it was typed.
    pub baseline: String,
    /// The compared side, as it was typed.
    pub comparison: String,
    /// One for each experiment; at least one.
    pub groups: Vec<ComparisonGroup>,
    /// Remarks about the whole comparison, one sentence each.
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
    /// Compared metrics; the first is the primary one. At least one.
    pub rows: Vec<ComparisonRow>,
    /// Tables of a predecessor's method, if requested.
    pub ancestors: Option<AncestorTables>,
    /// Remarks about the row, one sentence each.
    pub remarks: Vec<String>,
    /// Lines of both sides over time and by percentile, if there are captures.
    pub curves: Vec<Curve>,
}

#[cfg(test)]
mod tests;
