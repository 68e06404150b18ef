//! From the runs of an experiment to its verdict, and to what to do next.

mod advice;
mod aggregate;
pub(crate) mod compare;
mod confirm;
pub(crate) mod looks;
pub(crate) mod pairs;
mod ranking;
pub(crate) mod skipped;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod tolerances;

use stillwell_capture::RunStage;
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{ExperimentPlan, GoalPlan, WorkUnit};
use stillwell_units::Nanos;

use self::compare::{Course, Question, Searched, search};
use self::confirm::{ConfirmCourse, cannot_confirm, confirm, wait_for_confirmation};
use self::looks::LookPlan;
use self::table::RunTable;
use crate::experiment_verdict::{ArmDiscards, CheckVerdict, ExperimentVerdict, failing_more};
use crate::gate::Gate;
use crate::goal_verdict::GoalVerdict;
use crate::limits;
use crate::rule::Verdict;
use crate::standing::{NextStep, Standing, StopReason};
use crate::summary::RunSummary;

/// The verdict over the runs of an experiment so far: that of [`standing`].
#[must_use]
pub fn judge(plan: &ExperimentPlan, runs: &[RunSummary]) -> ExperimentVerdict {
    standing(plan, runs).verdict
}

/// State of an experiment by its runs so far, and the next step.
///
/// Runs come in any order and are distinguished by their identity; runs of other
/// experiments and probes (pair 0) are left out. Where a pair has two runs of
/// one variant, the one without warnings counts. A pair counts for a goal if both
/// of its runs are valid for it and measured it; any other is discarded whole
/// and replaced: up to one for each four planned pairs, and, where at least one pair was
/// valid, until the runs have taken `max_time`. With more than two variants each is
/// compared with the first.
///
/// Valid pairs are taken in the order of their numbers, and the verdict is that
/// of the latest look which they have reached; pairs beyond it wait for the next
/// look. The search ends at the first look at which the primary goal of every
/// comparison is certain (regressed, improved or equivalent), at the last look,
/// or when no more pairs are replaced; then, and only then, `different` and
/// `inconclusive` are final. The search's result is tested again on fresh pairs
/// where the plan says so; a change of a primary goal is `inconclusive` before that.
#[must_use]
pub fn standing(plan: &ExperimentPlan, runs: &[RunSummary]) -> Standing {
    standing_at(plan, runs, &LookPlan::of(plan.stopping))
}

/// The same with the looks of the plan, which take milliseconds to find.
fn standing_at(plan: &ExperimentPlan, runs: &[RunSummary], looks: &LookPlan) -> Standing {
    let table = RunTable::of(plan, runs);
    let (measurable, skipped) = skipped::without(plan, &table);
    let plan = &*tolerances::as_shares(&measurable, &table);
    let is_time_over = time_of_runs(plan, runs) >= plan.max_time;
    let looks = (looks, is_time_over);
    let mut goals = search_all(plan, looks, &table);
    let next = next_step(plan, looks, &mut goals, &table);
    let looks = looks.0;
    let searching = matches!(
        next,
        NextStep::Run {
            stage: RunStage::Search,
            ..
        }
    );
    if searching {
        for searched in &mut goals {
            hold_back(&mut searched.goal, plan.confirm, looks);
        }
    }
    let warmup = table.warmup().unwrap_or(plan.run_plan.phases.warmup);
    Standing {
        verdict: skipped::named_in(verdict(plan, looks, &table, goals, (next, warmup)), skipped),
        next,
        warmup,
    }
}

/// Time that the pairs of an experiment took: runs of a pair that are made at once
/// count once. A run that ended at its start counts as a second.
fn time_of_runs(plan: &ExperimentPlan, runs: &[RunSummary]) -> Nanos {
    let at_once = match plan.design {
        DesignPlan::Paired => 1,
        DesignPlan::Duet | DesignPlan::Sliced { .. } => 2,
    };
    let of_pairs = runs.iter().filter(|run| {
        let identity = run.identity.as_ref();
        identity.is_some_and(|place| place.experiment == plan.name && place.pair > 0)
    });
    let total: u64 = of_pairs
        .map(|run| run.length.max(Nanos::SECOND).as_u64())
        .fold(0, u64::saturating_add);
    Nanos::new(total / at_once)
}

