mod instructions;
mod saturated;
mod series;
mod steady;
mod steal;

use proptest::prelude::*;
use stillwell_capture::{
    BusyProgram, Capture, EventRecord, LedgerRecord, Note, PartNote, RunOutcome, TargetEnd,
};
use stillwell_metric::{Labels, Value, catalogue, empty_histogram, encode_histogram};
use stillwell_plan::Validity;
use stillwell_plan::check::{Aggregation, SeriesSelector};
use stillwell_plan::observer::ScrapePlan;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::step::{StepAction, StepPlan, TargetChange};
use stillwell_plan::{CheckPlan, GoalMetric, Phase, RatePlan, TargetKind};
use stillwell_units::{ByteRate, ByteSize, Moment, Nanos};

use super::*;
use crate::check::CheckPassed;
use crate::fixture::{TestRun, generator, lost_of_100, sink};
use crate::run_warning::ShortfallCause;

fn close(result: Option<f64>, expected: f64) -> bool {
    result.is_some_and(|result| (result - expected).abs() <= expected.abs() * 1e-9)
}

/// The only warning of a run.
#[track_caller]
fn only_warning(fixture: &TestRun) -> RunWarning {
    let warnings = fixture.summary().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    warnings.into_iter().next().unwrap()
}

#[test]
fn a_healthy_run_is_one_number_for_each_goal() {
    let run = TestRun::healthy().summary();
    assert_eq!(run.warnings, []);
    assert_eq!(run.notes, []);
    assert_eq!(run.measured, Nanos::from_secs(10));
    for (metric, expected) in [
        (GoalMetric::IngressThroughput, 100_000.0),
        (GoalMetric::EgressThroughput, 90_000.0),
        (GoalMetric::Cpu, 0.5),
        (GoalMetric::CpuPerEvent, 500_000.0),
        (GoalMetric::Memory, 50e6),
    ] {
        assert!(close(run.value(&metric), expected), "{metric:?} {run:?}");
    }
    assert!(close(run.figures.target_core_share, 0.5));
    assert!(close(run.figures.measured.events_sent, 10_000.0));
    assert!(close(run.figures.whole.events_sent, 15_000.0));
    assert!(close(run.figures.rss_peak_bytes, 60e6));
}

#[test]
fn numbers_come_from_the_ends_and_not_from_seconds() {
    // All of the growth lies in one second: the mean over the phase is the same.
    let mut fixture = TestRun::healthy().without(catalogue::BYTES_WRITTEN);
    for second in 0..=15 {
        let value = if second < 7 { 5 } else { 1_000_005 };
        fixture.points.push((
            catalogue::BYTES_WRITTEN,
            generator(),
            second,
            Value::Int(value),
        ));
    }
    assert!(close(
        fixture.summary().value(&GoalMetric::IngressThroughput),
        100_000.0
    ));
}

#[test]
fn what_was_not_recorded_is_missing_with_a_reason() {
    let run = TestRun::healthy()
        .without(catalogue::TARGET_CPU)
        .without(catalogue::TARGET_RSS)
        .summary();
    for metric in [GoalMetric::Cpu, GoalMetric::CpuPerEvent, GoalMetric::Memory] {
        assert!(matches!(&run.values[&metric], Measured::Missing { .. }));
    }
    let mut idle = TestRun::healthy();
    idle.manifest.plan.generators.clear();
    idle.manifest.plan.sinks.clear();
    idle.manifest.plan.target.kind = TargetKind::None;
    for reason in idle.summary().values.values() {
        let Measured::Missing { reason } = reason else {
            panic!("{reason:?}");
        };
        assert!(reason.starts_with("the experiment has no"), "{reason}");
    }
}

#[test]
fn no_event_gives_no_cost_of_an_event() {
    let run = TestRun::healthy()
        .with(catalogue::EVENTS_WRITTEN, generator(), 0.0)
        .summary();
    assert_eq!(run.value(&GoalMetric::CpuPerEvent), None);
    assert!(run.value(&GoalMetric::Cpu).is_some());
}

#[test]
fn outcomes_are_warnings() {
    for (outcome, text) in [
        (RunOutcome::Unfinished, "run not completed"),
        (
            RunOutcome::NeverReady {
                reason: "no port".to_owned(),
            },
            "target never ready: no port",
        ),
        (
            RunOutcome::Overdue {
                phase: Phase::Drain,
            },
            "phase drain",
        ),
    ] {
        let mut fixture = TestRun::healthy();
        fixture.manifest.outcome = outcome;
        let warning = only_warning(&fixture);
        assert!(warning.to_string().contains(text), "{warning}");
        assert!(warning.spoils(&GoalMetric::Memory));
    }
}

