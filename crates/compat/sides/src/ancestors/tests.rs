use stillwell_capture::Point;
use stillwell_lading::capture::LadingTick;
use stillwell_metric::{Labels, Value};
use stillwell_plan::Phase;

use super::*;
use crate::compare_sides;
use crate::fixture::{Recorded, capture, options};
use crate::read::SideReader;

/// A counter of two ids, of which one grows by 1 in each second and the other by 10.
fn table() -> SeriesTable {
    let mut table = SeriesTable::default();
    for (id, growth) in [("a", 1), ("b", 10)] {
        for second in 0..3 {
            let point = Point {
                moment: Moment::new(second * 1_000_000_000),
                phase: Phase::Measure,
                value: Value::Int(growth * second),
            };
            let labels = Labels::none().with("id", id);
            let metric = catalogue::BYTES_RECEIVED;
            table.push(metric.into(), metric.kind, labels, point);
        }
    }
    table
}

/// The series of all ids were summed.
#[test]
fn a_series_of_one_id_is_read_without_the_others() {
    let table = table();
    for (name, growth) in [
        ("series:bytes_received['a']:rate", 1.0),
        ("bytes_received['a']", 1.0),
        ("bytes_received['b']:rate", 10.0),
        ("series:bytes_received:rate", 11.0),
        ("egress_throughput", 11.0),
    ] {
        let wanted = series_of_goal(name).unwrap();
        let end = Moment::new(2_000_000_000);
        let (beats, kind) = summed_beats(&table, &wanted, Moment::new(0), end);
        let values: Vec<f64> = beats.into_values().collect();
        assert_eq!(values, [0.0, growth, 2.0 * growth], "{name}");
        assert_eq!(kind, Some(Kind::Counter), "{name}");
    }
    let wanted = series_of_goal("bytes_received['c']").unwrap();
    let (beats, kind) = summed_beats(&table, &wanted, Moment::new(0), Moment::new(1));
    assert_eq!((beats.len(), kind), (0, None));
}

/// A series of one tick.
fn series_of(value: f64) -> LadingSeries {
    LadingSeries {
        kind: Kind::Gauge,
        ticks: vec![LadingTick {
            index: 7,
            wall_millis: 7_000,
            value,
        }],
    }
}

/// The rows of a peak and of a growth for each event held the series itself.
#[test]
fn a_number_that_no_second_has_is_refused() {
    let series = series_of(1.0);
    for (name, has_seconds) in [
        ("memory", true),
        ("total_pss_bytes", true),
        ("total_pss_bytes:mean", true),
        ("series:total_pss_bytes:mean", true),
        ("memory_peak", false),
        ("total_pss_bytes:peak", false),
        ("series:total_pss_bytes:peak", false),
        ("total_pss_bytes['a']:per_event", false),
        ("series:total_pss_bytes['a']:per_event", false),
        ("cpu_per_event", false),
    ] {
        let recorded = lading_series(name, |metric, _| {
            (metric == "total_pss_bytes").then_some(&series)
        });
        assert_eq!(recorded.is_some(), has_seconds, "{name}");
        assert_eq!(series_of_goal(name).is_some(), has_seconds, "{name}");
    }
}

/// Percent of the granted CPUs were read as percent of one.
#[test]
fn cpu_in_millicores_and_cpu_in_percent_of_a_limit_are_cores() {
    let limit = series_of(4000.0);
    for (recorded, value, has_limit, expected) in [
        ("total_cpu_usage_millicores", 500.0, true, 0.5),
        ("total_cpu_usage_millicores", 500.0, false, 0.5),
        ("total_cpu_percentage", 12.5, true, 0.5),
        ("total_cpu_percentage", 12.5, false, 0.125),
    ] {
        let series = series_of(value);
        let cpu = lading_series("cpu", |metric, _| match metric {
            "cpu_limit_millicores" => has_limit.then_some(&limit),
            _ => (metric == recorded).then_some(&series),
        });
        let (series, scale) = cpu.unwrap();
        let readings = lading_readings(series, scale, None);
        let number = readings.values[0].value;
        assert!((number - expected).abs() < 1e-12, "{recorded}: {number}");
        let is_share = recorded == "total_cpu_percentage" && !has_limit;
        assert_eq!(readings.is_share, is_share, "{recorded}");
    }
}

