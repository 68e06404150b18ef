//! Tolerances that are times, as shares.

use std::borrow::Cow;

use stillwell_capture::RunStage;
use stillwell_plan::ExperimentPlan;
use stillwell_plan::goal::Scale;
use stillwell_units::{Tolerance, float_from_u64};

use super::pairs::Pairs;
use super::table::RunTable;
use crate::deltas::mean_on;

/// Smallest and largest share that a time may be of the baseline's mean.
const SHARES: (f64, f64) = (1e-6, 0.99);

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
        let Some(time) = goal.tolerance_time else {
            continue;
        };
        let pairs = Pairs::of(&goal.metric, variants, RunStage::Search, table);
        let values = match pairs.values.as_slice() {
            [] => &pairs.measured,
            _ => &pairs.values,
        };
        let mean = mean_on(Scale::Ratio, values.iter().map(|pair| pair.0));
        let share = mean.map(|mean| float_from_u64(time.as_u64()) / mean);
        let share = share.map(|share| Tolerance::try_new(share.clamp(SHARES.0, SHARES.1)));
        if let Some(Ok(share)) = share {
            goal.tolerance = share;
        }
    }
    Cow::Owned(of_shares)
}
