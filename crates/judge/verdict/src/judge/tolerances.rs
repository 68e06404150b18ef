//! Tolerances that are times, as shares.

use std::borrow::Cow;

use stillwell_capture::RunStage;
use stillwell_plan::goal::Scale;
use stillwell_plan::{ExperimentPlan, GoalPlan, VariantPlan};
use stillwell_units::{Tolerance, float_from_u64};

use super::pairs::usable;
use super::table::{Row, RunTable};
use crate::deltas::mean_on;

/// Smallest and largest share that a time may be of the baseline's mean.
const SHARES: (f64, f64) = (1e-6, 0.99);

/// Returns the tolerance of `goal` as a share: a time counts as its share of the baseline's mean. Without
/// a mean the share of the plan stays.
pub(crate) fn tolerance_at(goal: &GoalPlan, baseline_mean: Option<f64>) -> Tolerance {
    let share = goal
        .tolerance_time
        .zip(baseline_mean)
        .map(|(time, mean)| float_from_u64(time.as_u64()) / mean);
    share
        .and_then(|share| Tolerance::try_new(share.clamp(SHARES.0, SHARES.1)).ok())
        .unwrap_or(goal.tolerance)
}

/// Returns `plan` with a share for each tolerance that is a time: that of the mean of the baseline's
/// runs in the pairs of the search with any comparison, valid ones if there are any. Without a run the
/// share of the plan stays; nothing is judged then.
pub(super) fn as_shares<'p>(
    plan: &'p ExperimentPlan,
    table: &RunTable<'_>,
) -> Cow<'p, ExperimentPlan> {
    let has_time = plan.goals.iter().any(|goal| goal.tolerance_time.is_some());
    let [baseline, comparisons @ ..] = plan.variants.as_slice() else {
        return Cow::Borrowed(plan);
    };
    if !has_time {
        return Cow::Borrowed(plan);
    }
    let variants = (baseline.name.as_str(), comparisons);
    let mut of_shares = plan.clone();
    for goal in &mut of_shares.goals {
        let metric = &goal.metric;
        let mut values = baseline_values(variants, table, |row| usable(row, metric, table).ok());
        if values.is_empty() {
            values = baseline_values(variants, table, |row| row.run.value(metric));
        }
        let mean = mean_on(Scale::Ratio, values.into_iter());
        goal.tolerance = tolerance_at(goal, mean);
    }
    Cow::Owned(of_shares)
}

/// Returns the number of each baseline run that is in a pair with any comparison, where both runs have
/// one. Each baseline run counts once.
fn baseline_values(
    (baseline, comparisons): (&str, &[VariantPlan]),
    table: &RunTable<'_>,
    number: impl Fn(&Row<'_>) -> Option<f64>,
) -> Vec<f64> {
    let pairs = table.pairs_of(RunStage::Search).into_iter();
    let values = pairs.filter_map(|pair| {
        let number_of = |variant: &str| {
            let row = table.row(RunStage::Search, pair, variant)?;
            number(row)
        };
        let is_paired = comparisons
            .iter()
            .any(|comparison| number_of(&comparison.name).is_some());
        number_of(baseline).filter(|_| is_paired)
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use stillwell_plan::GoalMetric;
    use stillwell_plan::goal::{LatencyQuantile, TypedTolerance};
    use stillwell_units::Nanos;

    use super::*;

    #[test]
    fn a_time_is_its_share_of_the_mean_of_the_baseline() {
        let goal = GoalPlan::new(GoalMetric::Latency(LatencyQuantile::P99));
        let timed = goal.clone();
        let timed = timed.tolerating(TypedTolerance::Time(Nanos::from_millis(5)));
        let timed = timed.unwrap();
        for (mean, share) in [(10e6, 0.5), (5e6, 0.99), (1e30, 1e-6)] {
            let tolerance = tolerance_at(&timed, Some(mean));
            assert!((tolerance.share() - share).abs() < 1e-12, "{mean}");
        }
        assert_eq!(tolerance_at(&timed, None), goal.tolerance);
        assert_eq!(tolerance_at(&goal, Some(10e6)), goal.tolerance);
    }
}
