//! Goals that the machine cannot measure.

use std::borrow::Cow;

use stillwell_metric::CountingObstacle;
use stillwell_plan::ExperimentPlan;

use super::table::RunTable;
use crate::experiment_verdict::{ExperimentVerdict, SkippedGoal};
use crate::run_note::RunNote;
use crate::summary::RunSummary;

/// Returns `plan` without the goals that no run on this machine can measure, and those goals. The first goal that
/// is left is the primary one. If none were left, the plan stays as it is, and has no number to judge.
///
/// The machine decides it and no number does, so it cannot prefer a verdict.
pub(super) fn without<'p>(
    plan: &'p ExperimentPlan,
    table: &RunTable<'_>,
) -> (Cow<'p, ExperimentPlan>, Vec<SkippedGoal>) {
    let whole = || (Cow::Borrowed(plan), Vec::new());
    let Some(obstacle) = obstacle_of_machine(table) else {
        return whole();
    };
    let (dropped, kept): (Vec<_>, Vec<_>) = plan
        .goals
        .iter()
        .cloned()
        .partition(|goal| goal.metric.needs_instructions());
    if kept.is_empty() || dropped.is_empty() {
        return whole();
    }
    let primary = plan.goals.first().map(|goal| &goal.metric);
    let skipped = dropped.into_iter().map(|goal| SkippedGoal {
        was_primary: primary == Some(&goal.metric),
        metric: goal.metric,
        obstacle: obstacle.clone(),
    });
    let skipped = skipped.collect();
    let mut plan = plan.clone();
    plan.goals = kept;
    (Cow::Owned(plan), skipped)
}

/// Returns `verdict` with the goals that were skipped. They name the reason, so notes of runs need not.
pub(super) fn named_in(
    mut verdict: ExperimentVerdict,
    skipped: Vec<SkippedGoal>,
) -> ExperimentVerdict {
    if !skipped.is_empty() {
        let is_same = |note: &RunNote| matches!(note, RunNote::InstructionsNotCounted { .. });
        verdict.notes.retain(|seen| !is_same(&seen.note));
    }
    ExperimentVerdict { skipped, ..verdict }
}

/// The reason why no completed run counted instructions, if it is the machine's.
fn obstacle_of_machine(table: &RunTable<'_>) -> Option<CountingObstacle> {
    obstacle_of_runs(table.iter().map(|(_, _, _, row)| row.run))
}

/// The same for these runs.
pub(crate) fn obstacle_of_runs<'r>(
    runs: impl Iterator<Item = &'r RunSummary>,
) -> Option<CountingObstacle> {
    let mut completed = runs.filter(|run| run.outcome.is_completed());
    let of_run = |notes: &[RunNote]| {
        notes.iter().find_map(|note| match note {
            RunNote::InstructionsNotCounted { obstacle } if obstacle.is_of_machine() => {
                Some(obstacle.clone())
            }
            _ => None,
        })
    };
    let first = of_run(&completed.next()?.notes)?;
    completed
        .all(|run| of_run(&run.notes).is_some())
        .then_some(first)
}
