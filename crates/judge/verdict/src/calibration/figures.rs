//! The figures of a calibration.

use std::collections::BTreeMap;

use stillwell_plan::goal::Scale;
use stillwell_plan::{ExperimentPlan, GoalMetric, GoalPlan, StoppingPlan, WorkUnit};
use stillwell_stats::components::{RunBounds, VarianceComponents};
use stillwell_stats::{Level, Looks, normal};
use stillwell_units::{Nanos, count, float_from_u64, floor_to_u64};

use super::{
    CalibratedExperiment, CalibratedGoal, MachineMet, SelfComparisonFigures, Slowdown, Trial,
    Visible, WorseFound,
};
use crate::experiment_verdict::ExperimentVerdict;
use crate::goal_verdict::GoalVerdict;
use crate::limits::POWER;
use crate::rule::Verdict;
use crate::run_warning::RunWarning;
use crate::summary::RunSummary;

/// Times for which the visible change is reported.
const MINUTES: [u32; 4] = [5, 10, 30, 60];

/// No search is planned for more pairs: their looks take long to work out, and
/// longer waits are impractical.
const PAIRS_MAX: u64 = 1000;

/// Shortest and longest run that is proposed, in seconds.
const SECONDS_SHORTEST: f64 = 2.0;
const SECONDS_LONGEST: f64 = 300.0;

/// Seconds of a run below which its noise cannot be taken apart.
const BEATS_MIN: usize = 8;

/// One comparison that ended.
#[derive(Debug)]
pub struct Compared {
    /// Its purpose.
    pub trial: Trial,
    /// Result of the comparison.
    pub verdict: ExperimentVerdict,
    /// Its runs.
    pub runs: Vec<RunSummary>,
    /// Time that it took.
    pub elapsed: Nanos,
}

/// Way to make the target worse, and the change on the goal's scale.
#[derive(Clone, Copy, Debug)]
pub struct AppliedSlowdown {
    /// Kind of slowdown.
    pub how: Slowdown,
    /// The change, where it is known.
    pub truth: Option<f64>,
}

/// Judges the precision of `experiment` by these comparisons, for experiments of so many
/// minutes among others.
#[must_use]
pub fn calibrated(
    experiment: &ExperimentPlan,
    compared: &[Compared],
    applied: Result<AppliedSlowdown, String>,
    minutes: u32,
) -> CalibratedExperiment {
    let of = |trial| compared.iter().filter(move |item| item.trial == trial);
    let self_comparisons: Vec<&Compared> = of(Trial::SelfComparison).collect();
    let pair_time = pair_time(compared);
    let goals = experiment.goals.iter();
    CalibratedExperiment {
        name: experiment.name.clone(),
        work: WorkUnit::of(&experiment.run_plan.generators),
        self_comparison: self_comparison_figures(&self_comparisons),
        worse: applied.and_then(|item| worse_found(of(Trial::Worse), item)),
        goals: goals
            .map(|goal| calibrated_goal(goal, &self_comparisons, (pair_time, minutes)))
            .collect(),
        pair_time,
        max_pairs: experiment.stopping.max_pairs(),
        machine: machine_met(compared),
    }
}

const fn is_flag(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Regressed | Verdict::Improved)
}

fn self_comparison_figures(self_comparisons: &[&Compared]) -> SelfComparisonFigures {
    let primary: Vec<&GoalVerdict> = primary_goals(self_comparisons).collect();
    let number =
        |is: &dyn Fn(&GoalVerdict) -> bool| count(primary.iter().filter(|goal| is(goal)).count());
    SelfComparisonFigures {
        comparisons: count(primary.len()),
        invalid: number(&|goal| goal.verdict == Verdict::Invalid),
        flagged_by_search: number(&|goal| is_flag(goal.search().0)),
        flagged: number(&|goal| is_flag(goal.verdict)),
        without_zero: number(&|goal| {
            goal.search()
                .1
                .is_some_and(|item| item.lower > 0.0 || item.upper < 0.0)
        }),
        equivalent: number(&|goal| goal.verdict == Verdict::Equivalent),
    }
}

