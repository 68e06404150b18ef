//! Other metrics that moved, the surest and largest change first.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use stillwell_units::count;

use stillwell_capture::RunStage;
use stillwell_metric::catalogue;
use stillwell_plan::goal::{Reduction, Scale};
use stillwell_plan::{ExperimentPlan, GoalMetric};
use stillwell_stats::benjamini_hochberg;

use super::compare::Searched;
use super::pairs::Pairs;
use super::table::RunTable;
use crate::check::unit_of;
use crate::deltas::{Spread, mean_on};
use crate::limits;
use crate::moved::Moved;
use crate::rule::Verdict;
use crate::summary::RunSummary;

/// Other metrics that moved, over all comparisons whose primary verdict needs it, and
/// among how many series.
pub(super) fn moved<'a, 's>(
    plan: &ExperimentPlan,
    primaries: impl Iterator<Item = &'s Searched<'a>>,
    table: &RunTable<'a>,
) -> (Vec<Moved>, u32)
where
    'a: 's,
{
    let Some(baseline) = plan.variants.first() else {
        return (Vec::new(), 0);
    };
    let (mut all, mut of) = (Vec::new(), 0);
    for searched in primaries {
        let goal = &searched.goal;
        let is_reported = !matches!(goal.verdict, Verdict::Equivalent | Verdict::Invalid);
        if !is_reported || searched.pairs.valid() < limits::PAIRS_MIN {
            continue;
        }
        let variants = [baseline.name.as_str(), goal.comparison.as_str()];
        let fresh = Pairs::of(&goal.metric, variants, RunStage::Confirm, table);
        let runs: Vec<(&RunSummary, &RunSummary)> = searched
            .pairs
            .runs
            .iter()
            .chain(&fresh.runs)
            .copied()
            .collect();
        let (result, examined) = ranked(&goal.metric, &goal.comparison, &runs);
        all.extend(result);
        of = examined.max(of);
    }
    (all, of)
}

fn ranked(
    goal: &GoalMetric,
    comparison: &str,
    runs: &[(&RunSummary, &RunSummary)],
) -> (Vec<Moved>, u32) {
    let values = values(goal, runs);
    let mut tested: Vec<(Moved, CertaintyKey)> = values
        .iter()
        .filter_map(|(series, values)| test(series, comparison, values))
        .collect();
    let p_values: Vec<f64> = tested.iter().map(|(moved, _)| moved.p_adjusted).collect();
    for ((moved, _), adjusted) in tested.iter_mut().zip(benjamini_hochberg(&p_values)) {
        moved.p_adjusted = adjusted;
    }
    let examined = count(tested.len());
    tested.retain(|(moved, _)| moved.p_adjusted <= limits::MOVED_FALSE_SHARE);
    tested.retain(|(moved, _)| moved.at_least >= limits::MOVED_MIN);
    // A metric as a whole says nothing more where one of its series is named.
    let named: BTreeSet<String> = tested
        .iter()
        .filter_map(|(moved, _)| whole_of(&moved.series))
        .collect();
    tested.retain(|(moved, _)| !named.contains(&moved.series));
    tested.sort_by(by_size_and_certainty);
    tested.truncate(limits::MOVED_MAX);
    (
        tested.into_iter().map(|(moved, _)| moved).collect(),
        examined,
    )
}

/// By what is sure of the change; between those of which all is new, by how sure
/// that is.
fn by_size_and_certainty(left: &(Moved, CertaintyKey), right: &(Moved, CertaintyKey)) -> Ordering {
    let size = right.1.size.total_cmp(&left.1.size);
    let certainty = || right.1.t.total_cmp(&left.1.t);
    size.then_with(certainty)
        .then_with(|| left.0.series.cmp(&right.0.series))
}

/// `METRIC:REDUCTION` of `METRIC{LABELS}:REDUCTION`.
fn whole_of(series: &str) -> Option<String> {
    let (metric, rest) = series.split_once('{')?;
    let (_, reduction) = rest.rsplit_once(':')?;
    Some(format!("{metric}:{reduction}"))
}

/// The numbers of each series that is worth ranking. A counter that only one of
/// two runs has is at zero in the other: it is made when it first counts.
fn values<'r>(
    goal: &GoalMetric,
    runs: &[(&'r RunSummary, &'r RunSummary)],
) -> BTreeMap<&'r str, Vec<(f64, f64)>> {
    let mut all: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (left, right) in runs {
        seen.extend(
            left.series
                .keys()
                .chain(right.series.keys())
                .map(String::as_str),
        );
    }
    for series in seen {
        let Some(reduction) = ranked_reduction(goal, series, runs) else {
            continue;
        };
        let is_counter = matches!(reduction, Reduction::PerEvent | Reduction::Rate);
        let number = |run: &RunSummary| {
            let result = run.series.get(series).copied();
            result.or_else(|| (is_counter && run.series_left_out == 0).then_some(0.0))
        };
        let pairs = runs
            .iter()
            .filter_map(|(left, right)| Some((number(left)?, number(right)?)));
        all.insert(series, pairs.collect());
    }
    all
}

