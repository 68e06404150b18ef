//! The capacity of a target: the answer of a search and its response curve, for readers,
//! programs and spreadsheets.
//!
//! The order is that of all reports: the answer, how sure, what limits it, then
//! every probe.

mod csv;
mod document;
mod json;
mod read;
#[cfg(test)]
mod tests;

use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_plan::{Validity, WorkUnit};
use stillwell_stats::Level;
use stillwell_stats::capacity::{Observed, Purpose};
use stillwell_units::Nanos;
use stillwell_verdict::capacity::{CapacityAnswer, CapacityProbe};

pub use csv::capacity_csv;
pub use document::{probe_line, progress_bracket, progress_line};
pub use json::{CAPACITY_SCHEMA, capacity_json};
pub use read::{CapacityJsonError, read_capacity_json};

use crate::FullReport;

/// The content of a search's report.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityReport {
    /// The target: a URL, or an experiment and one of its generators.
    pub target: String,
    /// Unit of the rates.
    pub unit: WorkUnit,
    /// Limits that had to hold.
    pub bounds: Vec<CapacityBound>,
    /// Every probe, in the order in which they were made.
    pub probes: Vec<CapacityProbe>,
    /// The answer; `None` if the search was interrupted or failed.
    pub answer: Option<CapacityAnswer>,
    /// Requested precision of the answer, as a share of it.
    pub within: f64,
    /// Strictness of the limits above which a probe is inconclusive.
    pub validity: Validity,
    /// Confidence level of the intervals.
    pub level: Level,
    /// The command that gives this again.
    pub command: String,
    /// Version of Stillwell.
    pub version: String,
    /// Duration of the whole search.
    pub elapsed: Nanos,
}

impl CapacityReport {
    /// Returns the columns of the curve: the usual ones, and further figures with a limit.
    #[must_use]
    pub fn columns(&self) -> Vec<CapacityFigure> {
        let mut columns = CapacityProbe::COLUMNS.to_vec();
        for bound in &self.bounds {
            if !columns.contains(&bound.figure) {
                columns.push(bound.figure);
            }
        }
        columns
    }

    /// The probes by their load, and in order at the same.
    pub(crate) fn curve(&self) -> Vec<&CapacityProbe> {
        let mut probes: Vec<&CapacityProbe> = self.probes.iter().collect();
        probes.sort_by(|a, b| {
            let load = |probe: &CapacityProbe| {
                let connections = probe.connections.map_or(0.0, f64::from);
                probe.rate.unwrap_or(connections)
            };
            load(a).total_cmp(&load(b))
        });
        probes
    }
}

impl From<&CapacityReport> for FullReport {
    fn from(report: &CapacityReport) -> Self {
        Self {
            document: document::document(report),
            data: capacity_json(report),
            page_data: None,
        }
    }
}

/// A word for programs.
pub(crate) const fn observed_code(observed: Observed) -> &'static str {
    match observed {
        Observed::Held => "held",
        Observed::Failed => "failed",
        Observed::Unclear => "unclear",
    }
}

/// A word for programs.
pub(crate) const fn purpose_code(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Grow => "grow",
        Purpose::Narrow => "narrow",
        Purpose::Below => "confirm_below",
        Purpose::Above => "confirm_above",
    }
}
