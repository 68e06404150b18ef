//! Other metrics that changed beside a goal.

/// A series that changed between the baseline and a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Variant that is compared with the baseline.
    pub comparison: String,
    /// The series, as [`RunSummary::series`](crate::RunSummary::series) names it:
    /// `METRIC{LABEL=VALUE}:REDUCTION`, labels and braces where it has any.
    pub series: String,
    /// Unit of a value, as in the catalogue: `B`, `ns`, `1`, `ratio`; empty
    /// for what the target named.
    pub unit: &'static str,
    /// Mean of the baseline's runs.
    pub baseline_mean: f64,
    /// Mean of the comparison's runs.
    pub comparison_mean: f64,
    /// comparison / baseline − 1; infinite where the baseline has none of it.
    pub change: f64,
    /// The part of the change, as a share of the baseline and without its sign,
    /// that is sure at 95 %; infinite where the baseline has none of it.
    pub at_least: f64,
    /// Probability that pairs without any change would differ as much, adjusted for the
    /// number of series by Benjamini and Hochberg.
    pub p_adjusted: f64,
    /// Pairs in which both runs have it.
    pub pairs: u32,
}
