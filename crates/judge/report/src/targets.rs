//! Several programs under one load.

mod document;
mod imported;
mod json;

use stillwell_units::Nanos;
use stillwell_verdict::TargetsVerdict;

pub use self::imported::IMPORT_SCHEMA;
pub use self::json::TARGETS_REPORT_SCHEMA;
use crate::{FullReport, TargetProfiles};

/// The content of a report about several programs under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetsReport {
    /// Title of the run.
    pub title: String,
    /// One table for each experiment.
    pub verdicts: Vec<TargetsVerdict>,
    /// Versions, by the names of targets; `None` for one that does not say.
    pub versions: Vec<(String, Option<String>)>,
    /// Targets that were not run, and why.
    pub left_out: Vec<(String, String)>,
    /// Further problems.
    pub problems: Vec<String>,
    /// Folder of the captures.
    pub results_folder: String,
    /// The command that gives these results again.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
    /// Facts about the host, by name, for readers.
    pub host: Vec<(String, String)>,
    /// Duration of the whole run; `None` for a report of stored results.
    pub elapsed: Option<Nanos>,
    /// Commands to run next, best first.
    pub next: Vec<String>,
    /// Profiles of the targets that have some, in the order of experiments and targets.
    pub profiles: Vec<TargetProfiles>,
}

impl From<&TargetsReport> for FullReport {
    fn from(report: &TargetsReport) -> Self {
        Self {
            document: document::document(report),
            data: json::json(report),
            page_data: None,
        }
    }
}

#[cfg(test)]
mod tests;