#[test]
fn a_dead_target_shows_its_last_output() {
    let mut fixture = TestRun::healthy();
    fixture.manifest.outcome = RunOutcome::TargetDied {
        phase: Phase::Measure,
    };
    fixture.manifest.target = Some(TargetEnd {
        code: None,
        signal: Some(9),
        killed: false,
        cpu_user: Nanos::ZERO,
        cpu_system: Nanos::ZERO,
        rss_max_bytes: 0,
        last_lines: vec!["one".to_owned(), "out of luck".to_owned()],
    });
    assert_eq!(
        only_warning(&fixture).to_string(),
        "target died in phase measure by signal 9; its last line: out of luck"
    );
}

#[test]
fn no_part_dies_alone() {
    let mut fixture = TestRun::healthy();
    fixture.manifest.outcome = RunOutcome::PartFailed {
        part: "sink s".to_owned(),
        reason: "broken".to_owned(),
    };
    for name in ["sink s", "observer"] {
        fixture.manifest.parts.push(PartNote {
            name: name.to_owned(),
            cpu: Nanos::ZERO,
            failure: Some("broken".to_owned()),
        });
    }
    let warnings = fixture.summary().warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings
            .iter()
            .all(|d| matches!(d, RunWarning::PartFailed { .. }))
    );
}

#[test]
fn kills_for_memory_are_a_warning() {
    let fixture = TestRun::healthy().with(catalogue::TARGET_OOM_KILLS, Labels::none(), 1.0);
    let warning = only_warning(&fixture);
    assert_eq!(warning, RunWarning::OutOfMemory { kills: 15 });
}

#[test]
fn a_target_that_made_no_progress_is_named_unless_a_step_stopped_it() {
    let mut fixture = TestRun::healthy().with(catalogue::TARGET_STOPPED, Labels::none(), 1.0);
    assert_eq!(
        only_warning(&fixture),
        RunWarning::TargetStopped { share: 1.0 }
    );
    fixture.manifest.plan.timeline = vec![StepPlan {
        at: Nanos::from_secs(1),
        action: StepAction::Target(TargetChange::Pause),
    }];
    assert_eq!(fixture.summary().warnings, []);
}

/// A target that was stopped at the end was reported as stopped at all samples.
#[test]
fn the_share_of_a_stop_is_of_all_measured_samples() {
    let mut fixture = TestRun::healthy();
    for second in 12..=15 {
        let (metric, value) = (catalogue::TARGET_STOPPED, Value::Int(1));
        fixture.points.push((metric, Labels::none(), second, value));
    }
    let share = 2.0 / 11.0;
    assert_eq!(only_warning(&fixture), RunWarning::TargetStopped { share });
}

#[test]
fn missing_beats_are_a_warning_from_the_third_on() {
    let mut fixture = TestRun::healthy();
    fixture.missing_beats = vec![6];
    assert_eq!(fixture.summary().warnings, []);
    fixture.missing_beats = vec![6, 7];
    let RunWarning::SamplesMissing { gap, limit } = only_warning(&fixture) else {
        panic!("{:?}", fixture.summary().warnings);
    };
    assert_eq!(
        (gap, limit),
        (Nanos::from_secs(3), Nanos::from_millis(2500))
    );
}

#[test]
fn a_run_without_samples_has_a_warning() {
    let mut fixture = TestRun::healthy();
    fixture.missing_beats = (0..=15).collect();
    assert!(matches!(
        only_warning(&fixture),
        RunWarning::SamplesMissing { .. }
    ));
}

#[test]
fn a_stepped_clock_is_a_warning() {
    let mut fixture = TestRun::healthy();
    fixture.manifest.phases[3].wall_millis += 99;
    assert_eq!(fixture.summary().warnings, []);
    fixture.manifest.phases[3].wall_millis += 101;
    let RunWarning::ClockStepped { by, .. } = only_warning(&fixture) else {
        panic!("{:?}", fixture.summary().warnings);
    };
    assert_eq!(by, Nanos::from_millis(200));
}

