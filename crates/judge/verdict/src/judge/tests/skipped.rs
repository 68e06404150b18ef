//! Goals that the machine cannot measure.

use stillwell_metric::{CountingObstacle, CountingState};

use super::*;
use crate::experiment_verdict::SkippedGoal;
use crate::run_note::RunNote;

const INSTRUCTIONS: GoalMetric = GoalMetric::InstructionsPerEvent;

/// Runs with these CPU seconds for each second, and this state of the counter.
fn with_state(pairs: &[(f64, f64)], state: &CountingState) -> Vec<RunSummary> {
    runs_with(pairs, |test_run, cpu| {
        let none = Labels::none;
        let labels = state.sample().labels;
        let test_run = test_run
            .with(catalogue::TARGET_CPU, none(), cpu * 1e9)
            .with(catalogue::TARGET_COUNTER_STATE, labels, 1.0);
        match state {
            CountingState::None(_) => test_run,
            _ => test_run.with(catalogue::TARGET_INSTRUCTIONS, none(), cpu * 5e9),
        }
    })
}

fn without_counter() -> CountingState {
    CountingState::None(CountingObstacle::NoCounter)
}

#[test]
fn the_next_goal_decides_where_the_machine_has_no_counter() {
    let goals = [INSTRUCTIONS, CPU, GoalMetric::Memory];
    for (ratio, expected, code) in [(1.0, Verdict::Equivalent, 0), (1.1, Verdict::Regressed, 1)] {
        let runs = with_state(&around(ratio), &without_counter());
        let verdict = judge(&experiment(&goals), &runs);
        assert_eq!(verdict.verdict, expected);
        let metrics: Vec<(&GoalMetric, bool)> = verdict
            .goals
            .iter()
            .map(|goal| (&goal.metric, goal.primary))
            .collect();
        assert_eq!(metrics, [(&CPU, true), (&GoalMetric::Memory, false)]);
        let skipped = SkippedGoal {
            metric: INSTRUCTIONS,
            obstacle: CountingObstacle::NoCounter,
            was_primary: true,
        };
        assert_eq!(verdict.skipped, [skipped]);
        // The reason is named once.
        assert_eq!(verdict.notes, []);
        assert_eq!(exit_code(&[verdict], GatePolicy::Strict), code);
    }
}

#[test]
fn a_goal_that_is_counted_decides() {
    let runs = with_state(&around(1.1), &CountingState::All);
    let verdict = judge(&experiment(&[INSTRUCTIONS, CPU]), &runs);
    assert_eq!(verdict.goals[0].metric, INSTRUCTIONS);
    assert_eq!(verdict.verdict, Verdict::Regressed);
    assert_eq!(verdict.skipped, []);
}

#[test]
fn a_secondary_goal_without_a_counter_changes_nothing_else() {
    let runs = with_state(&around(1.1), &without_counter());
    let with = judge(&experiment(&[CPU, INSTRUCTIONS]), &runs);
    let without = judge(&experiment(&[CPU]), &runs);
    assert_eq!(with.skipped.len(), 1);
    assert!(!with.skipped[0].was_primary);
    assert_eq!(with.goals, without.goals);
    assert_eq!(with.gate, without.gate);
}

#[test]
fn the_only_goal_ends_as_invalid_with_its_reason() {
    let runs = with_state(&around(1.0), &without_counter());
    let verdict = judge(&experiment(&[INSTRUCTIONS]), &runs);
    assert_eq!(verdict.verdict, Verdict::Invalid);
    let reason = verdict.goals[0].reason.as_deref().unwrap();
    assert!(
        reason.contains("the machine has no instruction counter"),
        "{reason}"
    );
    assert!(matches!(
        verdict.notes[..],
        [crate::RunNoteCount {
            note: RunNote::InstructionsNotCounted { .. },
            ..
        }]
    ));
}

/// Too many threads are a property of a variant, and no reason to judge by another goal.
#[test]
fn an_obstacle_of_the_target_skips_nothing() {
    let obstacle = CountingState::None(CountingObstacle::TooManyThreads { limit: 9 });
    let runs = with_state(&around(1.0), &obstacle);
    let verdict = judge(&experiment(&[INSTRUCTIONS, CPU]), &runs);
    assert_eq!(
        (verdict.verdict, verdict.skipped.len()),
        (Verdict::Invalid, 0)
    );
    // Neither does one that not every run has.
    let mut runs = with_state(&around(1.0), &without_counter());
    runs[0] = with_state(&around(1.0), &CountingState::All).swap_remove(0);
    let verdict = judge(&experiment(&[INSTRUCTIONS, CPU]), &runs);
    assert_eq!(verdict.skipped, []);
}
