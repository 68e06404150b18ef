use proptest::prelude::*;
use stillwell_plan::step::TargetSignal;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn at(seconds: u64) -> Moment {
    Moment::new(seconds * SECOND)
}

fn machine(steps: &[StepPlan]) -> Machine {
    let plan = PhasesPlan {
        prepare: Nanos::from_secs(10),
        ready: Nanos::from_secs(10),
        warmup: Nanos::from_secs(2),
        measure: Nanos::from_secs(5),
        drain: Nanos::from_secs(3),
        quiet: Nanos::from_millis(500),
        close: Nanos::from_secs(4),
    };
    let mut machine = Machine::new(plan, steps, Nanos::from_secs(6));
    machine.begin(at(0));
    machine
}

/// Feeds events, each at its second, and collects what was to be done.
fn play(machine: &mut Machine, events: &[(u64, Event)]) -> Vec<Action> {
    events
        .iter()
        .flat_map(|(second, event)| machine.next(at(*second), event.clone()))
        .collect()
}

fn up_to_measure() -> Vec<(u64, Event)> {
    vec![
        (1, Event::Prepared),
        (1, Event::Started),
        (2, Event::Ready),
        (4, Event::Tick),
    ]
}

#[test]
fn a_run_goes_through_its_phases() {
    let mut machine = machine(&[]);
    let mut events = up_to_measure();
    events.extend([
        (8, Event::Tick),
        (9, Event::Tick),
        (10, Event::Quiet),
        (10, Event::TargetExited),
        (11, Event::Stopped),
        (11, Event::Closed),
    ]);
    let actions = play(&mut machine, &events);
    use Action::*;
    let expected = [
        Enter(Phase::Start),
        StartTarget,
        Enter(Phase::Ready),
        AwaitReady,
        Enter(Phase::Warmup),
        StartLoad,
        Enter(Phase::Measure),
        Enter(Phase::Drain),
        StopLoad,
        AwaitQuiet,
        Enter(Phase::Stop),
        StopTarget,
        Enter(Phase::Close),
        Close,
        Finish(RunOutcome::Completed),
    ];
    assert_eq!(actions, expected);
    assert!(machine.is_finished());
}

#[test]
fn after_any_failure_the_run_stops_and_closes_and_keeps_the_first_reason() {
    let died = RunOutcome::TargetDied {
        phase: Phase::Measure,
    };
    let part = |part: &str| Event::PartFailed {
        part: part.into(),
        reason: "gone".into(),
    };
    let table = [
        (Event::TargetExited, died),
        (
            Event::Interrupted(15),
            RunOutcome::Interrupted { signal: 15 },
        ),
        (
            Event::StorageFailed("full".into()),
            RunOutcome::StorageFailed {
                reason: "full".into(),
            },
        ),
        (
            part("sink"),
            RunOutcome::PartFailed {
                part: "sink".into(),
                reason: "gone".into(),
            },
        ),
    ];
    for (event, outcome) in table {
        let mut machine = machine(&[]);
        play(&mut machine, &up_to_measure());
        let actions = play(
            &mut machine,
            &[
                (5, event),
                (5, part("generator")),
                (6, Event::Stopped),
                (6, Event::Closed),
            ],
        );
        let expected = [
            Action::StopLoad,
            Action::Enter(Phase::Stop),
            Action::StopTarget,
            Action::Enter(Phase::Close),
            Action::Close,
            Action::Finish(outcome),
        ];
        assert_eq!(actions, expected);
    }
}

#[test]
fn a_target_that_never_listens_is_given_up_after_its_probe_could_answer() {
    let mut machine = machine(&[]);
    play(&mut machine, &[(1, Event::Prepared), (1, Event::Started)]);
    assert_eq!(machine.deadline(), at(12));
    let actions = play(
        &mut machine,
        &[(12, Event::Tick), (13, Event::Stopped), (13, Event::Closed)],
    );
    let reason = "it was not ready within 10s".to_owned();
    assert_eq!(
        actions.last(),
        Some(&Action::Finish(RunOutcome::NeverReady { reason }))
    );
}