#[test]
fn a_clock_that_steps_there_and_back_is_a_warning() {
    let fixture = TestRun::healthy();
    let mut capture = fixture.capture();
    let event = |second: u64, jump: u64| EventRecord {
        moment: Moment::new(second * 1_000_000_000),
        wall_millis: 1_700_000_000_000 + second * 1000 + jump,
        phase: Phase::Measure,
        what: "beat".to_owned(),
        is_step: false,
    };
    capture.events = vec![event(2, 5000), event(6, 50), event(9, 50)];
    // What was before the measured phase does not matter.
    assert_eq!(summarise(&capture).warnings, []);
    capture.events.push(event(10, 3000));
    assert!(matches!(
        summarise(&capture).warnings[..],
        [RunWarning::ClockStepped { by, .. }] if by == Nanos::from_secs(3)
    ));
}

#[test]
fn a_late_generator_spoils_goals_that_wait_and_a_saturated_sink_spoils_all() {
    let generator_late = TestRun::healthy().with(catalogue::WORKER_LATE, generator(), 0.4e9);
    let run = generator_late.summary();
    for goal in GoalMetric::ALL {
        let is_spoiled = run.warning_about(&goal).is_some();
        assert_eq!(is_spoiled, goal.is_wall_based(), "{goal}");
    }
    let sink_busy = TestRun::healthy().with(catalogue::WORKER_RUNNING, sink(), 0.97e9);
    let run = sink_busy.summary();
    for goal in GoalMetric::ALL {
        assert!(run.warning_about(&goal).is_some(), "{goal} {run:?}");
    }
}

#[test]
fn other_programs_on_the_host_are_a_note_and_no_harm() {
    let foreign = |rate| TestRun::healthy().with(catalogue::HOST_CPU_FOREIGN, Labels::none(), rate);
    assert_eq!(foreign(0.19e9).summary().notes, []);
    let mut fixture = foreign(1.4e9);
    fixture.manifest.busiest = vec![BusyProgram {
        name: "rustc".to_owned(),
        pid: 7,
        cpu_share: 0.93,
    }];
    let run = fixture.summary();
    assert_eq!(run.warnings, []);
    let notes: Vec<String> = run.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "other programs used 70.0 % of the host's CPU time: rustc (process 7) 93.0 % of a CPU; \
          their effect on the target is unknown"
        ]
    );
}

/// A run whose target used a CPU for half of the time, waited for it for `waited`, and
/// shared it with others for `foreign` seconds each second.
fn delayed(waited: f64, foreign: f64) -> RunSummary {
    let none = Labels::none;
    let fixture = TestRun::healthy()
        .with(catalogue::TARGET_RUN_DELAY, none(), waited * 1e9)
        .with(catalogue::TARGET_CPUS_FOREIGN, none(), foreign * 1e9);
    fixture.summary()
}

/// `ab` had no answer where other programs used the CPUs of a service without a priority.
#[test]
fn the_delay_of_a_service_at_a_url_is_noted() {
    let mut fixture = TestRun::healthy()
        .with(catalogue::TARGET_RUN_DELAY, Labels::none(), 1e8)
        .with(catalogue::TARGET_CPUS_FOREIGN, Labels::none(), 4e8);
    assert_ne!(fixture.summary().warnings, []);
    fixture.manifest.plan.target.kind = TargetKind::Url("http://127.0.0.1:1/".to_owned());
    let run = fixture.summary();
    assert_eq!(run.warnings, []);
    assert!(
        run.figures
            .target_delayed_share
            .is_some_and(|share| share > 0.1)
    );
}

#[test]
fn a_target_that_others_delay_spoils_goals_that_wait_and_no_others() {
    assert_eq!(delayed(0.02, 0.9).warnings, []);
    let run = delayed(0.1, 0.4);
    let [RunWarning::TargetDelayed { share, .. }] = run.warnings[..] else {
        panic!("{:?}", run.warnings);
    };
    assert!((share - 1.0 / 6.0).abs() < 1e-9, "{share}");
    for goal in GoalMetric::ALL {
        let is_spoiled = run.warning_about(&goal).is_some();
        assert_eq!(is_spoiled, goal.is_wall_based(), "{goal}");
    }
}

