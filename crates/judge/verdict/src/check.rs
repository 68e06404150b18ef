//! Check of one run against its bounds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stillwell_metric::{Unit, catalogue};
use stillwell_plan::check::{Aggregation, SeriesSelector};
use stillwell_plan::{CheckPlan, GoalMetric, RunPlan};
use stillwell_units::{Nanos, float_from_u64};

use crate::summary::Measured;
use crate::window::Window;

/// A check's answer for one run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CheckResult {
    /// Name in reports of it.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The value nearest to breaking a bound, or beyond it; `None` if the series
    /// was not recorded. In `unit`.
    pub observed: Option<f64>,
    /// It must not lie above.
    pub upper: Option<f64>,
    /// It must not lie below.
    pub lower: Option<f64>,
    /// Unit of values and bounds, as the catalogue has it: `B`, `ns`, `1`,
    /// `ratio`; empty for what the target named.
    pub unit: String,
    /// True if the bounds were kept.
    pub passed: CheckPassed,
}

/// True if bounds were kept.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckPassed {
    /// They were.
    Pass,
    /// One was broken.
    Fail,
    /// There was nothing to hold against them.
    NotMeasured,
}

/// Holds what was recorded while measuring against the bounds of `plan`. Series
/// that differ only by other labels than the wanted one are added up beat by
/// beat.
///
/// Where the series has the name of a goal, such as `loss`, the run's number of that
/// goal is held against them. Latencies of events keep a bound only if they certainly do: they may be
/// wrong by `clock_error`. A counter of `run_plan` that nothing was recorded of is 0, and a counter of a part that
/// cannot count it was not measured.
pub(crate) fn check(
    plan: &CheckPlan,
    (run_plan, window): (&RunPlan, Option<&Window<'_>>),
    (goals, clock_error): (&BTreeMap<GoalMetric, Measured>, Nanos),
) -> CheckResult {
    let goal = goal_of(&plan.series);
    let values = match &goal {
        Some(goal) => goals
            .get(goal)
            .and_then(Measured::value)
            .into_iter()
            .collect(),
        None => window.map_or_else(Vec::new, |window| values(&plan.series, run_plan, window)),
    };
    let (mut low, mut high) = extremes(&values, plan.series.aggregation);
    if matches!(goal, Some(GoalMetric::EventLatency(_))) {
        let error = float_from_u64(clock_error.as_u64());
        low = low.map(|low| (low - error).max(0.0));
        high = high.map(|high| high + error);
    }
    let above = plan.upper.zip(high).map(|(bound, high)| high - bound);
    let below = plan.lower.zip(low).map(|(bound, low)| bound - low);
    let observed = match (above, below) {
        (Some(above), Some(below)) if below > above => low,
        (Some(_), _) => high,
        (None, _) => low,
    };
    let broken = [above, below]
        .into_iter()
        .flatten()
        .any(|beyond| beyond > 0.0);
    CheckResult {
        name: plan.name.clone(),
        description: plan.description.clone(),
        observed,
        upper: plan.upper,
        lower: plan.lower,
        unit: goal
            .map_or_else(|| unit_of(&plan.series.metric), |goal| goal_unit(&goal))
            .to_owned(),
        passed: match (values.is_empty(), broken) {
            (true, _) => CheckPassed::NotMeasured,
            (false, true) => CheckPassed::Fail,
            (false, false) => CheckPassed::Pass,
        },
    }
}

/// The goal whose number of the run is bounded.
fn goal_of(selector: &SeriesSelector) -> Option<GoalMetric> {
    let mut goals = GoalMetric::ALL.into_iter();
    let goal = goals.find(|goal| goal.name() == selector.metric)?;
    selector.id.is_none().then_some(goal)
}

fn goal_unit(goal: &GoalMetric) -> &'static str {
    let unit = match goal {
        GoalMetric::EventLatency(_)
        | GoalMetric::FirstByte(_)
        | GoalMetric::Latency(_)
        | GoalMetric::ServiceTime(_)
        | GoalMetric::CpuPerEvent => Unit::Nanoseconds,
        GoalMetric::Memory | GoalMetric::MemoryPeak => Unit::Bytes,
        GoalMetric::Duplicated | GoalMetric::ErrorShare | GoalMetric::Loss => Unit::Ratio,
        GoalMetric::InstructionsPerEvent => Unit::Count,
        _ => Unit::Unknown,
    };
    unit.symbol()
}