#[test]
fn steps_happen_at_their_time_and_in_order() {
    let step = |seconds, signal| StepPlan {
        at: Nanos::from_secs(seconds),
        action: StepAction::Signal(signal),
    };
    let mut machine = machine(&[step(3, TargetSignal::Cont), step(1, TargetSignal::Stop)]);
    play(&mut machine, &up_to_measure());
    assert_eq!(machine.deadline(), at(5));
    let actions = play(
        &mut machine,
        &[(5, Event::Tick), (6, Event::Tick), (7, Event::Tick)],
    );
    assert_eq!(
        actions,
        [
            Action::Step(StepAction::Signal(TargetSignal::Stop)),
            Action::Step(StepAction::Signal(TargetSignal::Cont)),
        ]
    );
    assert_eq!(machine.deadline(), at(9));
}

/// Beside another run, ready since second 2 for a start at second 30.
fn agreed() -> Machine {
    let mut machine = machine(&[]).together();
    let actions = play(
        &mut machine,
        &[(1, Event::Prepared), (1, Event::Started), (2, Event::Ready)],
    );
    assert_eq!(actions.last(), Some(&Action::Meet));
    assert_eq!(machine.phase(), Phase::Ready);
    // Longer than its own probe may take.
    assert_eq!(play(&mut machine, &[(28, Event::Tick)]), []);
    let start = Event::Agreed(at(30));
    assert_eq!(
        play(&mut machine, &[(29, start)]),
        [Action::Enter(Phase::Warmup), Action::StartLoad]
    );
    machine
}

#[test]
fn beside_another_phases_follow_from_the_start_that_was_agreed_on() {
    let mut machine = agreed();
    assert_eq!(machine.deadline(), at(32));
    let measure = [Action::Enter(Phase::Measure)];
    assert_eq!(play(&mut machine, &[(33, Event::Tick)]), measure);
    assert_eq!(machine.deadline(), at(37));
}

#[test]
fn a_run_whose_partner_fails_ends_unless_its_load_is_over() {
    let gone = || Event::PartnerFailed("its target died".into());
    let mut early = agreed();
    let actions = play(
        &mut early,
        &[(33, gone()), (34, Event::Stopped), (34, Event::Closed)],
    );
    let outcome = RunOutcome::PartFailed {
        part: "the other run of the pair".into(),
        reason: "its target died".into(),
    };
    assert_eq!(actions.first(), Some(&Action::StopLoad));
    assert_eq!(actions.last(), Some(&Action::Finish(outcome)));
    let mut late = agreed();
    play(&mut late, &[(32, Event::Tick), (37, Event::Tick)]);
    assert_eq!(play(&mut late, &[(38, gone())]), []);
    let actions = play(
        &mut late,
        &[
            (39, Event::Quiet),
            (40, gone()),
            (40, Event::Stopped),
            (40, Event::Closed),
        ],
    );
    let completed = Action::Finish(RunOutcome::Completed);
    assert_eq!(actions.last(), Some(&completed));
}

#[test]
fn a_part_that_needs_a_target_elsewhere_waits_for_it_longer_than_for_its_own() {
    let mut machine = machine(&[]).together();
    let awaited = Event::TargetAwaited;
    play(
        &mut machine,
        &[(1, Event::Prepared), (1, Event::Started), (2, awaited)],
    );
    assert_eq!(play(&mut machine, &[(28, Event::Tick)]), []);
    assert_eq!(play(&mut machine, &[(28, Event::Ready)]), [Action::Meet]);
    let start = Event::Agreed(at(30));
    assert_eq!(
        play(&mut machine, &[(29, start)]),
        [Action::Enter(Phase::Warmup), Action::StartLoad]
    );
}

