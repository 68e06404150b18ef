//! What is watched while a run goes on.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// What is watched, and how often.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ObserverPlan {
    /// Time between samples of every cheap series.
    pub period: Nanos,
    /// Time between samples of what is dear to read, such as PSS.
    pub detail_period: Nanos,
    /// Pages of the subject's own metrics.
    pub scrapes: Vec<ScrapePlan>,
}

impl Default for ObserverPlan {
    fn default() -> Self {
        Self {
            period: Nanos::SECOND,
            detail_period: Nanos::from_secs(10),
            scrapes: Vec::new(),
        }
    }
}

/// One page of the subject's own metrics, in Prometheus text format.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ScrapePlan {
    /// `http://host:port/path`.
    pub url: String,
    /// Only these names, or all of them.
    pub names: Option<Vec<String>>,
    /// Labels added to every series.
    pub labels: Vec<(String, String)>,
}