fn values(selector: &SeriesSelector, run_plan: &RunPlan, window: &Window<'_>) -> Vec<f64> {
    if run_plan.missing_for(selector).is_some() {
        return Vec::new();
    }
    let wanted = selector.id.as_deref();
    let beats = window.beats(&selector.metric, |labels| {
        wanted.is_none_or(|id| labels.value("id") == Some(id))
    });
    // A counter that is recorded from its first event on was 0 before.
    let zeros = match (beats.first(), run_plan.counts(selector)) {
        (_, false) => 0,
        (None, true) => 1,
        (Some((first, _)), true) => window.beats_before(*first),
    };
    let values = beats.into_iter().map(|(_, value)| value);
    std::iter::repeat_n(0.0, zeros).chain(values).collect()
}

/// Value that is compared with the lower and the upper bound.
fn extremes(values: &[f64], aggregation: Aggregation) -> (Option<f64>, Option<f64>) {
    let largest = values.iter().copied().max_by(f64::total_cmp);
    match aggregation {
        Aggregation::Each => (values.iter().copied().min_by(f64::total_cmp), largest),
        Aggregation::Largest => (largest, largest),
        Aggregation::Mean => {
            let mean = stillwell_stats::Sample::try_new(values, 1)
                .ok()
                .map(|s| s.mean());
            (mean, mean)
        }
    }
}

pub(crate) fn unit_of(metric: &str) -> &'static str {
    let known = catalogue::ALL.iter().find(|item| item.name == metric);
    known.map_or("", |metric| metric.unit.symbol())
}

#[cfg(test)]
mod tests {
    use stillwell_plan::goal::LatencyQuantile;

    use super::*;
    use crate::fixture::TestRun;

    /// A counter that ends above its lower bound begins below it: only its largest sample counts in SMP.
    #[test]
    fn each_aggregation_has_its_values_at_the_bounds() {
        let values = [0.0, 500.0, 250.0];
        for (aggregation, low, high) in [
            (Aggregation::Each, 0.0, 500.0),
            (Aggregation::Largest, 500.0, 500.0),
            (Aggregation::Mean, 250.0, 250.0),
        ] {
            assert_eq!(extremes(&values, aggregation), (Some(low), Some(high)));
            assert_eq!(extremes(&[], aggregation), (None, None));
        }
    }

    /// A latency between machines of 10 ms with an error of 2 ms is not certainly below 11 ms.
    #[test]
    fn a_bound_on_a_latency_between_machines_is_kept_only_with_its_error() {
        let goal = GoalMetric::EventLatency(LatencyQuantile::P99);
        let goals = BTreeMap::from([(goal.clone(), Measured::Value(10e6))]);
        let run_plan = TestRun::healthy().manifest.plan;
        let passed = |upper, lower, error| {
            let plan = CheckPlan {
                name: "a".to_owned(),
                description: None,
                series: SeriesSelector {
                    metric: goal.name().to_string(),
                    id: None,
                    aggregation: Aggregation::Each,
                },
                upper,
                lower,
            };
            let clock_error = Nanos::from_millis(error);
            check(&plan, (&run_plan, None), (&goals, clock_error)).passed
        };
        assert_eq!(passed(Some(11e6), None, 0), CheckPassed::Pass);
        assert_eq!(passed(Some(11e6), None, 2), CheckPassed::Fail);
        assert_eq!(passed(Some(12e6), None, 2), CheckPassed::Pass);
        assert_eq!(passed(None, Some(9e6), 2), CheckPassed::Fail);
        assert_eq!(passed(None, Some(8e6), 2), CheckPassed::Pass);
    }
}