/// The kind of the baseline decided for both sides.
#[test]
fn a_counter_is_not_compared_with_a_gauge() {
    const COUNTER: Kind = Kind::Counter;
    const GAUGE: Kind = Kind::Gauge;
    let runs = |kinds: [Kind; 2]| {
        kinds.map(|kind| Readings {
            kind,
            is_share: false,
            values: Vec::new(),
        })
    };
    for (baseline, comparison, expected) in [
        ([COUNTER, COUNTER], [COUNTER, COUNTER], None),
        ([GAUGE, GAUGE], [GAUGE, GAUGE], None),
        (
            [COUNTER, COUNTER],
            [GAUGE, GAUGE],
            Some("`cpu` is a counter on one side and a gauge on the other"),
        ),
        (
            [GAUGE, GAUGE],
            [GAUGE, COUNTER],
            Some("`cpu` is a gauge on one side and a counter on the other"),
        ),
        (
            [COUNTER, GAUGE],
            [COUNTER, COUNTER],
            Some("`cpu` is a counter in one run and a gauge in another"),
        ),
    ] {
        let checked = check_kinds("cpu", &runs(baseline), &runs(comparison));
        let problem = checked.err().map(|error| error.to_string());
        assert_eq!(problem.as_deref(), expected);
    }
    let mut shares = runs([GAUGE, GAUGE]);
    for readings in &mut shares {
        readings.is_share = true;
    }
    let problem = check_kinds("cpu", &runs([GAUGE, GAUGE]), &shares).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "`cpu` is a gauge on one side and a share of the granted CPUs on the other"
    );
}

/// Compares captures of two series with the tables of 2023, and returns the titles of their rows.
fn titles(series: [&[Recorded]; 2], metrics: &[&str]) -> anyhow::Result<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, series: &[Recorded]| capture(folder.path(), name, series, None);
    let (baseline, comparison) = (write("a.jsonl", series[0]), write("b.jsonl", series[1]));
    let options = SideOptions {
        method: Some(Method::Smp2023),
        ..options(metrics)
    };
    let report = compare_sides(&baseline, Some(&comparison), &options)?;
    let Some(AncestorTables::Smp2023(table)) = &report.groups[0].ancestors else {
        panic!("{report:?}");
    };
    Ok(table.goals.iter().map(|(goal, _)| goal.clone()).collect())
}

#[test]
fn a_goal_of_two_kinds_has_no_row_in_the_tables_of_2023() {
    let written = ("bytes_written", Kind::Counter, 1000.0);
    let counter = ("queue", Kind::Counter, 1.0);
    let gauge = ("queue", Kind::Gauge, 1.0);
    let sides: [&[Recorded]; 2] = [&[written, counter], &[written, gauge]];
    let rows = titles(sides, &["ingress_throughput", "queue"]).unwrap();
    assert_eq!(rows, ["ingress throughput"]);
    let error = titles(sides, &["queue"]).unwrap_err().to_string();
    assert!(error.starts_with("`queue` is a counter"), "{error}");
}

/// The methods removed the start of the measured phase as if it were the warm-up, which had been removed already.
#[test]
fn all_of_the_measured_phase_of_a_marked_capture_is_behind_the_warmup() {
    let folder = tempfile::tempdir().unwrap();
    let series = [("bytes_written", Kind::Counter, 1000.0)];
    let path = capture(folder.path(), "a.jsonl", &series, Some(&(10..25)));
    for (warmup, first, count) in [(None, 45_u32, 15), (Some(Nanos::from_secs(40)), 0, 100)] {
        let options = SideOptions {
            warmup,
            ..options(&["ingress_throughput"])
        };
        let runs = SideReader::new(&options).read(&path).unwrap();
        let read = readings(&runs[0], "ingress_throughput", 45.0).unwrap();
        let seconds: Vec<f64> = read.values.iter().map(|value| value.second).collect();
        let expected: Vec<f64> = (first..first + count).map(f64::from).collect();
        assert_eq!(seconds, expected);
    }
}