#[test]
fn a_worker_that_others_delay_spoils_goals_that_wait_and_no_others() {
    let run_with = |thread: &str, waited: f64, foreign: f64| {
        let labels = Labels::none().with("worker", thread);
        let fixture = TestRun::healthy()
            .with(catalogue::WORKER_RUN_DELAY, labels, waited * 1e9)
            .with(catalogue::HOST_CPU_FOREIGN, Labels::none(), foreign * 1e9);
        fixture.summary()
    };
    let run = run_with("gen-g-0", 0.2, 0.15);
    let [RunWarning::WorkerDelayed { worker, share, .. }] = &run.warnings[..] else {
        panic!("{:?}", run.warnings);
    };
    assert_eq!(worker, "gen-g-0");
    assert!((share - 0.15).abs() < 1e-9, "{share}");
    for goal in GoalMetric::ALL {
        let is_spoiled = run.warning_about(&goal).is_some();
        assert_eq!(is_spoiled, goal.is_wall_based(), "{goal}");
    }
    // Threads of ours that wait for each other, or make payload, are no harm.
    for run in [
        run_with("gen-g-0", 0.2, 0.01),
        run_with("gen-g-0", 0.04, 0.15),
        run_with("gen-g-0-fresh", 0.2, 0.15),
    ] {
        assert_eq!(run.warnings, []);
    }
}

#[test]
fn validity_halves_the_limits_or_ignores_them_and_reports_it() {
    let run_with = |validity, waited: f64| {
        let none = Labels::none;
        let mut fixture = TestRun::healthy()
            .with(catalogue::TARGET_RUN_DELAY, none(), waited * 1e9)
            .with(catalogue::TARGET_CPUS_FOREIGN, none(), 0.9e9);
        fixture.manifest.plan.observer.validity = validity;
        fixture.summary()
    };
    // 7.4 % and 16.7 % of the time in which it wanted a CPU.
    assert_eq!(run_with(Validity::Normal, 0.04).warnings, []);
    let strict = run_with(Validity::Strict, 0.04);
    assert!(matches!(
        strict.warnings[..],
        [RunWarning::TargetDelayed { .. }]
    ));
    assert_eq!(strict.notes, [RunNote::Strict]);
    let off = run_with(Validity::Off, 0.1);
    assert_eq!(off.warnings, []);
    assert!(
        off.notes[0]
            .to_string()
            .starts_with("ignored because of `validity: off`: target delayed")
    );
    let mut fixture = TestRun::healthy();
    fixture.manifest.plan.observer.validity = Validity::Off;
    fixture.manifest.outcome = RunOutcome::TargetDied {
        phase: Phase::Measure,
    };
    assert!(matches!(
        fixture.summary().warnings[..],
        [RunWarning::TargetDied { .. }]
    ));
}

#[test]
fn a_target_that_waits_for_its_own_threads_is_not_harmed() {
    let run = delayed(2.0, 0.01);
    assert_eq!(run.warnings, []);
    assert_eq!(run.figures.target_waited_share, Some(0.8));
}

#[test]
fn unknown_cpus_are_reported_and_not_guessed() {
    let mut fixture = TestRun::healthy();
    fixture.manifest.host = serde_json::Value::Null;
    assert!(fixture.summary().figures.foreign_cpu_share.is_some());
    fixture.manifest.load_cpus = None;
    let run = fixture.summary();
    assert_eq!(run.figures.foreign_cpu_share, None);
    assert_eq!(run.notes, [RunNote::HostCpusUnknown]);
}

#[test]
fn blocks_that_are_a_tenth_of_a_run_are_a_note() {
    let with_block = |maximum| {
        let mut fixture = TestRun::healthy();
        let plan = &mut fixture.manifest.plan.generators[0];
        plan.rate = RatePlan::bytes(ByteRate::try_new(100_000).unwrap());
        plan.payload.blocks = BlockShape::UpTo {
            maximum: ByteSize::new(maximum),
        };
        fixture.summary().notes
    };
    assert_eq!(with_block(100_000), []);
    let coarse = with_block(100_001);
    assert!(matches!(coarse[..], [RunNote::CoarseBlocks { .. }]));
    assert!(coarse[0].to_string().contains("97.7 KiB"), "{coarse:?}");
}

fn lateness(p99: Nanos) -> Value {
    let mut histogram = empty_histogram();
    histogram.record_n(p99.as_u64(), 100).unwrap();
    Value::Histogram(encode_histogram(&histogram))
}

