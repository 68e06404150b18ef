use proptest::prelude::*;
use stillwell_metric::{catalogue as metric, empty_histogram};

use super::*;

const START: u64 = 1_700_000_000_000;

/// A beat `millis` after the first.
fn beat(index: u64, millis: u64) -> Beat {
    Beat {
        index,
        moment: Moment::new(5_000_000_000 + millis * 1_000_000),
        // A wall clock that is wrong more and more: it must not matter.
        wall_millis: START + millis / 2,
    }
}

fn counter(value: u64) -> Sample {
    let labels = Labels::none()
        .with("component", "generator")
        .with("component_name", "tcp");
    Sample::int(metric::BYTES_WRITTEN, &labels, value)
}

/// The rows of beats at these times; each holds a counter that says its time.
fn rows(ticks: &mut Ticks, beats: &[u64]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, millis) in (0..).zip(beats) {
        let samples = [counter(*millis)];
        ticks.beat(&beat(index, *millis), Phase::Measure, &samples, &mut rows);
    }
    ticks.finish(&mut rows);
    rows
}

fn of<'r>(rows: &'r [Row], name: &str) -> Vec<&'r Row> {
    rows.iter()
        .filter(|row| row.name.as_str() == name)
        .collect()
}

#[test]
fn each_second_has_one_tick_with_its_last_beat() {
    let mut ticks = Ticks::new(
        &Labels::none().with("variant", "a").with("time", "now"),
        None,
    );
    let rows = rows(&mut ticks, &[0, 1003, 1999, 2400, 3001]);
    let result: Vec<_> = of(&rows, "bytes_written")
        .iter()
        .map(|row| (row.beat.index, row.beat.wall_millis - START, &row.value))
        .collect();
    let value = Value::Int;
    assert_eq!(
        result,
        [
            (0, 0, &value(0)),
            (1, 1003, &value(1003)),
            (2, 2400, &value(2400)),
            (3, 3001, &value(3001)),
        ]
    );
    let all = |key: &str, value| rows.iter().all(|row| row.labels.value(key) == value);
    assert!(all("variant", Some("a")) && all("time", None));
}

#[test]
fn every_tick_names_its_phase() {
    let mut ticks = Ticks::new(&Labels::none(), None);
    let mut rows = Vec::new();
    for (second, phase) in (0..).zip([Phase::Warmup, Phase::Measure, Phase::Drain]) {
        ticks.beat(&beat(second, 1000 * second), phase, &[], &mut rows);
    }
    ticks.finish(&mut rows);
    let phases: Vec<_> = of(&rows, PHASE_MARKER)
        .iter()
        .map(|row| row.labels.value("phase").unwrap().to_owned())
        .collect();
    assert_eq!(phases, ["warmup", "measure", "drain"]);
}

// compat: lading, series | lading.running | works
// compat: lading, series | target.running | works
#[test]
fn every_tick_reports_what_runs() {
    let mut ticks = Ticks::new(&Labels::none(), None);
    let mut rows = Vec::new();
    for (second, processes) in (0..).zip([1, 1, 0]) {
        let processes = Sample::int(metric::TARGET_PROCESSES, &Labels::none(), processes);
        ticks.beat(
            &beat(second, 1000 * second),
            Phase::Measure,
            &[processes],
            &mut rows,
        );
    }
    ticks.finish(&mut rows);
    assert_eq!(of(&rows, "lading.running").len(), 3);
    assert_eq!(of(&rows, "target.running").len(), 2);
}

#[test]
fn a_series_keeps_its_last_value_until_it_expires() {
    let seconds = [0, 1, 2, 3, 4, 5];
    for (expiration, expected) in [(None, 6), (Some(Nanos::from_secs(2)), 3)] {
        let mut ticks = Ticks::new(&Labels::none(), expiration);
        let mut rows = Vec::new();
        for second in seconds {
            let samples = if second == 0 {
                vec![counter(7)]
            } else {
                vec![]
            };
            let beat = beat(second, 1000 * second);
            ticks.beat(&beat, Phase::Measure, &samples, &mut rows);
        }
        ticks.finish(&mut rows);
        assert_eq!(of(&rows, "bytes_written").len(), expected);
    }
}

#[test]
fn a_gap_is_filled_but_not_without_end() {
    let mut ticks = Ticks::new(&Labels::none(), None);
    assert_eq!(of(&rows(&mut ticks, &[0, 5000]), "bytes_written").len(), 6);
    let mut ticks = Ticks::new(&Labels::none(), None);
    let long = rows(&mut ticks, &[0, 86_400_000]);
    assert_eq!(of(&long, "bytes_written").len(), 62);
}

#[test]
fn cpu_time_becomes_thousandths_of_a_core() {
    let mut ticks = Ticks::new(&Labels::none(), None);
    let mut rows = Vec::new();
    for second in 0..4 {
        let used = Sample::int(metric::TARGET_CPU, &Labels::none(), 250_000_000 * second);
        let beat = beat(second, 1000 * second);
        ticks.beat(&beat, Phase::Measure, &[used], &mut rows);
    }
    ticks.finish(&mut rows);
    let result: Vec<_> = of(&rows, "total_cpu_usage_millicores")
        .iter()
        .map(|row| row.value.clone())
        .collect();
    assert_eq!(result, vec![Value::Float(250.0); 3]);
}

#[test]
fn histograms_are_sketches_of_their_tick_alone() {
    let mut ticks = Ticks::new(&Labels::none(), None);
    let mut rows = Vec::new();
    let mut histogram = empty_histogram();
    histogram.record_n(1000, 3).unwrap();
    let value = Value::Histogram(encode_histogram(&histogram));
    let sample = Sample::new(metric::LATENESS, &Labels::none(), value);
    // Two in the first tick, none in the second.
    for (index, millis) in [(0, 0), (1, 100), (2, 2000)] {
        let samples = if millis < 1000 {
            vec![sample.clone()]
        } else {
            vec![]
        };
        ticks.beat(&beat(index, millis), Phase::Measure, &samples, &mut rows);
    }
    ticks.finish(&mut rows);
    let result = of(&rows, "lateness");
    let [row] = result.as_slice() else {
        panic!("{result:?}");
    };
    assert_eq!(row.beat.index, 0);
    let Value::Histogram(bytes) = &row.value else {
        panic!("{row:?}");
    };
    // Field 2 is the count: six values.
    assert_eq!(bytes[..2], [0x10, 6]);
}

proptest! {
    /// For all times of beats: ticks and times rise strictly, each tick has one
    /// time, and the last value is kept.
    #[test]
    fn ticks_rise(steps in prop::collection::vec(0_u64..3000, 1..40)) {
        let beats: Vec<u64> = steps.iter().scan(0, |at, step| { *at += step; Some(*at) }).collect();
        let start = beats[0];
        let beats: Vec<u64> = beats.iter().map(|at| at - start).collect();
        let mut ticks = Ticks::new(&Labels::none(), None);
        let rows = rows(&mut ticks, &beats);
        let rows = of(&rows, "bytes_written");
        for pair in rows.windows(2) {
            prop_assert!(pair[0].beat.index + 1 == pair[1].beat.index);
            prop_assert!(pair[0].beat.wall_millis < pair[1].beat.wall_millis);
        }
        prop_assert_eq!(&rows.last().unwrap().value, &Value::Int(*beats.last().unwrap()));
    }
}
