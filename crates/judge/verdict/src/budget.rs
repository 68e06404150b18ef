//! One error budget over all experiments of a suite.

use stillwell_plan::ExperimentPlan;
use stillwell_stats::{Level, Looks};
use stillwell_units::count;

use crate::experiment_verdict::ExperimentVerdict;
use crate::goal_verdict::GoalVerdict;
use crate::judge::looks::LookPlan;
use crate::judge::{gate, gating};
use crate::rule::Verdict;

/// The error rate that Holm's correction shares out.
pub(crate) const ERROR_RATE: f64 = 0.05;

/// The chance of a false regression in one comparison: half of what its interval
/// misses, since the other half lies on the better side.
const ONE_SIDED: f64 = 0.025;

/// Protection of a suite's verdicts against a joint false alarm.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorBudget {
    /// Primary comparisons of the plan that gate, judged or not.
    pub comparisons: u32,
    /// Kind of protection.
    pub protection: Protection,
    /// Largest probability of any false regression among them, as a share of one, if
    /// both sides of each have the same speed and pairs are independent and normal;
    /// `None` where any of them is invalid or was not judged to its end.
    pub false_alarm_bound: Option<f64>,
    /// Changes that were found again on fresh pairs.
    pub confirmed: u32,
    /// Changes that were not found again on fresh pairs.
    pub not_confirmed: u32,
    /// Experiments with a regression that did not survive Holm's correction.
    pub demoted: Vec<String>,
}

/// Protection of several comparisons against a joint false alarm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protection {
    /// There is at most one.
    Single,
    /// Every regression must be confirmed on fresh pairs.
    Confirmation,
    /// Regressions have to survive Holm's correction at 5 %.
    Holm,
    /// Some in the one way and some in the other.
    Mixed,
}

impl Protection {
    /// The word in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Confirmation => "confirmation",
            Self::Holm => "holm",
            Self::Mixed => "mixed",
        }
    }
}

/// A primary comparison that fresh pairs do not protect.
#[derive(Clone, Copy, Debug)]
struct Unprotected {
    experiment: usize,
    goal: usize,
    survives: bool,
}

/// Holds the regressions of a suite to one error budget, and says how they are
/// protected.
///
/// A comparison that is confirmed on fresh pairs is protected by that. All others of
/// `planned`, also those that were never judged, are one family for Holm's correction at 5 %: of those that are called
/// regressed only those stay so whose interval would exclude zero at the level
/// that Holm leaves them, with the same looks; the rest become `different`, with
/// the reason. Only this side is corrected: what is called improved or
/// equivalent fails no person. Experiments that are marked erratic never gate and
/// are no part of the family. To be called once all experiments have stopped;
/// calling it again changes nothing.
#[must_use = "reports state the budget"]
pub fn apply_error_budget(
    verdicts: &mut [ExperimentVerdict],
    planned: &[ExperimentPlan],
) -> ErrorBudget {
    let mut family = unprotected(verdicts);
    let gating = || verdicts.iter().filter(|verdict| !verdict.erratic);
    let primaries = || gating().flat_map(|item| item.goals.iter().filter(|goal| goal.primary));
    let [mut unprotected, mut protected] = [0, 0];
    for plan in planned
        .iter()
        .filter(|plan| !plan.erratic && !plan.goals.is_empty())
    {
        let of_family = if plan.confirm {
            &mut protected
        } else {
            &mut unprotected
        };
        *of_family += plan.variants.len().saturating_sub(1);
    }
    let comparisons = unprotected + protected;
    let is_judged = |verdict: &ExperimentVerdict| {
        let mut primaries = verdict.goals.iter().filter(|goal| goal.primary);
        verdict.stopped.is_some()
            && verdict.verdict != Verdict::Invalid
            && primaries.all(|goal| goal.verdict != Verdict::Invalid)
    };
    let is_whole = comparisons > 0 && gating().all(is_judged) && primaries().count() == comparisons;
    let reported = |wanted: bool| {
        let confirmations = primaries().filter_map(|goal| goal.confirmation.as_ref());
        count(
            confirmations
                .filter(|item| item.confirmed == Some(wanted))
                .count(),
        )
    };
    let (confirmed, not_confirmed) = (reported(true), reported(false));
    survive(&mut family, verdicts, unprotected);
    let mut demoted: Vec<String> = Vec::new();
    for item in family.iter().filter(|item| !item.survives) {
        let verdict = &mut verdicts[item.experiment];
        if demote(verdict, item.goal, unprotected) && !demoted.contains(&verdict.name) {
            demoted.push(verdict.name.clone());
        }
    }
    ErrorBudget {
        comparisons: count(comparisons),
        protection: match (comparisons, unprotected, protected) {
            (_, 0, 1..) => Protection::Confirmation,
            (0 | 1, ..) => Protection::Single,
            (_, _, 0) => Protection::Holm,
            _ => Protection::Mixed,
        },
        false_alarm_bound: is_whole.then(|| bound(unprotected, protected)),
        confirmed,
        not_confirmed,
        demoted,
    }
}