#[test]
fn a_late_generator_is_a_warning_if_its_lateness_harms() {
    let late = TestRun::healthy().with(catalogue::WORKER_LATE, generator(), 0.2e9);
    assert!(matches!(
        only_warning(&late),
        RunWarning::GeneratorLate { .. }
    ));
    let mut slices = late.clone();
    let slow = lateness(Nanos::from_millis(40));
    slices
        .points
        .push((catalogue::LATENESS, generator(), 8, slow));
    assert!(matches!(
        only_warning(&slices),
        RunWarning::GeneratorLate { .. }
    ));
    let mut wakes = late;
    let quick = lateness(Nanos::from_millis(1));
    wakes
        .points
        .push((catalogue::LATENESS, generator(), 8, quick));
    let run = wakes.summary();
    assert_eq!(run.warnings, []);
    assert!(matches!(run.notes[..], [RunNote::LateWakeups { .. }]));
    assert_eq!(run.figures.lateness.unwrap().count, 100);
}

#[test]
fn a_shortfall_without_a_blocking_target_is_a_warning() {
    let short = TestRun::healthy().with(catalogue::SENT_UNITS, generator(), 900.0);
    let RunWarning::RateNotReached { because, .. } = only_warning(&short) else {
        panic!("{:?}", short.summary().warnings);
    };
    assert_eq!(because, ShortfallCause::Unknown);
    let enough = TestRun::healthy().with(catalogue::SENT_UNITS, generator(), 995.0);
    assert_eq!(enough.summary().warnings, []);
}

#[test]
fn a_block_that_is_not_due_yet_is_no_shortfall() {
    let mut fixture = TestRun::healthy().with(catalogue::SENT_UNITS, generator(), 980.0);
    fixture.manifest.plan.generators[0].payload.blocks = BlockShape::UpTo {
        maximum: ByteSize::kib(64),
    };
    assert_eq!(fixture.summary().warnings, []);
    fixture.manifest.plan.generators[0].payload.blocks = BlockShape::UpTo {
        maximum: ByteSize::new(50),
    };
    let warning = only_warning(&fixture);
    assert!(matches!(warning, RunWarning::RateNotReached { .. }));
}

#[test]
fn a_generator_at_full_speed_must_be_blocked() {
    let mut fixture = TestRun::healthy().with(catalogue::WORKER_RUNNING, generator(), 0.97e9);
    fixture.manifest.plan.generators[0].rate = RatePlan::MAX;
    let warning = only_warning(&fixture);
    assert!(matches!(warning, RunWarning::GeneratorLimit { .. }));
    assert!(warning.spoils(&GoalMetric::IngressThroughput));
    assert!(!warning.spoils(&GoalMetric::CpuPerEvent));
    let blocked = fixture.with(catalogue::WORKER_BLOCKED, generator(), 0.06e9);
    assert_eq!(blocked.summary().warnings, []);
}

#[test]
fn a_busy_sink_is_a_warning_unless_the_target_was_busier() {
    let busy = TestRun::healthy().with(catalogue::WORKER_RUNNING, sink(), 0.95e9);
    assert!(matches!(
        only_warning(&busy),
        RunWarning::SinkSaturated { .. }
    ));
    let busier = busy.with(catalogue::TARGET_CPU, Labels::none(), 0.99e9);
    assert_eq!(busier.summary().warnings, []);
}

#[test]
fn a_sink_that_waits_for_a_cpu_is_not_idle() {
    let thread = || Labels::none().with("worker", "sink-s-0");
    let alone = TestRun::healthy().with(catalogue::WORKER_CPU, thread(), 0.5e9);
    let free = alone
        .clone()
        .with(catalogue::WORKER_RUN_DELAY, thread(), 0.2e9);
    assert_eq!(free.summary().warnings, []);
    let waits = alone.with(catalogue::WORKER_RUN_DELAY, thread(), 0.45e9);
    let RunWarning::SinkSaturated { share, .. } = only_warning(&waits) else {
        panic!("{:?}", waits.summary().warnings);
    };
    assert!((share - 0.95).abs() < 1e-9, "{share}");
}

