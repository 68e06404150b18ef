//! Instructions of the target.

use stillwell_metric::{CountingObstacle, CountingState};

use super::*;

const GOAL: GoalMetric = GoalMetric::InstructionsPerEvent;

/// A run with this state of the counter, which ran for `share` of the time.
fn counted(state: &CountingState, share: f64) -> TestRun {
    let none = Labels::none;
    TestRun::healthy()
        .with(catalogue::TARGET_COUNTER_STATE, state.sample().labels, 1.0)
        .with(catalogue::TARGET_INSTRUCTIONS, none(), 2.5e6)
        .with(catalogue::TARGET_COUNTER_ENABLED, none(), 0.5e9)
        .with(catalogue::TARGET_COUNTER_RUNNING, none(), 0.5e9 * share)
}

fn missing(run: &RunSummary) -> String {
    match run.measured(&GOAL) {
        Measured::Missing { reason } => reason,
        Measured::Value(value) => panic!("{value}"),
    }
}

#[test]
fn counted_instructions_are_divided_by_events() {
    for (state, share) in [
        (CountingState::All, 1.0),
        // The little that was scaled does not matter.
        (CountingState::All, 0.995),
    ] {
        let run = counted(&state, share).summary();
        assert!(close(run.value(&GOAL), 2500.0), "{run:?}");
        assert_eq!((run.notes, run.warnings), (vec![], vec![]));
    }
    let user = CountingState::User { paranoid: Some(2) };
    let run = counted(&user, 1.0).summary();
    assert!(close(run.value(&GOAL), 2500.0));
    let note = "instructions in user mode alone were counted: perf_event_paranoid is 2; 1 permits those in \
                the kernel too";
    assert_eq!(run.notes.len(), 1);
    assert_eq!(run.notes[0].to_string(), note);
}

#[test]
fn a_machine_without_a_counter_is_a_named_reason_and_no_warning() {
    for (obstacle, reason) in [
        (
            CountingObstacle::NoCounter,
            "the machine has no instruction counter",
        ),
        (
            CountingObstacle::NotPermitted { paranoid: 3 },
            "not permitted: perf_event_paranoid is 3",
        ),
    ] {
        let labels = CountingState::None(obstacle.clone()).sample().labels;
        let run = TestRun::healthy().with(catalogue::TARGET_COUNTER_STATE, labels, 0.0);
        let run = run.summary();
        assert_eq!(missing(&run), reason);
        assert_eq!(run.warnings, []);
        assert_eq!(run.notes, [RunNote::InstructionsNotCounted { obstacle }]);
        assert!(run.value(&GoalMetric::CpuPerEvent).is_some());
    }
    let run = TestRun::healthy().summary();
    let reason = "instructions were not counted: no goal requested them";
    assert_eq!((missing(&run).as_str(), run.notes.len()), (reason, 0));
}

#[test]
fn numbers_of_a_shared_counter_are_dropped() {
    let run = counted(&CountingState::All, 0.8).summary();
    let reason = "the CPU's counter of instructions was shared with other programs";
    assert_eq!(missing(&run), reason);
    assert_eq!(run.warnings, []);
    assert!(
        matches!(run.notes[..], [RunNote::CounterShared { share }] if (share - 0.8).abs() < 1e-9),
        "{:?}",
        run.notes
    );
}

#[test]
fn a_part_of_the_measured_phase_is_no_number() {
    let mut run = counted(&CountingState::All, 1.0).without(catalogue::TARGET_INSTRUCTIONS);
    for second in 5..=15 {
        let value = Value::Int(2_500_000 * second);
        let point = (
            catalogue::TARGET_INSTRUCTIONS,
            Labels::none(),
            second,
            value,
        );
        run.points.push(point);
    }
    let reason = "instructions were counted only during a part of the measured phase";
    assert_eq!(missing(&run.summary()), reason);
    let mut run = counted(&CountingState::All, 1.0);
    run.manifest.restarts = vec![stillwell_capture::Restart {
        moment: Moment::new(5_000_000_000),
        ended_after: Nanos::SECOND,
        killed: false,
        started_after: None,
        ready_after: None,
        delivered_after: None,
    }];
    assert!(missing(&run.summary()).starts_with("the target was restarted"));
}

#[test]
fn the_latest_state_counts() {
    let starting = CountingState::None(CountingObstacle::ThreadsStarting).sample();
    let mut run = counted(&CountingState::All, 1.0);
    let early = (catalogue::TARGET_COUNTER_STATE, starting.labels, 1);
    run.points.push((early.0, early.1, early.2, Value::Int(0)));
    assert!(close(run.summary().value(&GOAL), 2500.0));
}
