//! One goal of one variant against the baseline.

use stillwell_capture::RunStage;
use stillwell_plan::goal::Scale;
use stillwell_plan::{GoalMetric, GoalPlan};
use stillwell_stats::{
    Level, PairedError, Sample, hodges_lehmann, pairs_needed, wilcoxon_signed_rank,
};
use stillwell_units::count;

use super::looks::{LookPlan, repeats_allowed};
use super::pairs::{Pairs, is_lost};
use super::table::RunTable;
use crate::deltas::{Deltas, Spread, mean_on, on_scale};
use crate::goal_verdict::{GoalVerdict, Sensitivity, UnreliableEstimate, rarest_visible_fault};
use crate::limits;
use crate::rule::{Change, Verdict, verdict_of};
use crate::run_note::RunNote;
use crate::standing::StopReason;
use crate::summary::RunSummary;
use stillwell_units::human::percent;

/// One goal of one comparison, searched.
#[derive(Debug)]
pub(super) struct Searched<'a> {
    pub(super) goal: GoalVerdict,
    pub(super) pairs: Pairs<'a>,
    pub(super) course: Course,
}

/// Progress of the search for a verdict.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Course {
    /// More pairs are needed.
    Open {
        /// Valid pairs at the next look.
        wanted: u32,
        /// Valid pairs at the look that is likely to be decisive.
        likely: Option<u32>,
    },
    /// A change beyond the tolerance was found.
    Found,
    /// It is over.
    Resolved(StopReason),
}

/// Variants, goal and time of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'q> {
    pub(super) goal: &'q GoalPlan,
    /// Baseline and comparison.
    pub(super) variants: [&'q str; 2],
    pub(super) looks: &'q LookPlan,
    /// True if the runs have taken the longest time in which lost pairs are replaced.
    pub(super) is_time_over: bool,
    /// True if a change is confirmed on fresh pairs.
    pub(super) confirm: bool,
}

/// Decision, its reason where that is not noise, and the next step.
#[derive(Debug)]
struct Decision {
    verdict: Verdict,
    reason: Option<String>,
    course: Course,
}

pub(super) fn search<'a>(question: Question<'_>, table: &RunTable<'a>) -> Searched<'a> {
    let Question { goal, looks, .. } = question;
    let pairs = Pairs::of(&goal.metric, question.variants, RunStage::Search, table);
    let valid = pairs.valid();
    let deltas = Deltas::of(goal.metric.scale(), &pairs.values);
    let look = looks.reached(valid);
    let mut judged = unjudged(question, &pairs, look.unwrap_or(valid));
    if let Ok(deltas) = &deltas {
        measure(&mut judged, goal, deltas, looks, look);
    } else if is_lost(&pairs.values) {
        judged.change = Some(Change {
            estimate: -1.0,
            lower: -1.0,
            upper: -1.0,
        });
    }
    let mut decision = decide(question, &pairs, judged.change, deltas.as_ref().err(), look);
    if let (Course::Open { likely, .. }, Ok(deltas)) = (&mut decision.course, &deltas) {
        *likely = likely_pairs(question, deltas, valid);
    }
    let is_invalid = decision.verdict == Verdict::Invalid;
    Searched {
        goal: GoalVerdict {
            verdict: decision.verdict,
            reason: decision.reason,
            unreliable: is_invalid
                .then(|| unreliable(goal, &pairs.measured))
                .flatten(),
            ..judged
        },
        pairs,
        course: decision.course,
    }
}

/// The estimate from all pairs that have numbers.
fn unreliable(goal: &GoalPlan, measured: &[(f64, f64)]) -> Option<UnreliableEstimate> {
    let scale = goal.metric.scale();
    let pairs = count(measured.len());
    let deltas = Deltas::of(scale, measured).ok();
    let spread = deltas.and_then(|deltas| deltas.spread(pairs));
    (pairs > 0).then(|| UnreliableEstimate {
        change: spread.and_then(|spread| Some(spread.change(spread.plain_critical()?))),
        baseline_mean: mean_on(scale, measured.iter().map(|pair| pair.0)),
        comparison_mean: mean_on(scale, measured.iter().map(|pair| pair.1)),
        pairs,
    })
}