#[test]
fn notes_and_silent_scrapes_are_notes() {
    let mut fixture = TestRun::healthy().with(catalogue::TARGET_CPU, Labels::none(), 0.1e9);
    let url = "http://127.0.0.1:9/metrics".to_owned();
    fixture.manifest.plan.observer.scrapes = vec![ScrapePlan {
        url: url.clone(),
        names: None,
        labels: Vec::new(),
        format: stillwell_plan::observer::ScrapeFormat::default(),
    }];
    fixture.manifest.notes = vec![Note {
        what: "cgroup".to_owned(),
        why: "not permitted".to_owned(),
    }];
    let run = fixture.summary();
    assert_eq!(run.warnings, []);
    assert!(matches!(
        run.notes[..],
        [
            RunNote::LightLoad { .. },
            RunNote::ScrapeNeverAnswered { .. },
            RunNote::NotIsolated { .. }
        ]
    ));
    let labels = Labels::none().with("url", url);
    let answered = fixture.with(catalogue::SCRAPE_OK, labels, 1.0).summary();
    assert_eq!(answered.notes.len(), 2);
}

#[test]
fn sends_that_failed_are_counted_from_their_first_sight() {
    let outcome = |name: &str| generator().with("outcome", name);
    let mut fixture = TestRun::healthy().with(catalogue::OUTCOMES, outcome("ok"), 1000.0);
    for second in 6..=15 {
        let value = Value::Int(500);
        fixture
            .points
            .push((catalogue::OUTCOMES, outcome("timed_out"), second, value));
    }
    let run = fixture.summary();
    let counts: Vec<(&str, u64)> = run
        .figures
        .outcomes
        .iter()
        .map(|item| (item.outcome.as_str(), item.count))
        .collect();
    assert_eq!(counts, [("ok", 10_000), ("timed_out", 500)]);
    assert!(matches!(
        &run.notes[..],
        [RunNote::SendsFailed { count: 500, .. }]
    ));
}

fn check_of(upper: Option<f64>, lower: Option<f64>, metric: &str, id: Option<&str>) -> CheckResult {
    let mut fixture = TestRun::healthy();
    fixture.manifest.plan.checks = vec![CheckPlan {
        name: "c".to_owned(),
        description: None,
        series: SeriesSelector {
            metric: metric.to_owned(),
            id: id.map(str::to_owned),
            aggregation: Aggregation::Each,
        },
        upper,
        lower,
    }];
    fixture.summary().checks.remove(0)
}

#[test]
fn checks_hold_bounds_inclusively() {
    let rss = catalogue::TARGET_RSS.name;
    for (upper, lower, passed) in [
        (Some(50e6), None, CheckPassed::Pass),
        (Some(49e6), None, CheckPassed::Fail),
        (None, Some(50e6), CheckPassed::Pass),
        (Some(60e6), Some(51e6), CheckPassed::Fail),
    ] {
        let result = check_of(upper, lower, rss, None);
        assert_eq!(result.passed, passed, "{result:?}");
        assert!(close(result.observed, 50e6));
        assert_eq!(result.unit, "B");
    }
    let absent = check_of(Some(1.0), None, "target/nothing", None);
    assert_eq!(absent.passed, CheckPassed::NotMeasured);
    // Only the measured phase counts: 3 s to 13 s.
    let received = catalogue::BYTES_RECEIVED.name;
    let result = check_of(
        Some(13.0 * 90_000.0),
        Some(3.0 * 90_000.0),
        received,
        Some("s"),
    );
    assert_eq!(result.passed, CheckPassed::Pass);
    let right = check_of(Some(1.0), None, received, Some("another"));
    assert_eq!(right.passed, CheckPassed::NotMeasured);
}

#[test]
fn summaries_read_back() {
    let mut fixture = TestRun::healthy().placed("baseline", 3).with(
        catalogue::HOST_CPU_STEAL,
        Labels::none(),
        0.2e9,
    );
    fixture.manifest.warnings.push("careful".to_owned());
    let run = fixture.summary();
    let text = serde_json::to_string(&run).unwrap();
    assert!(text.contains(SUMMARY_SCHEMA));
    assert_eq!(serde_json::from_str::<RunSummary>(&text).unwrap(), run);
}

proptest! {
    /// For all captures, whole or not: a summary is made, and it is either
    /// unreliable or has the numbers of a run that was measured.
    #[test]
    fn any_capture_has_a_summary(
        missing in prop::collection::vec(0_u64..=15, 0..16),
        phases in 0_usize..=6,
        cpu in 0.0_f64..3e9,
    ) {
        let mut fixture = TestRun::healthy().with(catalogue::TARGET_CPU, Labels::none(), cpu);
        fixture.missing_beats = missing;
        fixture.manifest.phases.truncate(phases);
        let run = fixture.summary();
        let measured = run.value(&GoalMetric::Cpu).is_some();
        prop_assert!(measured || !run.warnings.is_empty(), "{:?}", run);
    }
}