#[test]
fn a_partner_that_is_never_ready_is_given_up() {
    let mut machine = machine(&[]).together();
    let mut events = vec![(1, Event::Prepared), (1, Event::Started), (2, Event::Ready)];
    play(&mut machine, &events);
    let deadline = machine.deadline().as_u64() / SECOND;
    events = vec![
        (deadline, Event::Tick),
        (deadline, Event::Stopped),
        (deadline, Event::Closed),
    ];
    assert!(matches!(
        play(&mut machine, &events).last(),
        Some(Action::Finish(RunOutcome::PartFailed { .. }))
    ));
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Prepared),
        Just(Event::PrepareFailed("p".into())),
        Just(Event::Started),
        Just(Event::TargetAwaited),
        Just(Event::StartFailed("s".into())),
        Just(Event::Ready),
        (0_u64..100).prop_map(|start| Event::Agreed(at(start))),
        Just(Event::PartnerFailed("d".into())),
        Just(Event::NotReady("n".into())),
        Just(Event::TargetExited),
        Just(Event::PartFailed {
            part: "a".into(),
            reason: "b".into()
        }),
        Just(Event::StorageFailed("f".into())),
        Just(Event::Interrupted(2)),
        Just(Event::Quiet),
        Just(Event::Stopped),
        Just(Event::Closed),
        Just(Event::Tick),
    ]
}

proptest! {
    /// For all sequences of events: once only deadlines pass, the run finishes, having stopped the
    /// target before it closed, once each.
    #[test]
    fn every_run_ends(
        is_together: bool,
        events in prop::collection::vec((0_u64..3, any_event()), 0..40),
    ) {
        let mut machine = machine(&[]);
        machine.is_together = is_together;
        let (mut now, mut actions) = (at(0), Vec::new());
        for (wait, event) in events {
            now = now + Nanos::from_secs(wait);
            actions.extend(machine.next(now, event));
        }
        for _ in 0..20 {
            now = now.max(machine.deadline());
            actions.extend(machine.next(now, Event::Tick));
        }
        prop_assert!(machine.is_finished());
        let places = |wanted: &Action| -> Vec<usize> {
            (0..actions.len()).filter(|at| actions[*at] == *wanted).collect()
        };
        let (stops, closes) = (places(&Action::StopTarget), places(&Action::Close));
        prop_assert_eq!((stops.len(), closes.len()), (1, 1));
        prop_assert!(stops[0] < closes[0]);
        prop_assert!(matches!(actions.last(), Some(Action::Finish(_))));
        if !places(&Action::StartLoad).is_empty() {
            prop_assert_eq!(places(&Action::StopLoad).len(), 1);
        }
    }
}

#[test]
fn load_that_has_an_end_is_drained_at_once() {
    use Action::*;
    let drained = [Enter(Phase::Drain), StopLoad, AwaitQuiet];
    let mut measuring = machine(&[]);
    play(&mut measuring, &up_to_measure());
    let actions = measuring.next(at(5), Event::LoadEnded);
    assert_eq!(actions, drained);
    // A second start has no effect.
    assert_eq!(measuring.next(at(5), Event::LoadEnded), []);
    let mut warming = machine(&[]);
    play(&mut warming, &up_to_measure()[..3]);
    let actions = warming.next(at(3), Event::LoadEnded);
    let [Enter(Phase::Measure), rest @ ..] = actions.as_slice() else {
        panic!("{actions:?}");
    };
    assert_eq!(rest, drained);
}

fn on_target(at_millis: u64, change: TargetChange) -> StepPlan {
    StepPlan {
        at: Nanos::from_millis(at_millis),
        action: StepAction::Target(change),
    }
}

#[test]
fn steps_of_one_time_happen_in_the_order_in_which_they_are_written() {
    let notes = ["one", "two", "three"].map(|text| StepPlan {
        at: Nanos::SECOND,
        action: StepAction::Note(text.to_owned()),
    });
    let mut machine = machine(&notes);
    play(&mut machine, &up_to_measure());
    let done = play(
        &mut machine,
        &[(5, Event::Tick), (5, Event::Tick), (5, Event::Tick)],
    );
    let expected = notes.map(|step| Action::Step(step.action));
    assert_eq!(done, expected);
}

