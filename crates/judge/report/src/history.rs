//! Trends over many results: for readers, for programs, and as Apache Otava has
//! them.
//!
//! A change point is reported as a hint, with the command that confirms it.

mod bisect;
mod charts;
mod document;
mod export;
mod json;
mod otava;

use stillwell_verdict::history::{Method, Trend};

pub use self::bisect::{BisectCommit, BisectOutcome, BisectReport, BisectStep, CommitAnswer};
pub use self::document::{quoted, utc_minute};
pub use self::export::{OtavaTable, otava_files, otava_table, otava_tables, otava_yaml};
pub use self::json::HISTORY_SCHEMA;
use crate::{Format, FullReport, Style};

/// The content of a history's report.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryReport {
    /// The trends, experiment after experiment.
    pub trends: Vec<Trend>,
    /// By which test changes were looked for.
    pub method: Method,
    /// Results folders that say nothing, or nothing of some experiment, and why.
    pub skipped: Vec<(String, String)>,
    /// Name of the branch in Otava's files.
    pub branch: String,
    /// The command that gives this again.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
}

/// Output format of a history.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HistoryFormat {
    /// A form of every report.
    Report(Format),
    /// As `otava analyze --output json` prints it: a line for each experiment,
    /// with numbers as text.
    OtavaJson,
    /// As `otava analyze --output regressions_only` prints it.
    RegressionsOnly,
}

impl HistoryReport {
    /// Trends whose latest change is an alarm.
    #[must_use]
    pub fn alarms(&self) -> usize {
        let alarms = self.trends.iter().filter(|trend| trend.alarm().is_some());
        alarms.count()
    }
}

impl From<&HistoryReport> for FullReport {
    fn from(report: &HistoryReport) -> Self {
        Self {
            document: document::document(report),
            data: json::json(report),
            page_data: None,
        }
    }
}

/// The history in this form; `style` is for terminals.
#[must_use]
pub fn render_history(report: &HistoryReport, format: HistoryFormat, style: Style) -> String {
    match format {
        HistoryFormat::Report(format) => FullReport::from(report).render(format, style),
        HistoryFormat::OtavaJson => otava::json(report),
        HistoryFormat::RegressionsOnly => otava::regressions_only(report),
    }
}

#[cfg(test)]
mod tests;