fn unjudged(question: Question<'_>, pairs: &Pairs<'_>, used: u32) -> GoalVerdict {
    let Question { goal, variants, .. } = question;
    let scale = goal.metric.scale();
    let first = || pairs.values.iter().take(used as usize);
    GoalVerdict {
        metric: goal.metric.clone(),
        comparison: variants[1].to_owned(),
        primary: false,
        direction: goal.direction,
        scale,
        tolerance: goal.tolerance,
        tolerance_time: goal.tolerance_time,
        verdict: Verdict::Inconclusive,
        baseline_mean: mean_on(scale, first().map(|pair| pair.0)),
        comparison_mean: mean_on(scale, first().map(|pair| pair.1)),
        change: None,
        t_statistic: None,
        pair_deviation: None,
        pairs: used,
        pairs_valid: pairs.valid(),
        pair_changes: pair_changes(scale, &pairs.values),
        sensitivity: None,
        confirmation: None,
        smallest_visible: None,
        pairs_needed: None,
        reason: None,
        note: saturation(&goal.metric, pairs),
        unreliable: None,
    }
}

pub(super) fn pair_changes(scale: Scale, values: &[(f64, f64)]) -> Vec<f64> {
    let changes = values.iter().map(|(left, right)| match scale {
        Scale::Ratio => right / left - 1.0,
        Scale::Difference => right - left,
    });
    changes.filter(|change| change.is_finite()).collect()
}

/// Fills in what the pairs of the look say; before the first look what all of
/// them say, with the interval of one look.
fn measure(
    judged: &mut GoalVerdict,
    goal: &GoalPlan,
    deltas: &Deltas,
    looks: &LookPlan,
    look: Option<u32>,
) {
    let Some(spread) = deltas.spread(judged.pairs) else {
        return;
    };
    let critical = match look {
        Some(look) => looks.critical(look),
        None => spread.plain_critical(),
    };
    judged.change = critical.map(|critical| spread.change(critical));
    judged.smallest_visible = critical.map(|critical| spread.smallest_visible(critical));
    judged.t_statistic = Some(spread.t());
    judged.pair_deviation = Some(spread.deviation);
    judged.pairs_needed = needed(spread, goal, looks);
    let used = deltas.values().iter().take(judged.pairs as usize);
    let used: Vec<f64> = used.copied().collect();
    judged.sensitivity = spread
        .p_value()
        .and_then(|p_value| sensitivity(goal.metric.scale(), &used, p_value));
}

fn sensitivity(scale: Scale, deltas: &[f64], p_value: f64) -> Option<Sensitivity> {
    if count(deltas.len()) < limits::SENSITIVITY_PAIRS_MIN {
        return None;
    }
    let wilcoxon_p = wilcoxon_signed_rank(deltas)?.p_value;
    let error_rate = Level::NINETY_FIVE.error_rate();
    Some(Sensitivity {
        wilcoxon_p,
        hodges_lehmann: on_scale(scale, hodges_lehmann(deltas)?),
        disagrees: (wilcoxon_p < error_rate) != (p_value < error_rate),
    })
}

fn decide(
    question: Question<'_>,
    pairs: &Pairs<'_>,
    change: Option<Change>,
    error: Option<&PairedError>,
    look: Option<u32>,
) -> Decision {
    let Question {
        goal,
        variants,
        looks,
        ..
    } = question;
    let resolved = |verdict, reason, stop| Decision {
        verdict,
        reason,
        course: Course::Resolved(stop),
    };
    if pairs.never_measured {
        return resolved(
            Verdict::Invalid,
            pairs.rejected(variants),
            StopReason::Unfit,
        );
    }
    let is_unfit = is_unfit(question, pairs, looks.last());
    let Some(look) = look else {
        return before_first_look(question, pairs, change, is_unfit);
    };
    let Some(change) = change else {
        let reason = error.map(|error| refusal(&goal.metric, error));
        return resolved(Verdict::Invalid, reason, StopReason::Unfit);
    };
    let light = light_load(&goal.metric, pairs, variants);
    let is_last = look >= looks.last();
    let verdict = match verdict_of(change, goal.direction, goal.tolerance) {
        Verdict::Equivalent if look < limits::PAIRS_EQUIVALENT_MIN && is_last => {
            let reason = Some(too_few_for_equivalent(look, ["pairs", ""]));
            return resolved(Verdict::Inconclusive, reason, StopReason::LastLook);
        }
        // Too early: the next look may say the same.
        verdict if look < fewest_pairs(verdict, question.confirm) && !is_last => {
            Verdict::Inconclusive
        }
        verdict => verdict,
    };
    match verdict {
        Verdict::Regressed | Verdict::Improved => Decision {
            verdict,
            reason: None,
            course: Course::Found,
        },
        // More pairs would not show what wake-ups hide.
        Verdict::Equivalent if light.is_some() => {
            resolved(Verdict::Inconclusive, light, StopReason::Certain)
        }
        Verdict::Equivalent => resolved(verdict, None, StopReason::Certain),
        _ if is_last => resolved(
            verdict,
            light.filter(|_| verdict == Verdict::Inconclusive),
            StopReason::LastLook,
        ),
        _ if is_unfit => resolved(verdict, unfit(pairs, variants), StopReason::Unfit),
        _ => match looks.next(pairs.valid()) {
            Some(wanted) => Decision {
                verdict,
                reason: None,
                course: Course::Open {
                    wanted,
                    likely: None,
                },
            },
            None => resolved(verdict, None, StopReason::LastLook),
        },
    }
}

