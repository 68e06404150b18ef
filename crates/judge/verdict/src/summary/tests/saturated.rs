//! Targets and receivers that accept less than was sent.

use super::*;

#[test]
fn a_shortfall_by_the_target_is_a_finding() {
    let run = TestRun::healthy()
        .with(catalogue::SENT_UNITS, generator(), 900.0)
        .with(catalogue::WORKER_BLOCKED, generator(), 0.5e9)
        .summary();
    assert_eq!(run.warnings, []);
    assert!(matches!(run.notes[..], [RunNote::TargetSaturated { .. }]));
}

#[test]
fn without_a_target_it_is_the_receiver_that_is_saturated() {
    let mut fixture = TestRun::healthy()
        .with(catalogue::SENT_UNITS, generator(), 900.0)
        .with(catalogue::WORKER_BLOCKED, generator(), 0.5e9);
    fixture.manifest.plan.target.kind = TargetKind::None;
    let is_receiver = |note: &RunNote| matches!(note, RunNote::ReceiverSaturated { .. });
    let notes = fixture.summary().notes;
    assert!(notes.iter().any(is_receiver), "{notes:?}");
    let is_target = |note: &RunNote| matches!(note, RunNote::TargetSaturated { .. });
    assert!(!notes.iter().any(is_target), "{notes:?}");
}

#[test]
fn a_receiver_that_is_not_there_is_not_saturated() {
    let unreachable = |sent| {
        let mut fixture = TestRun::healthy()
            .with(catalogue::SENT_UNITS, generator(), sent)
            .with(catalogue::WORKER_BLOCKED, generator(), 0.5e9)
            .with(
                catalogue::OUTCOMES,
                generator().with("outcome", "connect_refused"),
                7.0,
            );
        fixture.manifest.plan.target.kind = TargetKind::None;
        fixture.summary().notes
    };
    let is_saturated = |notes: &[RunNote]| {
        let mut notes = notes.iter();
        notes.any(|note| matches!(note, RunNote::ReceiverSaturated { .. }))
    };
    assert!(is_saturated(&unreachable(900.0)));
    let absent = unreachable(0.0);
    assert!(!is_saturated(&absent));
    let has_failed = |note: &RunNote| matches!(note, RunNote::SendsFailed { .. });
    assert!(absent.iter().any(has_failed), "{absent:?}");
}
