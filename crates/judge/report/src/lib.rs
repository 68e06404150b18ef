//! Verdicts to bytes: for a terminal, for a pull request, for a browser, for a machine.
//!
//! Each family of reports, such as a [`SuiteReport`], is data with a function that makes a
//! [`document::Document`] of it; [`Format`] is the catalogue of forms, and [`FullReport`] renders a report in one of
//! them. Nothing is written here: callers get text.
//!
//! All forms keep the same order: the answer first, then how large the change is and how sure, then the
//! warnings, then how it was measured. Every number has its unit, and every verdict is a word; colours and
//! symbols only repeat it.

mod bench;
mod calibration;
mod capacity;
mod comparison;
mod decision;
pub mod document;
pub mod history;
mod json;
pub mod load;
mod percentiles;
mod profiles;
mod run;
mod scenario;
mod style;
mod suite;
mod svg;
mod targets;
mod words;

use stillwell_units::{Nanos, Secrets};
use stillwell_verdict::{ErrorBudget, ExperimentVerdict, GatePolicy, exit_code};

pub use bench::{BenchAnswers, BenchReport, bench_json};
pub use calibration::{
    CALIBRATION_SCHEMA, CalibratedExperiment, CalibratedGoal, CalibrationReport, MachineMet,
    SelfComparisonFigures, Slowdown, Visible, WorseFound,
};
pub use capacity::{
    CAPACITY_SCHEMA, CapacityJsonError, CapacityReport, capacity_csv, capacity_json, probe_line,
    progress_bracket, progress_line, read_capacity_json,
};
pub use comparison::{
    AncestorTables, COMPARISON_SCHEMA, ComparedRuns, ComparisonGroup, ComparisonReport,
    ComparisonRow, Finding, SmpTable, SoakTable,
};
pub use decision::{
    DECISION_JSON_SCHEMA, DECISION_SCHEMA, GateFinding, decision_json, gate_findings, junit,
};
pub use document::{
    AxisScale, Band, Curve, Format, FormatError, FullReport, NamedChart, forest_lines, page_policy,
    page_style,
};
pub use json::{REPORT_SCHEMA, json};
pub use profiles::TargetProfiles;
pub use run::{RunReport, overlaid_runs, run_curves, run_terminal};
pub use scenario::{
    SCENARIO_SCHEMA, ScenarioReport, ScenarioStep, ScenarioThreshold, ScenarioUsers,
    render_scenario,
};
pub use style::Style;
pub use suite::{
    CommentOptions, ExperimentProfiles, ExperimentRuns, LENGTH_MAX, MARKER, RunCollector,
    RunDelivery, RunValues, by_attention, comment, markdown, regression_detector, terminal,
};
pub use svg::curve_figure;
pub use targets::{IMPORT_SCHEMA, TARGETS_REPORT_SCHEMA, TargetsReport};
pub use words::{change_with_interval, goal_title};

/// The content of a suite's report.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteReport {
    /// Title, such as the suite's folder.
    pub title: String,
    /// The baseline, such as a revision or a path.
    pub baseline: String,
    /// The version that is compared with it.
    pub comparison: String,
    /// The verdicts, in the order of the plan.
    pub experiments: Vec<ExperimentVerdict>,
    /// The shared error budget that limits false alarms.
    pub budget: ErrorBudget,
    /// Problems that are not part of the verdicts, such as a full disk.
    pub problems: Vec<SuiteProblem>,
    /// Folder of the captures.
    pub results_folder: String,
    /// The command that gives these results again.
    pub command: String,
    /// The suite's seed, as it can be typed.
    pub seed: String,
    /// Version of Stillwell.
    pub version: String,
    /// Facts about the host, by name, for readers.
    pub host: Vec<(String, String)>,
    /// Duration of the whole suite.
    pub elapsed: Nanos,
    /// Commands to run next, best first.
    pub next: Vec<String>,
    /// Runs of the experiments, for the charts of a page; may be missing.
    pub runs: Vec<ExperimentRuns>,
}

/// The reason why a suite, or one of its experiments, was not finished.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SuiteProblem {
    /// The experiment, if it is the problem of one.
    pub experiment: Option<String>,
    /// Description for readers. Lines after the first are details, such as the end of a log.
    pub reason: String,
    /// Exit code that it causes, if nothing has regressed.
    pub exit_code: u8,
}

impl SuiteProblem {
    /// Returns the problem in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let reason = self.reason.lines().next().unwrap_or_default();
        let name = self.experiment.iter();
        let name = name.map(|experiment| format!("{experiment}: "));
        name.chain([reason.to_owned()]).collect()
    }

    /// Returns the problem with the secrets of its reason handled. The name of its experiment is Stillwell's own text
    /// and stays, also if it looks like the name of a secret.
    fn masked(&self, secrets: Secrets) -> Self {
        Self {
            reason: secrets.text(&self.reason),
            ..self.clone()
        }
    }
}

impl SuiteReport {
    /// Returns the exit code: that of the verdicts, or that of the worst problem if nothing has regressed.
    #[must_use]
    pub fn exit_code(&self, policy: GatePolicy) -> u8 {
        let problems = self.problems.iter().map(|problem| problem.exit_code);
        match (exit_code(&self.experiments, policy), problems.min()) {
            (1, _) => 1,
            (_, Some(code)) => code,
            (code, None) => code,
        }
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hostile_text;
#[cfg(test)]
mod tests;
