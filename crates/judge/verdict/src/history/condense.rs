//! One experiment of one result in a number for each metric.

use std::collections::BTreeMap;
use stillwell_units::count;

use stillwell_capture::RunStage;
use stillwell_plan::goal::Scale;
use stillwell_plan::{ExperimentPlan, GoalMetric, GoalPlan};
use stillwell_stats::Sample;

use super::{Measurement, Role};
use crate::deltas::mean_on;
use crate::judge::table::pair_warnings;
use crate::judge::tolerances::tolerance_at;
use crate::summary::RunSummary;

/// Summary of the runs of an experiment by metric about `comparison` against
/// the first variant: the goals of the plan first, then all other
/// recorded under the name of a goal.
///
/// Every valid pair counts, those of the confirmation included: a history wants
/// the best estimate, and takes no verdict from it. Metrics without a valid pair
/// are left out.
#[must_use]
pub fn condense(plan: &ExperimentPlan, runs: &[RunSummary], comparison: &str) -> Vec<Measurement> {
    let Some(baseline) = plan.variants.first() else {
        return Vec::new();
    };
    let remaining = GoalMetric::ALL
        .into_iter()
        .filter(|metric| plan.goals.iter().all(|goal| goal.metric != *metric))
        .map(|metric| (GoalPlan::new(metric), Role::Recorded));
    let of = |goal: &GoalPlan| pairs_of(plan, &goal.metric, runs, [&baseline.name, comparison]);
    // As in a verdict: what the machine cannot measure is skipped.
    let is_skipped = |goal: &&GoalPlan| goal.metric.needs_instructions() && of(goal).is_empty();
    let primary = plan.goals.iter().find(|goal| !is_skipped(goal));
    let goals = plan.goals.iter().map(|goal| {
        let is_primary = primary.is_some_and(|primary| primary.metric == goal.metric);
        // Verdicts of an erratic experiment are information only.
        let role = match is_primary && !plan.erratic {
            true => Role::Primary,
            false => Role::Secondary,
        };
        (goal.clone(), role)
    });
    goals
        .chain(remaining)
        .filter_map(|(goal, role)| {
            let pairs = of(&goal);
            measure(goal, role, &pairs)
        })
        .collect()
}

fn measure(goal: GoalPlan, role: Role, pairs: &[(f64, f64)]) -> Option<Measurement> {
    let scale = goal.metric.scale();
    // One pair is enough here, and all numbers are such that they have a ratio.
    let delta = |(left, right): &(f64, f64)| match scale {
        Scale::Ratio => (right / left).ln(),
        Scale::Difference => right - left,
    };
    let deltas: Vec<f64> = pairs.iter().map(delta).collect();
    let sample = Sample::try_new(&deltas, 1).ok()?;
    let baseline_mean = mean_on(scale, pairs.iter().map(|pair| pair.0))?;
    Some(Measurement {
        tolerance: tolerance_at(&goal, Some(baseline_mean)),
        metric: goal.metric,
        direction: goal.direction,
        role,
        pairs: count(pairs.len()),
        baseline_mean,
        comparison_mean: mean_on(scale, pairs.iter().map(|pair| pair.1))?,
        delta: sample.mean(),
        deviation: sample.standard_deviation(),
    })
}

/// The (baseline, comparison) numbers of every pair that has both, in order.
fn pairs_of(
    plan: &ExperimentPlan,
    metric: &GoalMetric,
    runs: &[RunSummary],
    variants: [&str; 2],
) -> Vec<(f64, f64)> {
    let mut halves: BTreeMap<(RunStage, u32), [Option<&RunSummary>; 2]> = BTreeMap::new();
    for run in runs {
        let Some(identity) = &run.identity else {
            continue;
        };
        let mut sides = variants.iter().enumerate();
        let side = sides.find(|(_, variant)| **variant == identity.variant);
        let (Some((side, _)), None) = (side, run.warning_about(metric)) else {
            continue;
        };
        let pair = halves.entry((identity.stage, identity.pair)).or_default();
        pair[side] = Some(run);
    }
    let usable =
        |value: &f64| value.is_finite() && (metric.scale() == Scale::Difference || *value > 0.0);
    let value = |run: &RunSummary| run.value(metric).filter(usable);
    let both = |half: [Option<&RunSummary>; 2]| {
        let (left, right) = (half[0]?, half[1]?);
        let is_comparable = pair_warnings(plan.design, left, right).is_empty();
        is_comparable.then(|| Some((value(left)?, value(right)?)))?
    };
    halves.into_values().filter_map(both).collect()
}