fn primary_goals<'a>(compared: &[&'a Compared]) -> impl Iterator<Item = &'a GoalVerdict> {
    compared
        .iter()
        .filter_map(|item| item.verdict.goals.first())
}

fn worse_found<'a>(
    compared: impl Iterator<Item = &'a Compared>,
    applied: AppliedSlowdown,
) -> Result<WorseFound, String> {
    let compared: Vec<&Compared> = compared.collect();
    let primary: Vec<&GoalVerdict> = primary_goals(&compared).collect();
    if primary.is_empty() {
        return Err("the time limit ended the calibration first".to_owned());
    }
    let number =
        |is: &dyn Fn(&GoalVerdict) -> bool| count(primary.iter().filter(|goal| is(goal)).count());
    Ok(WorseFound {
        how: applied.how,
        truth: applied.truth,
        comparisons: count(primary.len()),
        invalid: number(&|goal| goal.verdict == Verdict::Invalid),
        found_by_search: number(&|goal| goal.search().0 == Verdict::Regressed),
        confirmed: number(&|goal| goal.verdict == Verdict::Regressed),
        covered: applied.truth.map(|truth| {
            number(&|goal| {
                goal.change
                    .is_some_and(|item| item.lower <= truth && truth <= item.upper)
            })
        }),
        changes: primary.iter().filter_map(|goal| goal.change).collect(),
    })
}

/// The mean over all comparisons; confirmation and repeats count.
fn pair_time(compared: &[Compared]) -> Nanos {
    let elapsed: f64 = compared.iter().map(|item| item.elapsed.as_secs_f64()).sum();
    let runs: usize = compared.iter().map(|item| item.runs.len()).sum();
    let pairs = 0.5 * float_from_u64(runs as u64);
    Nanos::from_secs_f64(if pairs > 0.0 { elapsed / pairs } else { 0.0 })
}

fn calibrated_goal(
    goal: &GoalPlan,
    self_comparisons: &[&Compared],
    (pair_time, minutes): (Nanos, u32),
) -> CalibratedGoal {
    // A goal that the machine cannot measure has no verdict.
    let verdicts = self_comparisons.iter().filter_map(|item| {
        let mut goals = item.verdict.goals.iter();
        goals.find(|verdict| verdict.metric == goal.metric)
    });
    let verdicts: Vec<&GoalVerdict> = verdicts.filter(|item| item.pairs_valid > 0).collect();
    let scale = goal.metric.scale();
    let deltas: Vec<Vec<f64>> = verdicts.iter().map(|item| deltas(scale, item)).collect();
    let pair_deviation = pooled_deviation(&deltas);
    let noise = noise(&goal.metric, self_comparisons);
    let overhead = overhead_seconds(self_comparisons);
    let bounds = RunBounds::try_new(SECONDS_SHORTEST, SECONDS_LONGEST).ok();
    CalibratedGoal {
        metric: goal.metric.clone(),
        scale,
        tolerance: goal.tolerance,
        comparisons: count(verdicts.len()),
        flagged: count(
            verdicts
                .iter()
                .filter(|item| is_flag(item.search().0))
                .count(),
        ),
        pairs: count(deltas.iter().map(Vec::len).sum()),
        pair_deviation,
        apart_deviation: apart_deviation(scale, &goal.metric, self_comparisons),
        within_share: noise.map(within_share),
        better_seconds: noise
            .zip(bounds)
            .map(|((components, _), bounds)| components.run_length(overhead, bounds).seconds),
        visible: pair_deviation
            .map(|deviation| visible(scale, deviation, pair_time, minutes))
            .unwrap_or_default(),
    }
}

/// On the scale on which means are taken.
fn deltas(scale: Scale, goal: &GoalVerdict) -> Vec<f64> {
    let confirmed = goal.confirmation.iter().flat_map(|item| &item.pair_changes);
    let changes = goal.pair_changes.iter().chain(confirmed);
    changes
        .map(|change| match scale {
            Scale::Ratio => change.ln_1p(),
            Scale::Difference => *change,
        })
        .filter(|delta| delta.is_finite())
        .collect()
}