fn unprotected(verdicts: &[ExperimentVerdict]) -> Vec<Unprotected> {
    let mut family = Vec::new();
    for (experiment, verdict) in verdicts.iter().enumerate() {
        for (goal, item) in verdict.goals.iter().enumerate() {
            if item.primary && !verdict.erratic && !verdict.confirm {
                family.push(Unprotected {
                    experiment,
                    goal,
                    survives: false,
                });
            }
        }
    }
    family
}

/// Holm's steps: with r of m hypotheses rejected, all are rejected whose p is at
/// most 5 % / (m − r), until no more are.
fn survive(family: &mut [Unprotected], verdicts: &[ExperimentVerdict], planned: usize) {
    let never_judged = planned.saturating_sub(family.len());
    let excludes_zero = |item: &Unprotected, level: Level| {
        let verdict = &verdicts[item.experiment];
        let goal = &verdict.goals[item.goal];
        goal.t_statistic.is_some_and(|t| {
            t.is_infinite() || {
                let critical = |level| LookPlan::at(verdict.stopping, level).critical(goal.pairs);
                let critical = match critical(Level::NINETY_FIVE) {
                    // Without an interval at this level it cannot survive.
                    Some(_) => critical(level),
                    // What ended before its first look was judged once, by what there was.
                    None => Looks::fixed(goal.pairs, level).critical(goal.pairs),
                };
                critical.is_some_and(|critical| t.abs() > critical)
            }
        })
    };
    loop {
        let left = never_judged + family.iter().filter(|item| !item.survives).count();
        let Ok(level) = Level::try_new(1.0 - ERROR_RATE / float(left.max(1))) else {
            return;
        };
        let mut any = false;
        for item in family.iter_mut().filter(|item| !item.survives) {
            let goal = &verdicts[item.experiment].goals[item.goal];
            let is_flagged = goal.verdict.is_flag();
            // A loss of everything has no t, and needs none.
            let is_lost = is_flagged && goal.t_statistic.is_none();
            if is_lost || (is_flagged && excludes_zero(item, level)) {
                item.survives = true;
                any = true;
            }
        }
        if !any {
            return;
        }
    }
}

/// Takes a regression back; whether there was one.
fn demote(verdict: &mut ExperimentVerdict, goal: usize, of: usize) -> bool {
    let item: &mut GoalVerdict = &mut verdict.goals[goal];
    if item.verdict != Verdict::Regressed {
        return false;
    }
    item.verdict = Verdict::Different;
    item.reason = Some(format!(
        "regressed by itself, but not by Holm's correction for {of} comparisons; confirm it on \
         new pairs"
    ));
    let primaries = verdict.goals.iter().filter(|goal| goal.primary);
    let words = primaries.map(|goal| goal.verdict);
    verdict.verdict = words
        .reduce(Verdict::more_severe)
        .unwrap_or(Verdict::Invalid);
    let primaries = verdict.goals.iter().filter(|goal| goal.primary);
    verdict.gate = gate(
        gating(verdict.confirm, primaries),
        &verdict.checks,
        &verdict.discards,
    );
    true
}

/// By the union of all: each confirmed comparison is wrong twice in a row by
/// chance, and Holm's family is wrong at most as often as it says.
fn bound(unprotected: usize, protected: usize) -> f64 {
    let family = match unprotected {
        0 => 0.0,
        1 => ONE_SIDED,
        _ => ERROR_RATE,
    };
    (family + float(protected) * ONE_SIDED * ONE_SIDED).min(1.0)
}

fn float(number: usize) -> f64 {
    f64::from(count(number))
}
