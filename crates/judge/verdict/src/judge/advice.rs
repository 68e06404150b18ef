//! Ways to improve the answer, and evidence that it is impossible.

use stillwell_capture::RunStage;
use stillwell_plan::goal::Scale;
use stillwell_plan::stopping::{DesignPlan, PAIRS_MIN, WarmupPlan};
use stillwell_plan::{ExperimentPlan, GoalPlan};
use stillwell_stats::components::{RunBounds, VarianceComponents};
use stillwell_stats::modes::gap_test;
use stillwell_stats::{Level, Sample, normal};
use stillwell_units::{Nanos, count, float_from_u64};

use super::compare::{Course, Searched};
use super::looks::LookPlan;

use super::table::RunTable;
use crate::deltas::{Deltas, Spread};
use crate::erratic::ErraticSign;
use crate::limits;
use crate::rule::Verdict;
use crate::standing::NextStep;
use crate::summary::RunSummary;

/// Shortest and longest run that is proposed, in seconds.
const RUN_SECONDS: (f64, f64) = (2.0, 300.0);

/// Longest time of an experiment that is proposed.
const MINUTES_MAX: f64 = 240.0;

/// A proposal is made where it takes at most this share of the time.
const WORTHWHILE: f64 = 0.75;

pub(super) fn erratic_signs<'s, 'a: 's>(
    goal: &GoalPlan,
    looks: &LookPlan,
    primaries: impl Iterator<Item = &'s Searched<'a>>,
) -> Vec<ErraticSign> {
    let mut signs: Vec<ErraticSign> = Vec::new();
    for searched in primaries {
        // Noise that did not prevent a verdict needs no advice.
        let verdict = searched.goal.verdict;
        if matches!(verdict, Verdict::Inconclusive | Verdict::Different) {
            signs.extend(too_noisy(goal, looks, searched));
        }
        signs.extend(one_sided(goal, searched));
        let runs = &searched.pairs.runs;
        let baseline: Vec<&RunSummary> = runs.iter().map(|(run, _)| *run).collect();
        let comparison: Vec<&RunSummary> = runs.iter().map(|(_, run)| *run).collect();
        for runs in [baseline, comparison] {
            if let Some(sign) = two_groups(goal, &runs)
                && !signs.contains(&sign)
            {
                signs.push(sign);
            }
        }
    }
    signs
}

fn too_noisy(goal: &GoalPlan, looks: &LookPlan, searched: &Searched<'_>) -> Option<ErraticSign> {
    let pairs = searched.goal.pairs;
    let deviation = searched
        .goal
        .pair_deviation
        .filter(|_| pairs >= PAIRS_MIN)?;
    let spread = Spread {
        scale: searched.goal.scale,
        pairs: looks.last(),
        mean: 0.0,
        deviation,
    };
    let half_width = spread.half_width(looks.critical(looks.last())?);
    let tolerance = goal.tolerance.share();
    (half_width > tolerance).then_some(ErraticSign::TooNoisy {
        half_width,
        tolerance,
        tolerance_time: tolerance_time(goal, searched),
        pairs: looks.last(),
    })
}

/// Returns the tolerance of a goal that is a time as such, by the mean of the baseline.
fn tolerance_time(goal: &GoalPlan, searched: &Searched<'_>) -> Option<Nanos> {
    let mean = searched
        .goal
        .baseline_mean
        .filter(|_| goal.metric.is_time())?;
    Some(Nanos::from_secs_f64(mean * goal.tolerance.share() / 1e9))
}

/// Pairs whose skewness chance alone explains in fewer than one of a hundred experiments.
fn one_sided(goal: &GoalPlan, searched: &Searched<'_>) -> Option<ErraticSign> {
    let deltas = Deltas::of(goal.metric.scale(), &searched.pairs.values).ok()?;
    let values = deltas.values();
    let pairs = count(values.len());
    if pairs < limits::SKEWNESS_PAIRS_MIN {
        return None;
    }
    let number = f64::from(pairs);
    let mean = values.iter().sum::<f64>() / number;
    let moment = |power| {
        values
            .iter()
            .map(|value| (value - mean).powi(power))
            .sum::<f64>()
            / number
    };
    let variance = moment(2);
    if variance <= 0.0 {
        return None;
    }
    let skewness = moment(3) / variance.powf(1.5);
    let deviation = (6.0 * (number - 2.0) / ((number + 1.0) * (number + 3.0))).sqrt();
    let limit = normal::quantile(1.0 - limits::GROUPS_CHANCE / 2.0) * deviation;
    (skewness.abs() > limit).then_some(ErraticSign::OneSided { pairs, skewness })
}

