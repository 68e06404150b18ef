//! One goal of one variant against the baseline.

use stillwell_plan::{GoalMetric, GoalPlan};
use stillwell_stats::{Level, PairedEffect, PairedError, Sample, pairs_needed};

use super::GoalVerdict;
use super::table::RunTable;
use crate::caution::Caution;
use crate::doubt::Percent;
use crate::limits;
use crate::rule::{Change, Verdict, verdict_of};
use crate::summary::{Measured, RunSummary};

/// The pairs of one goal.
#[derive(Debug, Default)]
struct Pairs<'a> {
    values: Vec<(f64, f64)>,
    used: Vec<(&'a RunSummary, &'a RunSummary)>,
    baseline_rejected: Vec<String>,
    comparison_rejected: Vec<String>,
}

pub(super) fn compare(
    goal: &GoalPlan,
    baseline: &str,
    comparison: &str,
    table: &RunTable<'_>,
) -> GoalVerdict {
    let direction = goal.metric.direction();
    let pairs = pairs(goal.metric, baseline, comparison, table);
    let mut judged = GoalVerdict {
        metric: goal.metric,
        comparison: comparison.to_owned(),
        primary: false,
        direction,
        tolerance: goal.tolerance,
        verdict: Verdict::Inconclusive,
        baseline_mean: geometric_mean(pairs.values.iter().map(|pair| pair.0)),
        comparison_mean: geometric_mean(pairs.values.iter().map(|pair| pair.1)),
        change: None,
        smallest_visible: None,
        pairs_needed: None,
        pairs: count(pairs.values.len()),
        pair_ratios: pairs.values.iter().map(|(b, c)| c / b).collect(),
        reason: None,
        note: saturation(goal.metric, &pairs),
    };
    judged.pair_ratios.retain(|ratio| ratio.is_finite());
    let effect = PairedEffect::from_pairs(&pairs.values, Level::NINETY_FIVE);
    if let Ok(effect) = &effect {
        judged.change = Some(effect.relative().into());
        judged.smallest_visible = Some(effect.smallest_visible());
        judged.pairs_needed = needed(effect, goal);
    } else if is_lost(&pairs.values) {
        judged.change = Some(Change {
            estimate: -1.0,
            lower: -1.0,
            upper: -1.0,
        });
    }
    let (verdict, reason) = decide(
        goal,
        &pairs,
        judged.change,
        effect.err(),
        [baseline, comparison],
    );
    GoalVerdict {
        verdict,
        reason,
        ..judged
    }
}

fn decide(
    goal: &GoalPlan,
    pairs: &Pairs<'_>,
    change: Option<Change>,
    error: Option<PairedError>,
    variants: [&str; 2],
) -> (Verdict, Option<String>) {
    let valid = count(pairs.values.len());
    if valid < limits::PAIRS_MIN {
        let needs = format!(
            "{valid} valid {}, {} are needed",
            if valid == 1 { "pair" } else { "pairs" },
            limits::PAIRS_MIN
        );
        return match pairs.rejected(variants) {
            Some(rejected) => (Verdict::Invalid, Some(format!("{needs}: {rejected}"))),
            None => (Verdict::Inconclusive, Some(needs)),
        };
    }
    let Some(change) = change else {
        let reason = error.map(|error| refusal(goal.metric, &error));
        return (Verdict::Invalid, reason);
    };
    if let Some(reason) = light_load(goal.metric, pairs, variants) {
        return (Verdict::Inconclusive, Some(reason));
    }
    (
        verdict_of(change, goal.metric.direction(), goal.tolerance),
        None,
    )
}

fn pairs<'a>(
    metric: GoalMetric,
    baseline: &str,
    comparison: &str,
    table: &RunTable<'a>,
) -> Pairs<'a> {
    let mut pairs = Pairs::default();
    for pair in table.pairs() {
        let runs = (table.run(pair, baseline), table.run(pair, comparison));
        let first = runs.0.map(|run| usable(run, metric));
        let second = runs.1.map(|run| usable(run, metric));
        if let (Some(Ok(first)), Some(Ok(second))) = (&first, &second) {
            pairs.values.push((*first, *second));
            pairs.used.extend(runs.0.zip(runs.1));
        }
        pairs.baseline_rejected.extend(first.and_then(Result::err));
        pairs
            .comparison_rejected
            .extend(second.and_then(Result::err));
    }
    pairs
}

