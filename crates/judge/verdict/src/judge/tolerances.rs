//! Tolerances that are times, as shares.

use std::borrow::Cow;

use stillwell_capture::RunStage;
use stillwell_plan::goal::Scale;
use stillwell_plan::{ExperimentPlan, GoalPlan};
use stillwell_units::{Tolerance, float_from_u64};

use super::pairs::Pairs;
use super::table::RunTable;
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
/// runs in the pairs of the search, valid ones if there are any. Without a run the share of the plan
/// stays; nothing is judged then.
pub(super) fn as_shares<'p>(
    plan: &'p ExperimentPlan,
    table: &RunTable<'_>,
) -> Cow<'p, ExperimentPlan> {
    let has_time = plan.goals.iter().any(|goal| goal.tolerance_time.is_some());
    let [baseline, comparison, ..] = plan.variants.as_slice() else {
        return Cow::Borrowed(plan);
    };
    if !has_time {
        return Cow::Borrowed(plan);
    }
    let variants = [baseline.name.as_str(), comparison.name.as_str()];
    let mut of_shares = plan.clone();
    for goal in &mut of_shares.goals {
        let pairs = Pairs::of(&goal.metric, variants, RunStage::Search, table);
        let values = match pairs.values.as_slice() {
            [] => &pairs.measured,
            _ => &pairs.values,
        };
        let mean = mean_on(Scale::Ratio, values.iter().map(|pair| pair.0));
        goal.tolerance = tolerance_at(goal, mean);
    }
    Cow::Owned(of_shares)
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
