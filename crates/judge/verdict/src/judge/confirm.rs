//! Confirmation of the search's verdict on fresh pairs.

use stillwell_capture::RunStage;
use stillwell_plan::goal::Scale;
use stillwell_stats::PairedError;

use super::compare::{Course, Question, Searched, is_unfit, light_load, pair_changes, refusal};
use super::looks::LookPlan;
use super::pairs::{Pairs, is_lost};
use super::table::RunTable;
use crate::deltas::{Deltas, Spread, mean_on};
use crate::goal_verdict::{Confirmation, GoalVerdict};
use crate::limits;
use crate::rule::{Change, Verdict, verdict_of};
use crate::standing::StopReason;

/// Progress of the confirmation of one comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ConfirmCourse {
    /// Fresh pairs are needed: this many valid ones in all.
    Open {
        /// Valid pairs.
        wanted: u32,
    },
    /// It is over.
    Resolved(StopReason),
}

/// Looks at fresh pairs with the whole rule, and updates the goal's verdict and change.
/// `None` if the search has no change to confirm.
///
/// The first look whose verdict is certain ends it, else the last one. The verdict is
/// that of the fresh pairs; where they contradict the search or show no change it is
/// `inconclusive`.
pub(super) fn confirm(
    searched: &mut Searched<'_>,
    question: Question<'_>,
    table: &RunTable<'_>,
) -> Option<ConfirmCourse> {
    if searched.course != Course::Found {
        return None;
    }
    let Question { goal, variants, .. } = question;
    let mut pairs = Pairs::of(&goal.metric, variants, RunStage::Confirm, table);
    let valid = pairs.valid();
    let rejected = pairs.rejected(variants);
    let fresh = look_at(&pairs.values, question);
    pairs.values.truncate(fresh.wanted as usize);
    let refused = fresh.error.map(|error| refusal(&goal.metric, &error));
    let course = match fresh.verdict {
        _ if refused.is_some() => ConfirmCourse::Resolved(StopReason::Unfit),
        Some(verdict) if verdict == searched.goal.verdict => {
            ConfirmCourse::Resolved(StopReason::Confirmed)
        }
        Some(_) => ConfirmCourse::Resolved(StopReason::NotConfirmed),
        None if pairs.never_measured || is_unfit(question, &pairs, fresh.wanted) => {
            ConfirmCourse::Resolved(StopReason::Unfit)
        }
        None => ConfirmCourse::Open {
            wanted: fresh.wanted,
        },
    };
    let search_change = searched.goal.change;
    let confirmation = Confirmation {
        searched: searched.goal.verdict,
        search_change,
        pairs_wanted: fresh.wanted,
        looked: fresh.looked,
        pairs: valid,
        pair_changes: pair_changes(goal.metric.scale(), &pairs.values),
        change: fresh.change,
        pooled: pooled(searched, goal.metric.scale(), &pairs.values),
        p_value: one_sided(fresh.spread, search_change),
        confirmed: match course {
            ConfirmCourse::Resolved(StopReason::Confirmed) => Some(true),
            ConfirmCourse::Resolved(StopReason::NotConfirmed) => Some(false),
            _ => None,
        },
    };
    let unavailable = refused
        .or(rejected)
        .unwrap_or_else(|| "none were valid".to_owned());
    let (mut verdict, mut reason) =
        outcome(course, fresh.verdict, &confirmation, searched, unavailable);
    if verdict == Verdict::Equivalent
        && let Some(light) = light_load(&goal.metric, &pairs, variants)
    {
        (verdict, reason) = (Verdict::Inconclusive, Some(light));
    }
    let judged = &mut searched.goal;
    (judged.verdict, judged.reason) = (verdict, reason);
    if let Some(looked) = fresh.looked {
        let values = || pairs.values.iter().take(looked as usize);
        judged.change = fresh.change;
        let critical = question.looks.fresh_critical(looked);
        judged.smallest_visible = fresh
            .spread
            .zip(critical)
            .map(|(spread, critical)| spread.smallest_visible(critical));
        judged.baseline_mean = mean_on(judged.scale, values().map(|pair| pair.0));
        judged.comparison_mean = mean_on(judged.scale, values().map(|pair| pair.1));
    }
    judged.confirmation = Some(confirmation);
    Some(course)
}

/// Verdict after a confirmation, and its reason.
fn outcome(
    course: ConfirmCourse,
    verdict: Option<Verdict>,
    fresh: &Confirmation,
    searched: &Searched<'_>,
    unavailable: String,
) -> (Verdict, Option<String>) {
    let word = fresh.searched.name();
    let (valid, wanted) = (fresh.pairs, fresh.pairs_wanted);
    let (verdict, reason) = match course {
        ConfirmCourse::Resolved(StopReason::Confirmed) => return (fresh.searched, None),
        ConfirmCourse::Open { .. } => (
            Verdict::Inconclusive,
            to_be_confirmed(fresh.searched, valid, wanted),
        ),
        ConfirmCourse::Resolved(StopReason::Unfit) => (
            Verdict::Invalid,
            format!("{word} in the search, and new pairs were not available: {unavailable}"),
        ),
        ConfirmCourse::Resolved(_) => {
            let is_same_way = || points_the_same_way(fresh.change, fresh.search_change);
            let verdict = match verdict {
                Some(Verdict::Equivalent) => Verdict::Equivalent,
                Some(Verdict::Different) if is_same_way() => Verdict::Different,
                _ => Verdict::Inconclusive,
            };
            let fresh_word = if verdict == Verdict::Inconclusive {
                "not"
            } else {
                verdict.name()
            };
            (
                verdict,
                format!(
                    "not confirmed on new pairs: {word} in the search of {} pairs, and {fresh_word} in \
                     {wanted} others",
                    searched.goal.pairs
                ),
            )
        }
    };
    (verdict, Some(reason))
}