/// Form in which a series is reported, if it is to be ranked: each only once, and never
/// what the goal itself is made of.
fn ranked_reduction(
    goal: &GoalMetric,
    series: &str,
    runs: &[(&RunSummary, &RunSummary)],
) -> Option<Reduction> {
    let (name, reduction) = series.rsplit_once(':')?;
    let metric = name.split(['{', '[']).next()?;
    if name.contains("['") || metrics_of_goal(goal).contains(&metric) || is_of_sampler(metric) {
        return None;
    }
    let is_of_target = ["target_", "cgroup_", "target/"]
        .iter()
        .any(|prefix| metric.starts_with(prefix));
    let wanted = if is_of_target {
        Reduction::PerEvent
    } else {
        Reduction::Rate
    };
    if reduction == wanted.name() {
        return Some(wanted);
    }
    if reduction == Reduction::Mean.name() {
        return Some(Reduction::Mean);
    }
    // Where no event was sent there is only the rate.
    let has_events = || {
        let per_event = format!("{name}:{}", Reduction::PerEvent.name());
        let mut both = runs.iter().flat_map(|(left, right)| [left, right]);
        both.any(|run| run.series.contains_key(&per_event))
    };
    (reduction == Reduction::Rate.name() && !has_events()).then_some(Reduction::Rate)
}

fn is_of_sampler(metric: &str) -> bool {
    let item = [
        catalogue::ACTIVE_TIME,
        catalogue::PARTNER_CPU,
        catalogue::SAMPLER_DELAY,
        catalogue::TARGET_COUNTER_ENABLED,
        catalogue::TARGET_COUNTER_RUNNING,
        catalogue::TARGET_COUNTER_STATE,
        catalogue::SCRAPE_OK,
        catalogue::SCRAPE_FAILED,
    ];
    item.iter().any(|item| item.name == metric)
}

/// The metrics that a goal is made of.
fn metrics_of_goal(goal: &GoalMetric) -> Vec<&str> {
    let metrics: &[stillwell_metric::Metric] = match goal {
        GoalMetric::Cpu | GoalMetric::CpuPerEvent => &[catalogue::TARGET_CPU],
        GoalMetric::IngressThroughput => &[catalogue::BYTES_WRITTEN],
        GoalMetric::InstructionsPerEvent => &[catalogue::TARGET_INSTRUCTIONS],
        GoalMetric::EgressThroughput => {
            &[catalogue::BYTES_RECEIVED, catalogue::TOTAL_BYTES_RECEIVED]
        }
        GoalMetric::Memory => &[catalogue::TARGET_RSS],
        GoalMetric::MemoryPeak => &[catalogue::TARGET_RSS_PEAK],
        GoalMetric::Duplicated => &[catalogue::EVENTS_DUPLICATED],
        GoalMetric::ErrorShare | GoalMetric::RequestThroughput => &[catalogue::OUTCOMES],
        GoalMetric::Status(_) => &[catalogue::STATUSES],
        GoalMetric::Route(_) => &[catalogue::ROUTE_OUTCOMES, catalogue::ROUTE_STATUSES],
        GoalMetric::EventLatency(_)
        | GoalMetric::FirstByte(_)
        | GoalMetric::ServiceTime(_)
        | GoalMetric::MemorySlope
        | GoalMetric::Latency(_)
        | GoalMetric::Loss => &[],
        GoalMetric::Series(item) => return vec![&item.metric],
    };
    metrics.iter().map(|metric| metric.name).collect()
}

/// Sort key of changes.
#[derive(Clone, Copy, Debug)]
struct CertaintyKey {
    /// Sure part of the change, on a logarithmic scale.
    size: f64,
    /// Certainty that there is one: |t|.
    t: f64,
}

/// The change of one series, with its p not yet adjusted, and how sure it is. `None`
/// where nothing differs, or too little is known.
fn test(series: &str, comparison: &str, values: &[(f64, f64)]) -> Option<(Moved, CertaintyKey)> {
    let pairs = count(values.len());
    if pairs < limits::PAIRS_MIN {
        return None;
    }
    let is_positive = values
        .iter()
        .all(|(left, right)| *left > 0.0 && *right > 0.0);
    let scale = if is_positive {
        Scale::Ratio
    } else {
        Scale::Difference
    };
    let deltas: Vec<f64> = values
        .iter()
        .map(|(left, right)| match scale {
            Scale::Ratio => (right / left).ln(),
            Scale::Difference => right - left,
        })
        .collect();
    let spread = Spread::of(scale, &deltas)?;
    let (baseline_mean, comparison_mean) = (
        mean_on(scale, values.iter().map(|pair| pair.0))?,
        mean_on(scale, values.iter().map(|pair| pair.1))?,
    );
    let certain_change = (spread.mean.abs() - spread.plain_critical()? * spread.error()).max(0.0);
    let share = |change: f64| match scale {
        Scale::Ratio => change.exp_m1(),
        // What was not there before has grown beyond all shares.
        Scale::Difference if change.abs() > 0.0 => change / baseline_mean.abs(),
        Scale::Difference => 0.0,
    };
    let moved = Moved {
        comparison: comparison.to_owned(),
        series: series.to_owned(),
        unit: unit_of(series.split(['{', ':']).next().unwrap_or(series)),
        baseline_mean,
        comparison_mean,
        change: share(spread.mean),
        at_least: share(certain_change.copysign(spread.mean)).abs(),
        // Series whose pairs agree exactly are listed first.
        p_adjusted: spread.p_value().unwrap_or(0.0),
        pairs,
    };
    // To half of it is as far as to twice of it.
    let size = match scale {
        Scale::Ratio => certain_change,
        Scale::Difference => moved.at_least.ln_1p(),
    };
    let certainty = CertaintyKey {
        size,
        t: spread.t().abs(),
    };
    (deltas.iter().any(|delta| delta.abs() > 0.0)).then_some((moved, certainty))
}