fn search_all<'a>(
    plan: &ExperimentPlan,
    (looks, is_time_over): (&LookPlan, bool),
    table: &RunTable<'a>,
) -> Vec<Searched<'a>> {
    let [baseline, comparisons @ ..] = plan.variants.as_slice() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for comparison in comparisons {
        for (index, goal) in plan.goals.iter().enumerate() {
            let question = Question {
                goal,
                variants: [&baseline.name, &comparison.name],
                looks,
                is_time_over,
                confirm: plan.confirm,
            };
            let mut searched = search(question, table);
            searched.goal.primary = index == 0;
            all.push(searched);
        }
    }
    all
}

/// The next step, by the primary goals of all comparisons; those that found
/// something are tested again on fresh pairs.
fn next_step(
    plan: &ExperimentPlan,
    (looks, is_time_over): (&LookPlan, bool),
    goals: &mut [Searched<'_>],
    table: &RunTable<'_>,
) -> NextStep {
    let mut primaries: Vec<&mut Searched<'_>> =
        goals.iter_mut().filter(|item| item.goal.primary).collect();
    if let Some(step) = more_search(&primaries) {
        return step;
    }
    let (Some(goal), Some(baseline)) = (plan.goals.first(), plan.variants.first()) else {
        return NextStep::Stop(StopReason::LastLook);
    };
    let mut wanted = None;
    let mut reasons = Vec::new();
    for searched in &mut primaries {
        match (searched.course, plan.confirm) {
            (Course::Resolved(reason), is_confirmed) => {
                if is_confirmed {
                    cannot_confirm(searched);
                }
                reasons.push(reason);
            }
            (Course::Found, true) => {
                let comparison = searched.goal.comparison.clone();
                let question = Question {
                    goal,
                    variants: [&baseline.name, &comparison],
                    looks,
                    is_time_over,
                    confirm: plan.confirm,
                };
                match confirm(searched, question, table) {
                    Some(ConfirmCourse::Open { wanted: item }) => wanted = wanted.max(Some(item)),
                    Some(ConfirmCourse::Resolved(reason)) => reasons.push(reason),
                    None => {}
                }
            }
            (Course::Found | Course::Open { .. }, _) => reasons.push(StopReason::Certain),
        }
    }
    match wanted {
        Some(wanted) => NextStep::Run {
            stage: RunStage::Confirm,
            valid_pairs_wanted: wanted,
            likely_pairs: Some(wanted),
        },
        None => NextStep::Stop(most_severe(&reasons)),
    }
}

fn more_search(primaries: &[&mut Searched<'_>]) -> Option<NextStep> {
    let open = primaries.iter().filter_map(|item| match item.course {
        Course::Open { wanted, likely } => Some((wanted, likely)),
        _ => None,
    });
    let open: Vec<(u32, Option<u32>)> = open.collect();
    let likely: Option<Vec<u32>> = open.iter().map(|(_, likely)| *likely).collect();
    Some(NextStep::Run {
        stage: RunStage::Search,
        valid_pairs_wanted: open.iter().map(|(wanted, _)| *wanted).max()?,
        likely_pairs: likely.and_then(|likely| likely.into_iter().max()),
    })
}

/// Of several comparisons' reasons the one that matters most to a reader.
fn most_severe(reasons: &[StopReason]) -> StopReason {
    let order = [
        StopReason::Unfit,
        StopReason::NotConfirmed,
        StopReason::Confirmed,
        StopReason::LastLook,
    ];
    let mut order = order.into_iter();
    let most_severe = order.find(|reason| reasons.contains(reason));
    most_severe.unwrap_or(StopReason::Certain)
}

/// While pairs are still searched, a change that is neither large nor small is
/// not reported as a verdict yet: the next look may make it either. Nor is a change of a primary
/// goal that is to be confirmed.
fn hold_back(goal: &mut GoalVerdict, is_confirmed: bool, looks: &LookPlan) {
    if is_confirmed && goal.primary {
        wait_for_confirmation(goal, looks);
    }
    let is_open = matches!(goal.verdict, Verdict::Different | Verdict::Inconclusive);
    if !is_open || goal.reason.is_some() {
        return;
    }
    goal.verdict = Verdict::Inconclusive;
    goal.reason = Some(format!("not decided yet, after {} pairs", goal.pairs));
}

fn verdict(
    plan: &ExperimentPlan,
    looks: &LookPlan,
    table: &RunTable<'_>,
    searched: Vec<Searched<'_>>,
    (next, warmup): (NextStep, Nanos),
) -> ExperimentVerdict {
    let primaries = || searched.iter().filter(|item| item.goal.primary);
    let verdict = primaries()
        .map(|item| item.goal.verdict)
        .reduce(Verdict::more_severe)
        .unwrap_or(Verdict::Invalid);
    let checks = aggregate::checks(plan, table);
    let primary: Option<&GoalPlan> = plan.goals.first();
    let discards = aggregate::discards(plan, table);
    let (moved, moved_of) = ranking::moved(plan, primaries(), table);
    let pairs_used = primaries().map(|item| item.goal.pairs).min().unwrap_or(0);
    let phases = &plan.run_plan.phases;
    let more = warmup.saturating_sub(phases.warmup);
    ExperimentVerdict {
        name: plan.name.clone(),
        summary: plan.summary.clone(),
        family: plan.family.clone(),
        erratic: plan.erratic,
        erratic_signs: primary.map_or_else(Vec::new, |goal| {
            advice::erratic_signs(goal, looks, primaries())
        }),
        work: WorkUnit::of(&plan.run_plan.generators),
        variants: plan.variants.iter().map(|v| v.name.clone()).collect(),
        stopping: plan.stopping,
        design: plan.design,
        builds: plan.builds,
        confirm: plan.confirm,
        pairs_planned: looks.last(),
        pairs_used,
        pairs_valid: primaries()
            .map(|item| item.pairs.valid())
            .min()
            .unwrap_or(0),
        pairs_discarded: aggregate::pairs_discarded(plan, table),
        not_used: aggregate::not_used(plan, table),
        stopped: match next {
            NextStep::Stop(reason) => Some(reason),
            NextStep::Run { .. } => None,
        },
        likely_pairs: match next {
            NextStep::Run { likely_pairs, .. } => likely_pairs,
            NextStep::Stop(_) => None,
        },
        likely_left: advice::likely_left(plan, next, table),
        gate: gate(
            gating(plan.confirm, primaries().map(|item| &item.goal)),
            &checks,
            &discards,
        ),
        discards_unbalanced: aggregate::is_unbalanced(&discards),
        discards,
        checks,
        skipped: Vec::new(),
        moved,
        moved_of,
        notes: aggregate::notes(plan, table),
        advice: primary.map_or_else(Vec::new, |goal| {
            advice::advice(plan, goal, primaries(), table)
        }),
        cpus: aggregate::cpus(table),
        rate: aggregate::rate(table),
        warmup,
        measure: phases.measure.saturating_sub(more),
        report_links: plan.report_links.clone(),
        verdict,
        goals: searched.into_iter().map(|item| item.goal).collect(),
    }
}

/// The verdict of `primaries` that gates: a regression that no fresh pairs confirm needs more than
/// the fewest pairs.
pub(crate) fn gating<'g>(
    is_confirmed: bool,
    primaries: impl Iterator<Item = &'g GoalVerdict>,
) -> Verdict {
    let of_goal = |goal: &GoalVerdict| {
        let is_early = !is_confirmed && goal.pairs < limits::PAIRS_UNCONFIRMED_MIN;
        match goal.verdict {
            Verdict::Regressed if is_early => Verdict::Inconclusive,
            verdict => verdict,
        }
    };
    let verdicts = primaries.map(of_goal);
    verdicts
        .reduce(Verdict::more_severe)
        .unwrap_or(Verdict::Invalid)
}

/// A target that failed in more runs than the baseline's passes nothing: the runs that it survived
/// do not show that.
pub(crate) fn gate(verdict: Verdict, checks: &[CheckVerdict], discards: &[ArmDiscards]) -> Gate {
    if verdict == Verdict::Regressed {
        Gate::Regressed
    } else if checks.iter().any(CheckVerdict::is_broken) {
        Gate::CheckFailed
    } else if verdict == Verdict::Invalid || failing_more(discards).is_some() {
        Gate::Invalid
    } else if verdict == Verdict::Inconclusive {
        Gate::Inconclusive
    } else {
        Gate::Held
    }
}