#[test]
fn a_target_that_a_step_ends_comes_back_in_any_order_of_messages() {
    use Event::{ReadyAgain, StartedAgain, TargetEnded, TargetExited, Tick};
    let kill = TargetChange::End(TargetSignal::Kill);
    let steps = [on_target(1000, kill), on_target(2000, TargetChange::Start)];
    let back = [Action::StartAgain, Action::AwaitReadyAgain];
    let ends = [Action::EndTarget(TargetSignal::Kill)];
    // It ended before it was to start, or is still about to end then.
    let quick = [(5, Tick), (5, TargetExited), (5, TargetEnded), (6, Tick)];
    let slow = [(5, Tick), (6, Tick), (7, TargetExited), (7, TargetEnded)];
    for course in [quick, slow] {
        let mut machine = machine(&steps);
        play(&mut machine, &up_to_measure());
        let mut done = play(&mut machine, &course);
        assert!(machine.is_without_target());
        done.extend(play(&mut machine, &[(7, StartedAgain), (8, ReadyAgain)]));
        assert_eq!(done, [&ends[..], &back[..]].concat());
        assert!(!machine.is_without_target() && machine.failure().is_none());
        // From here on an end is a death again.
        play(&mut machine, &[(8, TargetExited)]);
        assert!(matches!(
            machine.failure(),
            Some(RunOutcome::TargetDied { .. })
        ));
    }
}

#[test]
fn a_drain_waits_for_a_target_that_is_not_back_and_fails_without_it() {
    let restart = [
        on_target(4000, TargetChange::End(TargetSignal::Term)),
        on_target(4000, TargetChange::Start),
    ];
    let course = [
        (8, Event::Tick),
        (8, Event::Tick),
        (9, Event::Tick),
        (10, Event::Quiet),
    ];
    let drained = || {
        let mut machine = machine(&restart);
        play(&mut machine, &up_to_measure());
        play(&mut machine, &course);
        assert_eq!(machine.phase(), Phase::Drain);
        machine
    };
    let mut back = drained();
    let events = [
        Event::TargetEnded,
        Event::StartedAgain,
        Event::ReadyAgain,
        Event::Quiet,
    ];
    for event in events {
        back.next(at(11), event);
    }
    assert_eq!((back.phase(), back.failure()), (Phase::Stop, None));
    let mut gone = drained();
    gone.next(at(12), Event::Tick);
    assert_eq!(gone.phase(), Phase::Stop);
    assert!(matches!(
        gone.failure(),
        Some(RunOutcome::PartFailed { part, .. }) if part == RESTART
    ));
}

#[test]
fn a_step_behind_the_load_happens_in_the_drain_which_waits_for_it() {
    let steps = [
        on_target(6000, TargetChange::End(TargetSignal::Kill)),
        on_target(6000, TargetChange::Start),
        // The drain is over before.
        on_target(8000, TargetChange::Pause),
    ];
    let mut machine = machine(&steps);
    play(&mut machine, &up_to_measure());
    let early = play(&mut machine, &[(8, Event::Tick), (9, Event::Tick)]);
    assert_eq!(early[0], Action::Enter(Phase::Drain));
    assert_eq!((machine.deadline(), machine.awaits_step()), (at(10), true));
    // Sinks are quiet because all is still to come.
    assert_eq!(machine.next(at(9), Event::Quiet), []);
    let done = play(&mut machine, &[(10, Event::Tick), (10, Event::Tick)]);
    assert_eq!(done, [Action::EndTarget(TargetSignal::Kill)]);
    let back = [
        (10, Event::TargetExited),
        (10, Event::TargetEnded),
        (10, Event::StartedAgain),
        (11, Event::ReadyAgain),
    ];
    let done = play(&mut machine, &back);
    assert_eq!(done, [Action::StartAgain, Action::AwaitReadyAgain]);
    assert!(!machine.awaits_step());
    machine.next(at(11), Event::Quiet);
    assert_eq!((machine.phase(), machine.failure()), (Phase::Stop, None));
}