/// True if the runs of one variant fall into two groups.
fn two_groups(goal: &GoalPlan, runs: &[&RunSummary]) -> Option<ErraticSign> {
    let mut values: Vec<f64> = runs
        .iter()
        .filter_map(|run| run.value(&goal.metric))
        .collect();
    let variant = &runs.first()?.identity.as_ref()?.variant;
    if values.len() < limits::GROUPS_RUNS_MIN {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let (lowest, highest) = values.first().zip(values.last())?;
    // Groups nearer than the tolerance do not matter.
    let apart = |low: f64, high: f64| match goal.metric.scale() {
        Scale::Ratio => (high - low) / low.abs(),
        Scale::Difference => high - low,
    };
    let matters = |low: f64, high: f64| apart(low, high) > goal.tolerance.share();
    if !matters(*lowest, *highest) {
        return None;
    }
    // The same draws for everybody: no other seed may be tried.
    let gap = gap_test(&values, 1)?;
    let (lower, upper) = values.split_at(gap.below);
    let mean = |values: &[f64]| Sample::try_new(values, 1).ok().map(|sample| sample.mean());
    let (low, high) = (mean(lower)?, mean(upper)?);
    let is_certain = gap.p_value <= limits::GROUPS_CHANCE && matters(low, high);
    is_certain.then(|| ErraticSign::TwoGroups {
        variant: variant.clone(),
        lower: count(gap.below),
        upper: count(gap.above),
        apart: apart(low, high),
    })
}

/// Time of the pairs that are likely needed.
pub(super) fn likely_left(
    plan: &ExperimentPlan,
    next: NextStep,
    table: &RunTable<'_>,
) -> Option<Nanos> {
    let NextStep::Run {
        stage,
        likely_pairs: Some(likely),
        ..
    } = next
    else {
        return None;
    };
    let goal = plan.goals.first()?;
    let [baseline, comparisons @ ..] = plan.variants.as_slice() else {
        return None;
    };
    let valid = comparisons.iter().map(|comparison| {
        let variants = [baseline.name.as_str(), comparison.name.as_str()];
        super::pairs::Pairs::of(&goal.metric, variants, stage, table).valid()
    });
    let left = likely.saturating_sub(valid.min()?);
    let lengths = plan.variants.iter().map(|variant| {
        let runs = table.iter().filter(|(_, _, item, _)| *item == variant.name);
        let lengths = runs.filter(|(_, _, _, row)| row.run.outcome.is_completed());
        let lengths: Vec<f64> = lengths
            .map(|(_, _, _, row)| row.run.length.as_secs_f64())
            .collect();
        Sample::try_new(&lengths, 1)
            .ok()
            .map(|sample| sample.mean())
    });
    let lengths: Vec<f64> = lengths.collect::<Option<_>>()?;
    let pair = match plan.design {
        DesignPlan::Paired => lengths.iter().sum(),
        DesignPlan::Duet | DesignPlan::Sliced { .. } => lengths.iter().copied().fold(0.0, f64::max),
    };
    Some(Nanos::from_secs_f64(pair * float_from_u64(u64::from(left))))
}

pub(super) fn advice<'s, 'a: 's>(
    plan: &ExperimentPlan,
    goal: &GoalPlan,
    primaries: impl Iterator<Item = &'s Searched<'a>>,
    table: &RunTable<'_>,
) -> Vec<String> {
    let mut advice = Vec::new();
    let beats = table.iter().map(|(_, _, _, row)| &row.run.figures.warmup);
    if plan.warmup == WarmupPlan::Measured
        && table.pairs_of(RunStage::Search).len() >= 2
        && beats.into_iter().all(Option::is_none)
    {
        advice.push(
            "the warm-up could not be measured: a run has fewer than 20 samples; use longer runs \
             or sample more often"
                .to_owned(),
        );
    }
    for searched in primaries {
        let verdict = searched.goal.verdict;
        let is_open = matches!(searched.course, Course::Open { .. })
            || matches!(verdict, Verdict::Inconclusive | Verdict::Different);
        // A light load stays light in longer runs.
        if is_open && verdict != Verdict::Invalid && plan.design == DesignPlan::Paired {
            let item = run_length(goal, &searched.pairs.runs);
            advice.extend(item.filter(|item| !advice.contains(item)));
        }
    }
    advice
}

/// A length of run that would decide sooner, by how the rates of the runs so far
/// varied within them and between them.
fn run_length(goal: &GoalPlan, runs: &[(&RunSummary, &RunSummary)]) -> Option<String> {
    if count(runs.len()) < limits::PAIRS_MIN {
        return None;
    }
    let beats = |run: &RunSummary| run.figures.beats.get(&goal.metric).cloned();
    let pairs: Vec<_> = runs
        .iter()
        .map(|(left, right)| Some((beats(left)?, beats(right)?)))
        .collect::<Option<_>>()?;
    let values: Vec<(&[f64], &[f64])> = pairs
        .iter()
        .map(|(left, right)| (left.values.as_slice(), right.values.as_slice()))
        .collect();
    let noise = VarianceComponents::from_pairs(&values).ok()?;
    let mean = |values: Vec<f64>| Some(Sample::try_new(&values, 1).ok()?.mean());
    let both = || runs.iter().flat_map(|(left, right)| [*left, *right]);
    // All in beats, which need not be seconds.
    let beat = mean(
        pairs
            .iter()
            .flat_map(|(left, right)| [left.beat.as_secs_f64(), right.beat.as_secs_f64()])
            .collect(),
    )
    .filter(|beat| *beat > 0.0)?;
    let measured = mean(both().map(|run| run.measured.as_secs_f64()).collect())? / beat;
    let overheads = both().map(|run| run.length.saturating_sub(run.measured).as_secs_f64());
    let overhead = mean(overheads.collect())? / beat;
    let minutes_at = |seconds: f64| {
        let bounds = RunBounds::try_new(seconds, seconds).ok()?;
        let length = noise.run_length(overhead, bounds);
        let pairs = length.pairs_to_half_width(goal.tolerance.share(), Level::NINETY_FIVE)?;
        let pairs = pairs.max(limits::PAIRS_MIN);
        Some((pairs, length.minutes(pairs) * beat))
    };
    let bounds = RunBounds::try_new(RUN_SECONDS.0 / beat, RUN_SECONDS.1 / beat).ok()?;
    let best = noise.run_length(overhead, bounds).seconds;
    let (pairs, minutes) = minutes_at(best)?;
    let worthwhile = match minutes_at(measured) {
        Some((_, now)) => minutes <= WORTHWHILE * now,
        None => true,
    };
    (worthwhile && minutes <= MINUTES_MAX).then(|| {
        format!(
            "runs of {} s (now {} s) would likely decide in about {} min, with {pairs} pairs",
            (best * beat).round(),
            (measured * beat).round(),
            minutes.ceil()
        )
    })
}
