//! Bounds that every run must keep.

use serde::{Deserialize, Serialize};

/// A bound on one series. Bounds are in the series' own unit.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CheckPlan {
    /// Its name in reports.
    pub name: String,
    /// Reason why it is there, for readers.
    pub description: Option<String>,
    /// The series that is read.
    pub series: SeriesSelector,
    /// The observed value must not lie above.
    pub upper: Option<f64>,
    /// The observed value must not lie below.
    pub lower: Option<f64>,
}

/// One series of a capture, reduced to one number.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SeriesSelector {
    /// The metric's name.
    pub metric: String,
    /// The `id` label that it must carry, if any: `bytes_received['intake']`.
    pub id: Option<String>,
    /// The way from its samples to one number.
    pub aggregation: Aggregation,
}

/// The way from a series' samples to one number.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// Every sample counts by itself: the largest is held against the upper
    /// bound, the smallest against the lower.
    Each,
    /// The largest of all samples, for both bounds: a bare series of an SMP
    /// check.
    Largest,
    /// The mean of all samples.
    Mean,
}
