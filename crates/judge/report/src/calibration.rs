//! Sensitivity and error rates of a setup: experiments of a target with itself, and with
//! itself made worse by a known share.
//!
//! The order is that of all reports: the answer, how sure, what limits it.

mod document;
mod json;

use stillwell_units::Nanos;

pub use json::CALIBRATION_SCHEMA;
pub use stillwell_verdict::calibration::{
    CalibratedExperiment, CalibratedGoal, MachineMet, SelfComparisonFigures, Slowdown, Visible,
    WorseFound,
};

use crate::FullReport;

/// The content of a calibration's report.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationReport {
    /// The calibrated suite or target, as it was typed.
    pub title: String,
    /// One for each experiment of which anything was finished.
    pub experiments: Vec<CalibratedExperiment>,
    /// Folder of the captures.
    pub results_folder: String,
    /// The command that gives this again.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
    /// Facts about the host, by name, for readers.
    pub host: Vec<(String, String)>,
    /// Duration of the whole calibration.
    pub elapsed: Nanos,
}

impl From<&CalibrationReport> for FullReport {
    fn from(report: &CalibrationReport) -> Self {
        Self {
            document: document::document(report),
            data: json::json(report),
            page_data: None,
        }
    }
}

#[cfg(test)]
mod tests;