/// The standard deviation about each group's own mean, over all groups.
fn pooled_deviation(groups: &[Vec<f64>]) -> Option<f64> {
    let (mut squares, mut degrees) = (0.0, 0.0);
    for group in groups {
        let count = float_from_u64(group.len() as u64);
        let mean = group.iter().sum::<f64>() / count.max(1.0);
        squares += group
            .iter()
            .map(|delta| (delta - mean).powi(2))
            .sum::<f64>();
        degrees += (count - 1.0).max(0.0);
    }
    (degrees > 0.0).then(|| (squares / degrees).sqrt())
}

/// √2 times the standard deviation of all runs, whenever they were.
fn apart_deviation(
    scale: Scale,
    metric: &GoalMetric,
    self_comparisons: &[&Compared],
) -> Option<f64> {
    let runs = self_comparisons.iter().flat_map(|item| &item.runs);
    let runs = runs.filter(|run| run.warning_about(metric).is_none());
    let levels = runs
        .filter_map(|run| run.value(metric))
        .map(|value| match scale {
            Scale::Ratio => value.ln(),
            Scale::Difference => value,
        });
    let levels: Vec<f64> = levels.filter(|level| level.is_finite()).collect();
    pooled_deviation(&[levels]).map(|deviation| std::f64::consts::SQRT_2 * deviation)
}

/// The noise of the pairs taken apart, and how many beats a run has; `None` where
/// runs are too short.
fn noise(metric: &GoalMetric, self_comparisons: &[&Compared]) -> Option<(VarianceComponents, f64)> {
    let mut pairs = Vec::new();
    for item in self_comparisons {
        let mut halves: BTreeMap<_, Vec<&[f64]>> = BTreeMap::new();
        for run in item
            .runs
            .iter()
            .filter(|run| run.warning_about(metric).is_none())
        {
            let beats = run.figures.beats.get(metric)?;
            let identity = run.identity.as_ref()?;
            let key = (format!("{:?}", identity.stage), identity.pair);
            halves.entry(key).or_default().push(&beats.values);
        }
        pairs.extend(
            halves
                .into_values()
                .filter_map(|halves| match halves.as_slice() {
                    [left, right] if left.len().min(right.len()) >= BEATS_MIN => {
                        Some((*left, *right))
                    }
                    _ => None,
                }),
        );
    }
    let beats: usize = pairs
        .iter()
        .map(|(left, right)| left.len() + right.len())
        .sum();
    let beats = float_from_u64(beats as u64) / (2.0 * float_from_u64(pairs.len().max(1) as u64));
    let components = VarianceComponents::from_pairs(&pairs).ok()?;
    Some((components, beats))
}

fn within_share((components, beats): (VarianceComponents, f64)) -> f64 {
    let whole = components.pair_deviation(beats).powi(2);
    let between = 2.0 * components.between.powi(2);
    if whole > 0.0 {
        1.0 - between / whole
    } else {
        0.0
    }
}

/// Overhead of a run besides its measurement.
fn overhead_seconds(self_comparisons: &[&Compared]) -> f64 {
    let runs: Vec<&RunSummary> = self_comparisons
        .iter()
        .flat_map(|item| &item.runs)
        .collect();
    let overheads = runs
        .iter()
        .map(|run| run.length.saturating_sub(run.measured).as_secs_f64());
    overheads.sum::<f64>() / float_from_u64(runs.len().max(1) as u64)
}

fn visible(scale: Scale, deviation: f64, pair_time: Nanos, minutes: u32) -> Vec<Visible> {
    let mut times = MINUTES.to_vec();
    times.push(minutes);
    times.sort_unstable();
    times.dedup();
    let reported = times.into_iter().map(|minutes| {
        let seconds = 60.0 * f64::from(minutes);
        let pairs = floor_to_u64(seconds / pair_time.as_secs_f64().max(0.001)).min(PAIRS_MAX);
        let pairs = u32::try_from(pairs).unwrap_or(u32::MAX);
        Visible {
            minutes,
            pairs,
            change: smallest(scale, deviation, pairs),
        }
    });
    reported.collect()
}