#[test]
fn a_run_whose_load_ends_so_early_that_steps_cannot_happen_fails() {
    let outcome = |steps: &str| RunOutcome::PartFailed {
        part: TIMELINE.to_owned(),
        reason: format!(
            "{steps} did not happen: the load ended 1s after the start of the measured phase"
        ),
    };
    let pause = on_target(2000, TargetChange::Pause);
    let late = on_target(7000, TargetChange::Resume);
    let kill = on_target(0, TargetChange::End(TargetSignal::Kill));
    let start = on_target(7000, TargetChange::Start);
    // The drain, from second 5 to 8, has the steps up to second 8.
    let table = [
        (vec![pause.clone()], None),
        (vec![pause, late.clone()], Some("1 step")),
        (vec![late.clone(), late], Some("2 steps")),
        (vec![kill, start], Some("1 step")),
    ];
    let course = [
        (4, Event::Tick),
        (4, Event::TargetEnded),
        (5, Event::LoadEnded),
        (6, Event::Tick),
        (7, Event::Quiet),
        (8, Event::Tick),
    ];
    for (steps, missed) in table {
        let mut machine = machine(&steps);
        play(&mut machine, &up_to_measure());
        play(&mut machine, &course);
        assert_eq!(machine.phase(), Phase::Stop);
        assert_eq!(machine.failure(), missed.map(outcome).as_ref(), "{steps:?}");
    }
}

/// A crash loop: the probe of a start that a step ended says that the target died.
#[test]
fn a_target_that_a_step_ends_before_it_is_ready_does_not_fail_the_run() {
    let steps = [
        on_target(0, TargetChange::End(TargetSignal::Kill)),
        on_target(0, TargetChange::Start),
        on_target(1000, TargetChange::End(TargetSignal::Kill)),
        on_target(1000, TargetChange::Start),
    ];
    let mut machine = machine(&steps);
    play(&mut machine, &up_to_measure());
    play(
        &mut machine,
        &[
            (4, Event::Tick),
            (4, Event::Tick),
            (4, Event::TargetEnded),
            (4, Event::StartedAgain),
            (5, Event::Tick),
        ],
    );
    let died = || Event::NotAgain("the target died".to_owned());
    assert_eq!(machine.next(at(5), died()), []);
    play(&mut machine, &[(5, Event::TargetEnded)]);
    assert_eq!(machine.failure(), None);
    assert_eq!(machine.phase(), Phase::Measure);
}

#[test]
fn a_target_that_is_not_ready_again_in_time_or_dies_fails_the_run() {
    let restart = [
        on_target(0, TargetChange::End(TargetSignal::Term)),
        on_target(0, TargetChange::Start),
    ];
    let begun = || {
        let plan = PhasesPlan {
            measure: Nanos::from_secs(60),
            ready: Nanos::from_secs(10),
            warmup: Nanos::from_secs(2),
            ..PhasesPlan::default()
        };
        let mut machine = Machine::new(plan, &restart, Nanos::from_secs(6));
        machine.begin(at(0));
        play(&mut machine, &up_to_measure());
        play(&mut machine, &[(4, Event::Tick), (4, Event::Tick)]);
        play(
            &mut machine,
            &[(5, Event::TargetEnded), (5, Event::StartedAgain)],
        );
        machine
    };
    let mut late = begun();
    // Its time, and what the probe may take to say so.
    assert_eq!(late.deadline(), at(16));
    late.next(at(16), Event::Tick);
    let mut dead = begun();
    dead.next(at(6), Event::TargetExited);
    let mut broken = begun();
    broken.next(at(6), Event::NotAgain("no such file".to_owned()));
    for machine in [late, dead, broken] {
        assert_eq!(machine.phase(), Phase::Stop);
        assert!(machine.failure().is_some());
    }
}