/// Fewest pairs after which a search may end with `verdict`.
const fn fewest_pairs(verdict: Verdict, confirm: bool) -> u32 {
    match verdict {
        Verdict::Equivalent => limits::PAIRS_EQUIVALENT_MIN,
        Verdict::Regressed | Verdict::Improved if !confirm => limits::PAIRS_UNCONFIRMED_MIN,
        _ => limits::PAIRS_MIN,
    }
}

/// Reason for which a change within the tolerance is not `equivalent` by so few pairs. For runs, `noun` is
/// `runs`, and `place` names the side.
pub(crate) fn too_few_for_equivalent(number: u32, [noun, place]: [&str; 2]) -> String {
    format!(
        "the change is within the tolerance, but `equivalent` needs {} {noun}{place}: {number} {noun} may miss a \
         fault that occurs in {} of all runs",
        limits::PAIRS_EQUIVALENT_MIN,
        percent(rarest_visible_fault(number))
    )
}

/// True if no more lost pairs are replaced: a quarter of `planned` pairs were, and either
/// no pair was ever valid, or the time for it is over.
pub(super) fn is_unfit(question: Question<'_>, pairs: &Pairs<'_>, planned: u32) -> bool {
    let many = pairs.discarded > repeats_allowed(planned);
    many && (pairs.valid() == 0 || question.is_time_over)
}

/// Verdict before the first look: an experiment that ends there for
/// reasons that lie outside its numbers (the machine is unfit) is judged by what
/// is valid, once; any other is not judged yet.
fn before_first_look(
    question: Question<'_>,
    pairs: &Pairs<'_>,
    change: Option<Change>,
    is_unfit: bool,
) -> Decision {
    let Question {
        variants, looks, ..
    } = question;
    let valid = pairs.valid();
    let course = match looks.next(valid) {
        _ if is_unfit => Course::Resolved(StopReason::Unfit),
        Some(wanted) => Course::Open {
            wanted,
            likely: None,
        },
        None => Course::Resolved(StopReason::LastLook),
    };
    let few = |verdict, needed: u32, more: String| Decision {
        verdict,
        reason: Some(format!(
            "{valid} valid {}, {needed} are needed{more}",
            if valid == 1 { "pair" } else { "pairs" },
        )),
        course,
    };
    if valid < limits::PAIRS_MIN {
        return match pairs.rejected(variants) {
            Some(rejected) => few(Verdict::Invalid, limits::PAIRS_MIN, format!(": {rejected}")),
            None => few(Verdict::Inconclusive, limits::PAIRS_MIN, String::new()),
        };
    }
    match change.filter(|_| is_unfit) {
        Some(change) => {
            let (verdict, reason) = of_valid(question, pairs, change);
            Decision {
                verdict,
                reason,
                course,
            }
        }
        None => few(
            Verdict::Inconclusive,
            looks.next(valid).unwrap_or_else(|| looks.last()),
            String::new(),
        ),
    }
}

/// Verdict of the valid pairs of an experiment that ends before its first look, and its reason.
fn of_valid(
    question: Question<'_>,
    pairs: &Pairs<'_>,
    change: Change,
) -> (Verdict, Option<String>) {
    let Question { goal, variants, .. } = question;
    let reason = || unfit(pairs, variants);
    match verdict_of(change, goal.direction, goal.tolerance) {
        Verdict::Equivalent if pairs.valid() < limits::PAIRS_EQUIVALENT_MIN => {
            (Verdict::Inconclusive, reason())
        }
        Verdict::Equivalent => match light_load(&goal.metric, pairs, variants) {
            Some(light) => (Verdict::Inconclusive, Some(light)),
            None => (Verdict::Equivalent, reason()),
        },
        verdict => (verdict, reason()),
    }
}

fn unfit(pairs: &Pairs<'_>, variants: [&str; 2]) -> Option<String> {
    let rejected = pairs.rejected(variants)?;
    Some(format!(
        "too many pairs were discarded ({}): {rejected}",
        pairs.discarded
    ))
}