/// The smallest change that a search of so many pairs distinguishes from none in four of
/// five experiments: where the interval of its last look reaches, and 0.84
/// standard errors more.
fn smallest(scale: Scale, deviation: f64, pairs: u32) -> Option<f64> {
    let stopping = StoppingPlan::Sequential { max_pairs: pairs };
    if pairs < stillwell_plan::stopping::PAIRS_MIN {
        return None;
    }
    let looks = Looks::group_sequential(&stopping.looks(), Level::NINETY_FIVE).ok()?;
    let errors = looks.critical(pairs)? + normal::quantile(POWER);
    let delta = errors * deviation / f64::from(pairs).sqrt();
    Some(match scale {
        Scale::Ratio => delta.exp_m1(),
        Scale::Difference => delta,
    })
}

fn machine_met(compared: &[Compared]) -> MachineMet {
    let runs: Vec<&RunSummary> = compared.iter().flat_map(|item| &item.runs).collect();
    let warnings = runs.iter().flat_map(|run| &run.warnings);
    let discarded = compared.iter().map(|item| item.verdict.pairs_discarded);
    MachineMet {
        runs: count(runs.len()),
        pairs_discarded: discarded.sum(),
        warnings: warning_counts(warnings),
        foreign: mean_and_most(runs.iter().filter_map(|run| run.figures.foreign_cpu_share)),
        steal: mean_and_most(runs.iter().filter_map(|run| run.figures.steal_share)),
    }
}

/// Returns the number of warnings of each code, the most frequent first.
fn warning_counts<'a>(warnings: impl Iterator<Item = &'a RunWarning>) -> Vec<(&'static str, u32)> {
    let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
    for warning in warnings {
        *counts.entry(warning.code()).or_insert(0) += 1;
    }
    let mut counts: Vec<(&'static str, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    counts
}

fn mean_and_most(shares: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let shares: Vec<f64> = shares.collect();
    let most = shares.iter().copied().reduce(f64::max)?;
    Some((
        shares.iter().sum::<f64>() / float_from_u64(shares.len() as u64),
        most,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_about_the_mean_of_each_group() {
        let groups = [vec![1.0, 3.0], vec![11.0, 13.0], vec![7.0], Vec::new()];
        let deviation = pooled_deviation(&groups).unwrap();
        assert!((deviation - std::f64::consts::SQRT_2).abs() < 1e-12);
        assert_eq!(pooled_deviation(&[vec![1.0], Vec::new()]), None);
    }

    #[test]
    fn more_pairs_see_smaller_changes() {
        let seen: Vec<Option<f64>> = [3, 4, 8, 20, 80]
            .map(|pairs| smallest(Scale::Ratio, 0.01, pairs))
            .to_vec();
        assert_eq!(seen[0], None);
        let seen: Vec<f64> = seen.into_iter().flatten().collect();
        assert!(seen.windows(2).all(|two| two[1] < two[0]), "{seen:?}");
        // 20 pairs that scatter by 1 %: 2.3 standard errors of the looks and 0.84.
        assert!((0.0065..0.0075).contains(&seen[2]), "{seen:?}");
    }

    #[test]
    fn times_become_pairs() {
        let reported = visible(Scale::Ratio, 0.01, Nanos::from_secs(30), 10);
        let pairs: Vec<(u32, u32)> = reported
            .iter()
            .map(|value| (value.minutes, value.pairs))
            .collect();
        assert_eq!(pairs, [(5, 10), (10, 20), (30, 60), (60, 120)]);
    }

    #[test]
    fn warnings_are_counted_by_code() {
        let delayed = |share| RunWarning::TargetDelayed { share, limit: 0.05 };
        let warnings = [RunWarning::TargetRestarted, delayed(0.3), delayed(0.5)];
        assert_eq!(
            warning_counts(warnings.iter()),
            [("target_delayed", 2), ("target_restarted", 1)]
        );
    }

    #[test]
    fn shares_have_a_mean_and_a_most() {
        assert_eq!(mean_and_most([0.25, 0.75].into_iter()), Some((0.5, 0.75)));
        assert_eq!(mean_and_most(std::iter::empty()), None);
    }
}