/// Reason for which a change of the search is no verdict yet.
fn to_be_confirmed(searched: Verdict, valid: u32, wanted: u32) -> String {
    let word = searched.name();
    format!("{word} in the search, to be confirmed: {valid} of {wanted} new pairs")
}

/// Makes a change `inconclusive` while another comparison is still searched: its new pairs are made
/// after that. Any other verdict stays.
pub(super) fn wait_for_confirmation(goal: &mut GoalVerdict, looks: &LookPlan) {
    if !goal.verdict.is_flag() {
        return;
    }
    let first = looks.fresh_looks().first().copied();
    let wanted = first.unwrap_or(limits::CONFIRM_PAIRS_MIN);
    goal.reason = Some(to_be_confirmed(goal.verdict, 0, wanted));
    goal.verdict = Verdict::Inconclusive;
}

/// A regression on a machine that is unfit before there was a look cannot be tested on
/// fresh pairs, and counts for nothing where it has to be.
pub(super) fn cannot_confirm(searched: &mut Searched<'_>) {
    let goal = &mut searched.goal;
    if !goal.verdict.is_flag() {
        return;
    }
    let why = goal.reason.take();
    goal.reason = Some(format!(
        "{} in {} pairs, and new pairs were not available: {}",
        goal.verdict.name(),
        goal.pairs,
        why.unwrap_or_else(|| "too many pairs were discarded".to_owned())
    ));
    goal.verdict = Verdict::Invalid;
}

/// The state of a confirmation at its latest look.
struct FreshLook {
    /// The verdict, if it is final.
    verdict: Option<Verdict>,
    /// The change of the pairs of the look; before the first look of all pairs.
    change: Option<Change>,
    spread: Option<Spread>,
    /// Pairs of the look that was final, or of the next one.
    wanted: u32,
    /// Pairs of the latest look.
    looked: Option<u32>,
    error: Option<PairedError>,
}

/// Applies the whole rule at each look that the fresh pairs have reached.
fn look_at(values: &[(f64, f64)], question: Question<'_>) -> FreshLook {
    let Question { goal, looks, .. } = question;
    let at = looks.fresh_looks();
    let last = at.last().copied().unwrap_or(limits::CONFIRM_PAIRS_MIN);
    let plain = measure(goal.metric.scale(), values, None).unwrap_or_default();
    let mut fresh = FreshLook {
        verdict: None,
        change: plain.0,
        spread: plain.1,
        wanted: at.first().copied().unwrap_or(last),
        looked: None,
        error: None,
    };
    for (index, &look) in at.iter().enumerate() {
        let Some(used) = values.get(..look as usize) else {
            fresh.wanted = look;
            return fresh;
        };
        // A number without a logarithm does not show that there is no change.
        match measure(goal.metric.scale(), used, looks.fresh_critical(look)) {
            Ok((change, spread)) => (fresh.change, fresh.spread) = (change, spread),
            Err(error) => fresh.error = Some(error),
        }
        fresh.looked = fresh.error.is_none().then_some(look);
        fresh.wanted = look;
        let verdict = fresh
            .change
            .map(|change| verdict_of(change, goal.direction, goal.tolerance));
        let is_certain = matches!(
            verdict,
            Some(Verdict::Regressed | Verdict::Improved | Verdict::Equivalent)
        );
        if fresh.error.is_some() {
            return fresh;
        }
        if is_certain || index + 1 == at.len() {
            fresh.verdict = verdict;
            return fresh;
        }
    }
    fresh
}

/// The change in these pairs with an interval of `critical` standard errors; `None`
/// for the plain 95 % interval.
fn measure(
    scale: Scale,
    values: &[(f64, f64)],
    critical: Option<f64>,
) -> Result<(Option<Change>, Option<Spread>), PairedError> {
    if scale == Scale::Ratio && is_lost(values) {
        let lost = Change {
            estimate: -1.0,
            lower: -1.0,
            upper: -1.0,
        };
        return Ok((Some(lost), None));
    }
    let deltas = Deltas::of(scale, values)?;
    let Some(spread) = Spread::of(scale, deltas.values()) else {
        return Ok((None, None));
    };
    let change = critical
        .or_else(|| spread.plain_critical())
        .map(|critical| spread.change(critical));
    Ok((change, Some(spread)))
}

/// The change in the search's pairs and the fresh ones together.
fn pooled(searched: &Searched<'_>, scale: Scale, fresh: &[(f64, f64)]) -> Option<Change> {
    let used = searched
        .pairs
        .values
        .iter()
        .take(searched.goal.pairs as usize);
    let all: Vec<(f64, f64)> = used.chain(fresh).copied().collect();
    measure(scale, &all, None).ok()?.0
}

/// Probability that pairs without any change point as far in the direction of `search`.
fn one_sided(spread: Option<Spread>, search: Option<Change>) -> Option<f64> {
    let spread = spread?;
    let both = spread.p_value()?;
    let is_same_way = (search?.estimate > 0.0) == (spread.mean > 0.0);
    Some(if is_same_way {
        both / 2.0
    } else {
        1.0 - both / 2.0
    })
}

fn points_the_same_way(fresh: Option<Change>, search: Option<Change>) -> bool {
    fresh
        .zip(search)
        .is_some_and(|(fresh, search)| (fresh.estimate > 0.0) == (search.estimate > 0.0))
}
