//! Verdicts to bytes: for a terminal, for a pull request, for a browser, for a machine.
//!
//! Each family of reports, such as a [`SuiteReport`], is data with a function that makes a
//! [`document::Document`] of it; [`Format`] is the catalogue of forms, and [`render`] returns a report in one of
//! them. Nothing is written here: callers get text.
//!
//! All forms keep the same order: the answer first, then how large the change is and how sure, then the
//! warnings, then how it was measured. Every number has its unit, and every verdict is a word; colours and
//! symbols only repeat it.

mod bench;
mod calibration;
mod capacity;
mod comparison;
pub mod document;
pub mod history;
mod json;
pub mod load;
mod run;
mod style;
mod suite;
mod svg;
mod targets;
mod words;

use stillwell_units::Nanos;
use stillwell_verdict::{ErrorBudget, ExperimentVerdict};

pub use bench::{BenchAnswers, BenchReport, BenchVolume, BenchWindow, bench_json, bench_text};
pub use calibration::{
    AlikeFound, CALIBRATION_SCHEMA, CalibratedExperiment, CalibratedGoal, CalibrationReport,
    MachineMet, Slowdown, Visible, WorseFound, render_calibration,
};
pub use capacity::{
    CAPACITY_SCHEMA, CapacityReport, capacity_csv, capacity_json, capacity_terminal, probe_line,
    progress_line,
};
pub use comparison::{
    AncestorTables, COMPARISON_SCHEMA, ComparedRuns, ComparisonGroup, ComparisonReport,
    ComparisonRow, Finding, SmpTable, SoakTable, render_comparison,
};
pub use document::{Format, FormatError};
pub use json::{REPORT_SCHEMA, json};
pub use run::run_terminal;
pub use style::Style;
pub use suite::{LENGTH_MAX, MARKER, markdown, terminal};
pub use targets::{
    IMPORT_SCHEMA, TARGETS_REPORT_SCHEMA, TargetsReport, render_imported, render_targets,
};

/// All that is told of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteReport {
    /// What was run, such as the suite's folder.
    pub title: String,
    /// What the baseline is, such as a revision or a path.
    pub baseline: String,
    /// What is compared with it.
    pub comparison: String,
    /// The verdicts, in the order of the plan.
    pub experiments: Vec<ExperimentVerdict>,
    /// How they are kept from raising a false alarm together.
    pub budget: ErrorBudget,
    /// Where the captures lie.
    pub results_folder: String,
    /// The command that gives these results again.
    pub command: String,
    /// The suite's seed, as it can be typed.
    pub seed: String,
    /// Version of Stillwell.
    pub version: String,
    /// Facts about the host, by name, for readers.
    pub host: Vec<(String, String)>,
    /// How long it all took.
    pub elapsed: Nanos,
    /// What to type next, best first.
    pub next: Vec<String>,
}

/// Returns the report in this form; `style` is for terminals.
#[must_use]
pub fn render(report: &SuiteReport, format: Format, style: Style) -> String {
    format.render(style, || suite::document(report), || json(report))
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
