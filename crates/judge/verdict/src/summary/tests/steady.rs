//! Warm-up and drift, by what a run records.

use super::*;

/// A run of 40 s of load, whose target uses this CPU time in each of them.
fn run(cpu_of: impl Fn(u64) -> f64) -> Capture {
    test_run(cpu_of).capture()
}

fn test_run(cpu_of: impl Fn(u64) -> f64) -> TestRun {
    let mut test_run = TestRun::healthy().without(catalogue::TARGET_CPU);
    test_run.seconds = 45;
    for (mark, second) in test_run
        .manifest
        .phases
        .iter_mut()
        .zip([0, 1, 3, 41, 42, 45])
    {
        mark.moment = Moment::new(second * 1_000_000_000);
        mark.wall_millis = 1_700_000_000_000 + second * 1000;
    }
    let mut total = 0.0;
    for second in 0..=45_u64 {
        // Waves of a percent, so nothing is perfectly even.
        let wave = if second % 3 == 0 { 1.01 } else { 0.995 };
        total += cpu_of(second) * wave * 1e9;
        let value = Value::Int(stillwell_units::floor_to_u64(total));
        let point = (catalogue::TARGET_CPU, Labels::none(), second, value);
        test_run.points.push(point);
    }
    test_run
}

#[test]
fn a_steady_run_has_no_warning() {
    let run = summarise(&run(|_| 0.5));
    assert_eq!(run.notes, []);
    let steady = run.figures.warmup.unwrap();
    assert_eq!(steady.drift, None);
    assert_eq!(steady.beats, 40);
    let beats = &run.figures.beats[&GoalMetric::CpuPerEvent];
    assert_eq!((beats.values.len(), beats.beat), (38, Nanos::from_secs(1)));
    assert!(
        (beats.values[0] / 500_000.0 - 1.0).abs() < 0.02,
        "{beats:?}"
    );
    assert!((run.figures.beats[&GoalMetric::Cpu].values[0] / 0.5 - 1.0).abs() < 0.02);
}

#[test]
fn a_long_warmup_is_found_and_can_be_left_out() {
    let capture = run(|second| if second < 12 { 0.9 } else { 0.5 });
    let run = summarise(&capture);
    let steady = run.figures.warmup.clone().unwrap();
    assert_eq!(steady.series, "target_cpu");
    // Ten seconds after load began, by steps of five.
    assert_eq!(steady.cut, Some(Nanos::from_secs(10)));
    assert!((steady.apart - 0.8).abs() < 0.02, "{steady:?}");
    let [RunNote::WarmupTooShort { warmup, cut, .. }, ..] = &run.notes[..] else {
        panic!("{:?}", run.notes);
    };
    assert_eq!((*warmup, *cut), (Nanos::from_secs(2), steady.cut));
    let later = summarise_from(&capture, Nanos::from_secs(10));
    assert_eq!(later.warmup, Nanos::from_secs(10));
    assert_eq!(later.measured, Nanos::from_secs(30));
    assert_eq!(later.notes, []);
    assert_eq!(later.figures.warmup.unwrap().cut, steady.cut);
    let cpu = later.values[&GoalMetric::Cpu].value().unwrap();
    assert!((cpu / 0.5 - 1.0).abs() < 0.01, "{cpu}");
    // Less than what is stated is never left out.
    assert_eq!(summarise_from(&capture, Nanos::SECOND).warmup, run.warmup);
}

#[test]
fn a_drift_is_no_steady_state() {
    let run = summarise(&run(|second| {
        0.5 + 0.004 * stillwell_units::float_from_u64(second)
    }));
    let drift = run.figures.warmup.unwrap().drift.unwrap();
    assert_eq!(drift.series, "target_cpu");
    assert!((drift.share - 0.26).abs() < 0.03, "{drift:?}");
    let mut notes = run.notes.iter();
    assert!(notes.any(|item| matches!(item, RunNote::NotSteady { .. })));
}

#[test]
fn latency_that_grows_is_a_note() {
    let growing = |grows: bool| {
        let mut test_run = test_run(|_| 0.5);
        let times = (0..=45_u64).map(|second| {
            let mut histogram = empty_histogram();
            let queue = if grows { 100 * second } else { 0 };
            histogram
                .record_n(5000 + queue + 90 * (second % 3), 100)
                .unwrap();
            Value::Histogram(encode_histogram(&histogram))
        });
        for (second, value) in (0..).zip(times) {
            let point = (catalogue::RESPONSE_TIME, generator(), second, value);
            test_run.points.push(point);
        }
        test_run.summary()
    };
    assert_eq!(growing(false).notes, []);
    let [RunNote::LatencyGrew { series, growth }] = &growing(true).notes[..] else {
        panic!("{:?}", growing(true).notes);
    };
    // 3.9 ms more, of a mean of 7.2 ms.
    assert_eq!(series, "response_time");
    assert!((growth - 0.54).abs() < 0.05, "{growth}");
}

#[test]
fn a_short_run_is_not_decisive() {
    let run = TestRun::healthy().summary();
    assert_eq!(run.figures.warmup, None);
    assert_eq!(run.figures.beats[&GoalMetric::Cpu].values.len(), 10);
}