/// The run's number of `metric`, or why it has none that can be believed.
fn usable(run: &RunSummary, metric: GoalMetric) -> Result<f64, String> {
    if let Some(doubt) = run.doubt_about(metric) {
        return Err(doubt.to_string());
    }
    match run.values.get(&metric) {
        Some(Measured::Value(value)) => Ok(*value),
        Some(Measured::Missing { reason }) => {
            Err(format!("{} is missing: {reason}", metric.name()))
        }
        None => Err(format!("{} is missing from the summary", metric.name())),
    }
}

impl Pairs<'_> {
    /// How many runs of which variant were left out, and why the first was.
    fn rejected(&self, variants: [&str; 2]) -> Option<String> {
        let [baseline, comparison] = variants;
        let first = self
            .comparison_rejected
            .first()
            .or_else(|| self.baseline_rejected.first())?;
        let sides = [
            (baseline, self.baseline_rejected.len()),
            (comparison, self.comparison_rejected.len()),
        ];
        let sides: Vec<String> = sides
            .into_iter()
            .filter(|(_, runs)| *runs > 0)
            .map(|(name, runs)| match runs {
                1 => format!("1 run of {name}"),
                _ => format!("{runs} runs of {name}"),
            })
            .collect();
        Some(format!("{} left out ({first})", sides.join(" and ")))
    }
}

/// Whether the comparison gave nothing at all in every pair, and the baseline
/// something in every pair: a change of −100 % that has no logarithm.
fn is_lost(values: &[(f64, f64)]) -> bool {
    let lost = |(baseline, comparison): &(f64, f64)| *baseline > 0.0 && *comparison <= 0.0;
    !values.is_empty() && values.iter().all(lost)
}

fn refusal(metric: GoalMetric, error: &PairedError) -> String {
    match error {
        PairedError::NotPositive { pair, half, value } => format!(
            "{} of the {half} was {value} in valid pair {pair}: a ratio needs numbers above zero",
            metric.name()
        ),
        other => other.to_string(),
    }
}

fn light_load(metric: GoalMetric, pairs: &Pairs<'_>, variants: [&str; 2]) -> Option<String> {
    if metric != GoalMetric::CpuPerEvent {
        return None;
    }
    let share = |side: fn(&(&RunSummary, &RunSummary)) -> Option<f64>| {
        let shares: Vec<f64> = pairs.used.iter().filter_map(side).collect();
        Some(Sample::try_new(&shares, 1).ok()?.mean())
    };
    let baseline = share(|(run, _)| run.figures.subject_cpu_share);
    let comparison = share(|(_, run)| run.figures.subject_cpu_share);
    let shares = [baseline, comparison].into_iter().zip(variants);
    let (least, variant) = shares
        .filter_map(|(share, variant)| Some((share?, variant)))
        .min_by(|one, other| one.0.total_cmp(&other.0))?;
    (least < limits::LIGHT_LOAD_SHARE).then(|| {
        format!(
            "light load: {variant} used {} of a core, and below {} CPU per event is mostly \
             wake-ups; raise the rate",
            Percent(least),
            Percent(limits::LIGHT_LOAD_SHARE)
        )
    })
}

/// Said of costs where the schedule was not kept: they are compared only at the
/// same schedule.
fn saturation(metric: GoalMetric, pairs: &Pairs<'_>) -> Option<String> {
    if !matches!(metric, GoalMetric::Cpu | GoalMetric::CpuPerEvent) {
        return None;
    }
    let runs = pairs.used.iter().flat_map(|(one, other)| [*one, *other]);
    let saturated = runs.filter(|run| {
        let mut cautions = run.cautions.iter();
        cautions.any(|caution| matches!(caution, Caution::SubjectSaturated { .. }))
    });
    let saturated = saturated.count();
    (saturated > 0).then(|| {
        format!(
            "the subject did not take the asked rate in {saturated} of {} runs, so the variants \
             may not have had the same schedule; lower the rate",
            2 * pairs.used.len()
        )
    })
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    match Sample::try_new(&logs, 1) {
        Ok(sample) => Some(sample.mean().exp()),
        // A zero has no logarithm: the geometric mean of anything with it is zero.
        Err(_) => (!logs.is_empty() && logs.contains(&f64::NEG_INFINITY)).then_some(0.0),
    }
}

fn needed(effect: &PairedEffect, goal: &GoalPlan) -> Option<u32> {
    let pairs = pairs_needed(
        effect.log_standard_deviation(),
        goal.tolerance.share(),
        limits::POWER,
        effect.level(),
    );
    Some(count(pairs.ok()?).max(limits::PAIRS_MIN))
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