#[test]
fn bodies_that_a_sink_could_not_read_make_what_arrived_unknown() {
    let fixture = TestRun::healthy().with(catalogue::BODIES_MALFORMED, sink(), 2.0);
    let warning = only_warning(&fixture);
    let expected = RunWarning::BodiesUnread {
        id: "s".to_owned(),
        count: 30,
        measured: 20,
    };
    assert_eq!(warning, expected);
    assert!(warning.spoils(&GoalMetric::Loss) && !warning.spoils(&GoalMetric::Cpu));
    assert!(
        warning
            .to_string()
            .contains("bodies unread: sink s could not decode 30")
    );
}

#[test]
fn what_the_kernel_dropped_was_not_lost_by_the_target() {
    let fixture = TestRun::healthy().with(catalogue::DATAGRAMS_DROPPED, sink(), 3.0);
    let warning = only_warning(&fixture);
    let expected = RunWarning::DatagramsDropped {
        id: "s".to_owned(),
        count: 45,
        measured: 30,
    };
    assert_eq!(warning, expected);
    assert!(warning.spoils(&GoalMetric::Loss) && warning.spoils(&GoalMetric::EgressThroughput));
    assert!(!warning.spoils(&GoalMetric::Cpu));
}

/// Only those of the measured phase were reported, and loss is of the whole run.
#[test]
fn what_a_sink_missed_before_or_after_the_measured_phase_makes_loss_unknown() {
    let latency = GoalMetric::EventLatency(stillwell_plan::goal::LatencyQuantile::P99);
    let unread = |measured| RunWarning::BodiesUnread {
        id: "s".to_owned(),
        count: 7,
        measured,
    };
    let dropped = |measured| RunWarning::DatagramsDropped {
        id: "s".to_owned(),
        count: 7,
        measured,
    };
    // The counter is recorded once there is something to count: in the warm-up, while
    // measuring, in the drain.
    for (first, measured) in [(1, 0), (5, 7), (14, 0)] {
        for (metric, expected) in [
            (catalogue::BODIES_MALFORMED, unread(measured)),
            (catalogue::DATAGRAMS_DROPPED, dropped(measured)),
        ] {
            let mut fixture = TestRun::healthy();
            let points = (first..=15).map(|second| (metric, sink(), second, Value::Int(7)));
            fixture.points.extend(points);
            let warning = only_warning(&fixture);
            assert_eq!(warning, expected);
            for of_whole_run in [GoalMetric::Loss, GoalMetric::Duplicated] {
                assert!(warning.spoils(&of_whole_run));
            }
            assert_eq!(warning.spoils(&latency), measured > 0);
            let has_less = metric == catalogue::DATAGRAMS_DROPPED && measured > 0;
            let output = GoalMetric::EgressThroughput;
            assert_eq!(warning.spoils(&output), has_less);
        }
    }
}

#[test]
fn events_that_still_arrive_when_the_drain_ends_are_not_called_lost() {
    for (quiet, lost, is_reported) in [(true, 3, true), (false, 3, false), (false, 0, true)] {
        let mut fixture = TestRun::healthy();
        fixture.manifest.ledger = Some(LedgerRecord {
            generators: vec![lost_of_100(lost)],
            quiet,
            ..LedgerRecord::default()
        });
        let value = fixture.summary().value(&GoalMetric::Loss);
        assert_eq!(value.is_some(), is_reported, "quiet: {quiet}, lost: {lost}");
    }
}

/// A comparison of a wrong path with a right one said `regressed` and nothing else.
#[test]
fn a_run_whose_responses_are_all_errors_reports_it() {
    let status = |code: &str| generator().with("status", code);
    let failing = TestRun::healthy()
        .with(catalogue::STATUSES, status("404"), 1000.0)
        .with(catalogue::STATUSES, status("503"), 10.0);
    let notes = failing.summary().notes;
    assert!(
        notes.contains(&RunNote::NoSuccess { status: 404 }),
        "{notes:?}"
    );
    let mixed = failing.with(catalogue::STATUSES, status("200"), 1.0);
    let notes = mixed.summary().notes;
    assert!(
        !notes
            .iter()
            .any(|note| matches!(note, RunNote::NoSuccess { .. })),
        "{notes:?}"
    );
}
