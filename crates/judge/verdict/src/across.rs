//! Runs that were not made in pairs.

use stillwell_plan::{Direction, GoalMetric, GoalPlan, Scale};
use stillwell_stats::{Level, SampleError, Welch, mann_whitney, welch};
use stillwell_units::Tolerance;

use crate::deltas::{mean_on, on_scale};
use crate::rule::{Change, Verdict, verdict_of};
use crate::summary::RunSummary;

/// What two sets of runs say about one goal that were not made in pairs: drift
/// of the machine between them looks like a change. No experiment gates on it;
/// `stillwell compare`, where a person names the two sets, does and says so.
#[derive(Clone, Debug, PartialEq)]
pub struct AcrossVerdict {
    /// What is compared.
    pub metric: GoalMetric,
    /// Which way is better.
    pub direction: Direction,
    /// By what the two are compared.
    pub scale: Scale,
    /// How large a change must be to matter.
    pub tolerance: Tolerance,
    /// The answer, were the two sets alike in all else.
    pub verdict: Verdict,
    /// Runs of the baseline, and of the comparison, that could be used.
    pub runs: [u32; 2],
    /// Runs of each that could not.
    pub runs_left_out: [u32; 2],
    /// Mean of the baseline's runs: geometric where compared by ratio.
    pub baseline_mean: Option<f64>,
    /// The same of the comparison's.
    pub comparison_mean: Option<f64>,
    /// The change with Welch's 95 % interval, of logarithms where compared by
    /// ratio.
    pub change: Option<Change>,
    /// Welch's p, two-sided.
    pub p_value: Option<f64>,
    /// p of the Mann–Whitney test, two-sided.
    pub mann_whitney_p: Option<f64>,
    /// Why there is no answer.
    pub reason: Option<String>,
}

/// Compares runs that were not made in pairs, by each of the goals: of one
/// experiment against another, or of one lab against an earlier one.
///
/// Runs with a doubt about a goal, or without a number of it, are left out.
#[must_use]
pub fn judge_across(
    goals: &[GoalPlan],
    baseline: &[&RunSummary],
    comparison: &[&RunSummary],
) -> Vec<AcrossVerdict> {
    let values = |goal: &GoalPlan, runs: &[&RunSummary]| {
        let valid = runs
            .iter()
            .filter(|run| run.doubt_about(&goal.metric).is_none());
        let values: Vec<f64> = valid.filter_map(|run| run.value(&goal.metric)).collect();
        let left_out = count(runs.len() - values.len());
        (values, left_out)
    };
    let across = |goal: &GoalPlan| {
        let (one, one_left_out) = values(goal, baseline);
        let (other, other_left_out) = values(goal, comparison);
        AcrossVerdict {
            runs_left_out: [one_left_out, other_left_out],
            ..compare_columns(goal, &one, &other)
        }
    };
    goals.iter().map(across).collect()
}

/// Compares two columns of numbers, one a run, that carry no pairing: by Welch's
/// test of their logarithms, or of the numbers themselves where the goal is
/// compared by difference.
#[must_use]
pub fn compare_columns(goal: &GoalPlan, baseline: &[f64], comparison: &[f64]) -> AcrossVerdict {
    let scale = goal.metric.scale();
    let tested = test(scale, baseline, comparison);
    let change = tested.as_ref().ok().map(|welch| {
        let difference = welch.difference;
        Change {
            estimate: on_scale(scale, difference.value),
            lower: on_scale(scale, difference.lower),
            upper: on_scale(scale, difference.upper),
        }
    });
    let verdict = change.map(|change| verdict_of(change, goal.direction, goal.tolerance));
    AcrossVerdict {
        metric: goal.metric.clone(),
        direction: goal.direction,
        scale,
        tolerance: goal.tolerance,
        verdict: verdict.unwrap_or(Verdict::Invalid),
        runs: [count(baseline.len()), count(comparison.len())],
        runs_left_out: [0, 0],
        baseline_mean: mean_on(scale, baseline.iter().copied()),
        comparison_mean: mean_on(scale, comparison.iter().copied()),
        change,
        p_value: tested.as_ref().ok().map(|welch| welch.p_value),
        mann_whitney_p: mann_whitney(baseline, comparison).map(|own| own.p_value),
        reason: tested.err(),
    }
}

fn test(scale: Scale, baseline: &[f64], comparison: &[f64]) -> Result<Welch, String> {
    let reason = |error: SampleError| error.to_string();
    let level = Level::NINETY_FIVE;
    if scale == Scale::Difference {
        return welch(baseline, comparison, level).map_err(reason);
    }
    let mut all = baseline.iter().chain(comparison);
    if let Some(value) = all.find(|value| !(value.is_finite() && **value > 0.0)) {
        return Err(format!(
            "{value} is among the numbers: a ratio needs numbers above zero"
        ));
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    welch(&logs(baseline), &logs(comparison), level).map_err(reason)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
