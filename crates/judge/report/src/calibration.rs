//! What a rig can see, and how often it is wrong: experiments of a target with
//! itself, and with itself made worse by a known share.
//!
//! The order is that of all reports: the answer, how sure, what limits it.

mod document;
mod json;

use stillwell_units::Nanos;

pub use json::CALIBRATION_SCHEMA;
pub use stillwell_verdict::calibration::{
    AlikeFound, CalibratedExperiment, CalibratedGoal, MachineMet, Slowdown, Visible, WorseFound,
};

use crate::{Format, Style};

/// All that is told of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationReport {
    /// What was calibrated, as it was typed.
    pub title: String,
    /// One for each experiment of which anything was finished.
    pub experiments: Vec<CalibratedExperiment>,
    /// Where the captures lie.
    pub results_folder: String,
    /// The command that gives this again.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
    /// Facts about the host, by name, for readers.
    pub host: Vec<(String, String)>,
    /// How long it all took.
    pub elapsed: Nanos,
}

/// The report in this form; `style` is for terminals.
#[must_use]
pub fn render_calibration(report: &CalibrationReport, format: Format, style: Style) -> String {
    format.render(style, || document::document(report), || json::json(report))
}

#[cfg(test)]
mod tests;
