//! What an experiment came to, for scripts: `verdict.json`.
//!
//! Everything else that a report shows follows from the summaries beside it.

use serde::Serialize;
use stillwell_verdict::{ExperimentVerdict, GoalVerdict};

/// Names the shape of [`VerdictRecord`]; keys are added within a version and
/// never removed.
const VERDICT_SCHEMA: &str = "stillwell/verdict/v1";

#[derive(Debug, Serialize)]
pub(crate) struct VerdictRecord<'a> {
    schema: &'static str,
    experiment: &'a str,
    verdict: &'static str,
    gate: &'static str,
    pairs_planned: u32,
    pairs_used: u32,
    pairs_discarded: u32,
    goals: Vec<GoalRecord<'a>>,
}

/// All changes are comparison / baseline − 1.
#[derive(Debug, Serialize)]
struct GoalRecord<'a> {
    metric: &'static str,
    comparison: &'a str,
    primary: bool,
    tolerance: f64,
    verdict: &'static str,
    baseline_mean: Option<f64>,
    comparison_mean: Option<f64>,
    change: Option<ChangeRecord>,
    smallest_visible: Option<f64>,
    pairs: u32,
    reason: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct ChangeRecord {
    estimate: f64,
    lower: f64,
    upper: f64,
}

impl<'a> VerdictRecord<'a> {
    pub(crate) fn new(verdict: &'a ExperimentVerdict) -> Self {
        Self {
            schema: VERDICT_SCHEMA,
            experiment: &verdict.name,
            verdict: verdict.verdict.name(),
            gate: verdict.gate.name(),
            pairs_planned: verdict.pairs_planned,
            pairs_used: verdict.pairs_used,
            pairs_discarded: verdict.pairs_discarded,
            goals: verdict.goals.iter().map(GoalRecord::new).collect(),
        }
    }
}

impl<'a> GoalRecord<'a> {
    fn new(goal: &'a GoalVerdict) -> Self {
        Self {
            metric: goal.metric.name(),
            comparison: &goal.comparison,
            primary: goal.primary,
            tolerance: goal.tolerance.share(),
            verdict: goal.verdict.name(),
            baseline_mean: goal.baseline_mean,
            comparison_mean: goal.comparison_mean,
            change: goal.change.map(|change| ChangeRecord {
                estimate: change.estimate,
                lower: change.lower,
                upper: change.upper,
            }),
            smallest_visible: goal.smallest_visible,
            pairs: goal.pairs,
            reason: goal.reason.as_deref(),
        }
    }
}
