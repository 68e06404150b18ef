//! Confirmation of the search's verdict on fresh pairs.

use stillwell_capture::RunStage;
use stillwell_plan::{GoalPlan, Scale};
use stillwell_stats::PairedError;

use super::compare::{Course, Searched, pair_changes, refusal};
use super::looks::repeats_allowed;
use super::pairs::{Pairs, is_lost};
use super::table::RunTable;
use crate::deltas::{Deltas, Spread};
use crate::goal_verdict::Confirmation;
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

/// Tests on fresh pairs whether the change is there, and updates the goal's
/// verdict. `None` if the search has none.
///
/// The number of fresh pairs is fixed beforehand, so that their plain interval
/// keeps its promise; they alone have to exclude zero in the direction that was
/// found.
pub(super) fn confirm(
    searched: &mut Searched<'_>,
    goal: &GoalPlan,
    variants: [&str; 2],
    table: &RunTable<'_>,
) -> Option<ConfirmCourse> {
    if searched.course != Course::Found {
        return None;
    }
    let result = searched.goal.verdict;
    let wanted = searched.goal.pairs.max(limits::CONFIRM_PAIRS_MIN);
    let mut pairs = Pairs::of(&goal.metric, variants, RunStage::Confirm, table);
    let valid = pairs.valid();
    let rejected = pairs.rejected(variants);
    pairs.values.truncate(wanted as usize);
    let scale = goal.metric.scale();
    let measured = measure(scale, &pairs.values, searched.goal.change);
    let is_whole = valid >= wanted;
    // One number that has no logarithm is no proof that nothing was there.
    let refused = measured.as_ref().err().filter(|_| is_whole);
    let refused = refused.map(|error| refusal(&goal.metric, error));
    let (change, p_value) = measured.unwrap_or_default();
    let confirmed = (is_whole && refused.is_none())
        .then(|| change.is_some_and(|change| points_to(result, change, goal)));
    let course = match confirmed {
        None if refused.is_some() => ConfirmCourse::Resolved(StopReason::Unfit),
        Some(true) => ConfirmCourse::Resolved(StopReason::Confirmed),
        Some(false) => ConfirmCourse::Resolved(StopReason::NotConfirmed),
        None if pairs.never_measured || pairs.discarded > repeats_allowed(wanted) => {
            ConfirmCourse::Resolved(StopReason::Unfit)
        }
        None => ConfirmCourse::Open { wanted },
    };
    let word = result.name();
    let (verdict, reason) = match course {
        ConfirmCourse::Resolved(StopReason::Confirmed) => (result, None),
        ConfirmCourse::Open { .. } => (
            result,
            Some(format!("to be confirmed: {valid} of {wanted} fresh pairs")),
        ),
        ConfirmCourse::Resolved(StopReason::Unfit) => (
            Verdict::Invalid,
            Some(format!(
                "{word} in the search, and fresh pairs were not available: {}",
                refused
                    .or(rejected)
                    .unwrap_or_else(|| "none were valid".to_owned())
            )),
        ),
        ConfirmCourse::Resolved(_) => (
            Verdict::Inconclusive,
            Some(format!(
                "not confirmed on fresh pairs: {word} in the search of {} pairs, and not in {wanted} \
                 others",
                searched.goal.pairs
            )),
        ),
    };
    searched.goal.verdict = verdict;
    searched.goal.reason = reason;
    searched.goal.confirmation = Some(Confirmation {
        searched: result,
        pairs_wanted: wanted,
        pairs: valid,
        pair_changes: pair_changes(scale, &pairs.values),
        change,
        p_value,
        confirmed,
    });
    Some(course)
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
        "{} in {} pairs, and fresh pairs were not available: {}",
        goal.verdict.name(),
        goal.pairs,
        why.unwrap_or_else(|| "the machine is unfit".to_owned())
    ));
    goal.verdict = Verdict::Invalid;
}

/// The change in the fresh pairs, and how often they would point as far as they
/// do in the direction of what was found without any change.
fn measure(
    scale: Scale,
    values: &[(f64, f64)],
    result: Option<Change>,
) -> Result<(Option<Change>, Option<f64>), PairedError> {
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
    let change = spread
        .plain_critical()
        .map(|critical| spread.change(critical));
    let same_way = result.is_some_and(|result| (result.estimate > 0.0) == (spread.mean > 0.0));
    let p_value = spread.p_value().map(|both| {
        if same_way {
            both / 2.0
        } else {
            1.0 - both / 2.0
        }
    });
    Ok((change, p_value))
}

/// True if a change surely points to the same direction, of any size.
fn points_to(result: Verdict, change: Change, goal: &GoalPlan) -> bool {
    let worse = change.for_the_worse(goal.direction);
    match result {
        Verdict::Regressed => worse.lower > 0.0,
        Verdict::Improved => worse.upper < 0.0,
        right => verdict_of(change, goal.direction, goal.tolerance) == right,
    }
}
