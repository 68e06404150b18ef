//! Comparisons of what was measured elsewhere or before: one number a run on
//! each side, paired or not.
//!
//! The order is that of all reports: the answer, how large and how sure, what to
//! warning. Where nothing is known of the noise, no verdict is given and the reason
//! stands in its place.

mod ancestors;
mod document;
mod json;

pub use ancestors::{AncestorTables, SmpTable, SoakTable};
pub use json::COMPARISON_SCHEMA;
pub use stillwell_verdict::across::{ComparedRuns, ComparisonRow, Finding};

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

/// The report in this form; `style` is for terminals.
#[must_use]
pub fn render_comparison(report: &ComparisonReport, format: Format, style: Style) -> String {
    format.render(style, || document::document(report), || json::json(report))
}

#[cfg(test)]
mod tests;