/// The first look that would be certain if the pairs to come were like those so
/// far.
fn likely_pairs(question: Question<'_>, deltas: &Deltas, valid: u32) -> Option<u32> {
    const PAIRS_TO_FORECAST: u32 = 3;
    let Question {
        goal,
        looks,
        confirm,
        ..
    } = question;
    let spread = deltas.spread(valid)?;
    if valid < PAIRS_TO_FORECAST {
        return None;
    }
    let mut later = looks.later(valid);
    later.find(|&look| {
        let change = looks
            .critical(look)
            .map(|critical| spread.with_pairs(look).change(critical));
        let verdict = change.map(|change| verdict_of(change, goal.direction, goal.tolerance));
        let is_certain = matches!(
            verdict,
            Some(Verdict::Regressed | Verdict::Improved | Verdict::Equivalent)
        );
        is_certain && verdict.is_some_and(|verdict| look >= fewest_pairs(verdict, confirm))
    })
}

pub(super) fn refusal(metric: &GoalMetric, error: &PairedError) -> String {
    match error {
        PairedError::NotPositive { pair, half, value } => format!(
            "{metric} of the {half} was {value} in valid pair {pair}: a ratio needs numbers above \
             zero"
        ),
        right => right.to_string(),
    }
}

/// Reason for which a change of the cost of an event may be hidden: going to sleep and waking up is
/// usually most of it, in both variants. A measured change is one at this rate.
pub(super) fn light_load(
    metric: &GoalMetric,
    pairs: &Pairs<'_>,
    variants: [&str; 2],
) -> Option<String> {
    let runs = pairs.runs.iter().copied();
    let (baseline, comparison): (Vec<&RunSummary>, Vec<&RunSummary>) = runs.unzip();
    light_load_of(metric, variants, [&baseline, &comparison])
}

/// The same for the runs of each variant, which need not be pairs.
pub(crate) fn light_load_of(
    metric: &GoalMetric,
    variants: [&str; 2],
    runs: [&[&RunSummary]; 2],
) -> Option<String> {
    if !metric.is_cost_per_event() {
        return None;
    }
    let share = |runs: &[&RunSummary]| {
        let shares = runs.iter().filter_map(|run| run.figures.target_cpu_share);
        let shares: Vec<f64> = shares.collect();
        Some(Sample::try_new(&shares, 1).ok()?.mean())
    };
    let sides = runs.into_iter().zip(variants);
    let (least, variant) = sides
        .filter_map(|(runs, variant)| Some((share(runs)?, variant)))
        .min_by(|left, right| left.0.total_cmp(&right.0))?;
    (least < limits::LIGHT_LOAD_SHARE).then(|| {
        format!(
            "light load: {variant} used {} of a core; below {}, going to sleep and waking up is \
             usually most of its CPU time, which can hide a change; raise the rate",
            percent(least),
            percent(limits::LIGHT_LOAD_SHARE)
        )
    })
}

/// Said of costs where the schedule was not kept: they are compared only at the
/// same schedule.
fn saturation(metric: &GoalMetric, pairs: &Pairs<'_>) -> Option<String> {
    if *metric != GoalMetric::Cpu && !metric.is_cost_per_event() {
        return None;
    }
    let runs = pairs.runs.iter().flat_map(|(left, right)| [*left, *right]);
    let saturated = runs.filter(|run| {
        let mut notes = run.notes.iter();
        notes.any(|note| matches!(note, RunNote::TargetSaturated { .. }))
    });
    let saturated = saturated.count();
    (saturated > 0).then(|| {
        format!(
            "the target did not accept the requested rate in {saturated} of {} runs, so the variants \
             may not have had the same schedule; lower the rate",
            2 * pairs.runs.len()
        )
    })
}

/// The first look of the plan at which a change as large as the tolerance is visible; without one, the pairs of a
/// single look, and more than the last look has.
fn needed(spread: Spread, goal: &GoalPlan, looks: &LookPlan) -> Option<u32> {
    let is_visible_at = |look: u32| {
        looks.critical(look).is_some_and(|critical| {
            spread.with_pairs(look).smallest_visible(critical) <= goal.tolerance.share()
        })
    };
    let mut all = looks.later(0);
    if let Some(look) = all.find(|look| is_visible_at(*look)) {
        return Some(look.max(limits::PAIRS_MIN));
    }
    let pairs = pairs_needed(
        spread.deviation,
        goal.tolerance.share(),
        limits::POWER,
        Level::NINETY_FIVE,
    );
    Some(count(pairs.ok()?).max(looks.last().saturating_add(1)))
}
