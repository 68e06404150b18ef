//! Nighthawk's adaptive load sessions: their specification, the metrics of each load and the
//! search for the rate.
//!
//! * [`SessionSpec`]: `nighthawk.adaptive_load.AdaptiveLoadSessionSpec`, from text
//!   proto or JSON by [`read_session`];
//! * [`SessionSpec::run`]: the session, over [`SessionLoads`];
//! * `Controller`: the exponential search, a pure machine;
//! * [`SessionOutput`]: `AdaptiveLoadSessionOutput`, as text proto or JSON.
//!
//! Two things differ from the tool, where it measures wrongly: durations are not
//! cut to whole seconds, and a load without one answer of 2xx has a success rate of
//! 0 instead of being an error.

mod control;
mod metric;
mod output;
mod read;
mod session;
#[cfg(test)]
mod tests;

use serde_json::Value;
use stillwell_units::Nanos;

use super::{CommandLineOptions, Output};
pub use metric::{BUILTIN_METRICS, MetricError, metric};
pub use output::{session_json, session_text};
pub use read::read_session;
pub use session::{SessionError, SessionEvent, SessionLoads, TemplateError};

/// `AdaptiveLoadSessionSpec`, with its defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSpec {
    /// The load, without its rate and length.
    pub template: CommandLineOptions,
    /// Bounds on metrics.
    pub thresholds: Vec<Threshold>,
    /// Metrics without a threshold.
    pub informational: Vec<MetricSpec>,
    /// Parameters of the search.
    pub search: ExponentialSearch,
    /// Length of each load.
    pub measuring_period: Nanos,
    /// Maximum length of the search.
    pub convergence_deadline: Nanos,
    /// Length of the last load.
    pub testing_stage: Nanos,
    /// Pause after each load.
    pub cooldown: Nanos,
}

/// `MetricSpec`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MetricSpec {
    /// Such as `success-rate`.
    pub metric: String,
    /// Plugin that measures it; `nighthawk.builtin` by default.
    pub plugin: String,
}

/// `MetricSpecWithThreshold`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The metric.
    pub spec: MetricSpec,
    /// The score of a value.
    pub scoring: Scoring,
    /// Above 0; only whether there is one counts.
    pub weight: f64,
    /// The message unchanged, for the output.
    pub message: Value,
}

/// The score of a metric: with 0 or more the threshold holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scoring {
    /// 1 within both thresholds, −1 beyond.
    Binary {
        /// It must not be below.
        lower: Option<f64>,
        /// It must not be above.
        upper: Option<f64>,
    },
    /// `scale · (threshold − value)`.
    Linear {
        /// Value with a score of 0.
        threshold: f64,
        /// Score for each unit below the threshold.
        scale: f64,
    },
}

/// `ExponentialSearchStepControllerConfig`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExponentialSearch {
    /// The first rate, in requests a second for each worker.
    pub initial: f64,
    /// The factor between two rates while thresholds hold.
    pub factor: f64,
}

/// `AdaptiveLoadSessionOutput`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionOutput {
    /// The loads of the search.
    pub adjusting: Vec<BenchmarkResult>,
    /// The last load, at the rate that was found.
    pub testing: Option<BenchmarkResult>,
    /// The messages of the thresholds, unchanged.
    pub thresholds: Vec<Value>,
}

/// `BenchmarkResult`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchmarkResult {
    /// The result of the load.
    pub output: Output,
    /// Each metric, thresholds first.
    pub evaluations: Vec<Evaluation>,
    /// Since the Unix epoch.
    pub started: Nanos,
    /// Since the Unix epoch.
    pub ended: Nanos,
}

/// `MetricEvaluation`.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// `PLUGIN/METRIC`.
    pub metric_id: String,
    /// Value of the metric.
    pub value: f64,
    /// Its score, where it has a threshold.
    pub score: Option<f64>,
    /// Its weight, where it has a threshold.
    pub weight: Option<f64>,
}

impl Scoring {
    /// The score of `value`.
    #[must_use]
    pub fn score(self, value: f64) -> f64 {
        match self {
            Self::Linear { threshold, scale } => scale * (threshold - value),
            Self::Binary { lower, upper } => {
                let is_below = lower.is_some_and(|lower| value < lower);
                let is_above = upper.is_some_and(|upper| value > upper);
                if is_below || is_above { -1.0 } else { 1.0 }
            }
        }
    }
}

impl MetricSpec {
    /// As results name it.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.plugin, self.metric)
    }
}

/// `None` where `output` does not have it.
fn measured(spec: &MetricSpec, output: &Output) -> Result<Option<f64>, MetricError> {
    match metric(&spec.metric, output) {
        Ok(value) => Ok(Some(value)),
        Err(MetricError::Missing { .. }) => Ok(None),
        Err(unknown @ MetricError::Unknown { .. }) => Err(unknown),
    }
}

impl SessionSpec {
    /// Returns the metrics of `output`, thresholds first, and true if all thresholds hold. A
    /// threshold whose metric is missing does not hold, such as the latency without a response: its
    /// value is 0 and its score −1. A missing metric without a threshold is left out.
    ///
    /// # Errors
    /// [`MetricError::Unknown`] for an unknown metric.
    pub fn evaluate(&self, output: &Output) -> Result<(Vec<Evaluation>, bool), MetricError> {
        let mut evaluations = Vec::new();
        let mut holds = true;
        for threshold in &self.thresholds {
            let value = measured(&threshold.spec, output)?;
            let score = value.map_or(-1.0, |value| threshold.scoring.score(value));
            holds &= score >= 0.0;
            evaluations.push(Evaluation {
                metric_id: threshold.spec.id(),
                value: value.unwrap_or(0.0),
                score: Some(score),
                weight: Some(threshold.weight),
            });
        }
        for spec in &self.informational {
            let Some(value) = measured(spec, output)? else {
                continue;
            };
            evaluations.push(Evaluation {
                metric_id: spec.id(),
                value,
                score: None,
                weight: None,
            });
        }
        Ok((evaluations, holds))
    }
}
