//! Goals beyond counters, and the numbers of all series.

use stillwell_plan::goal::LatencyQuantile;
use stillwell_units::float_from_u64;

use super::*;

fn goal(text: &str) -> GoalMetric {
    text.parse().unwrap()
}

fn scraped(metric: &'static str, kind: stillwell_metric::Kind) -> stillwell_metric::Metric {
    stillwell_metric::Metric {
        name: metric,
        unit: stillwell_metric::catalogue::Unit::Unknown,
        kind,
        meaning: "Scraped.",
    }
}

const COUNTER: stillwell_metric::Kind = stillwell_metric::Kind::Counter;
const GAUGE: stillwell_metric::Kind = stillwell_metric::Kind::Gauge;

#[test]
fn latency_is_a_quantile_of_the_runs_own_histogram() {
    let mut test_run = TestRun::healthy();
    let mut times = empty_histogram();
    for millis in 1..=1000_u64 {
        times.record(millis * 1_000_000).unwrap();
    }
    let value = Value::Histogram(encode_histogram(&times));
    let early = lateness(Nanos::from_secs(9));
    // What the warm-up recorded is not the measured phase's.
    for (second, value) in [(2, early), (8, value)] {
        let point = (catalogue::RESPONSE_TIME, generator(), second, value);
        test_run.points.push(point);
    }
    let run = test_run.summary();
    for (quantile, millis) in [
        (LatencyQuantile::P50, 500.0),
        (LatencyQuantile::P90, 900.0),
        (LatencyQuantile::P99, 990.0),
        (LatencyQuantile::P999, 999.0),
    ] {
        let result = run.value(&GoalMetric::Latency(quantile)).unwrap() / 1e6;
        assert!((result / millis - 1.0_f64).abs() < 2e-3, "{result}");
    }
    let silent = TestRun::healthy().summary();
    let measured = silent.measured(&GoalMetric::Latency(LatencyQuantile::P99));
    assert!(matches!(measured, Measured::Missing { reason } if reason.contains("no response")));
}

#[test]
fn loss_is_of_the_whole_run() {
    let run = TestRun::healthy()
        .with(catalogue::EVENTS_RECEIVED, sink(), 990.0)
        .summary();
    assert!(close(run.value(&GoalMetric::Loss), 0.01));
    assert_eq!(
        TestRun::healthy().summary().value(&GoalMetric::Loss),
        Some(0.0)
    );
    let unknown = TestRun::healthy().without(catalogue::EVENTS_RECEIVED);
    assert_eq!(unknown.summary().value(&GoalMetric::Loss), None);
}

#[test]
fn memory_has_a_peak_and_a_slope() {
    let mut test_run = TestRun::healthy().without(catalogue::TARGET_RSS);
    for second in 0..=15_u64 {
        let value = Value::Int(50_000_000 + 100_000 * second);
        let point = (catalogue::TARGET_RSS, Labels::none(), second, value);
        test_run.points.push(point);
    }
    let run = test_run.summary();
    assert!(close(run.value(&GoalMetric::MemoryPeak), 60e6));
    // 6 MB a minute of a mean of 50.8 MB.
    assert!(close(run.value(&GoalMetric::MemorySlope), 6.0 / 50.8));
    assert_eq!(
        TestRun::healthy().summary().value(&GoalMetric::MemorySlope),
        Some(0.0)
    );
}

#[test]
fn the_memory_peak_is_the_largest_mark_or_sample_and_not_the_last() {
    let ints = |metric, values: &[(u64, u64)]| {
        let mut test_run = TestRun::healthy().without(metric);
        for (second, value) in values {
            let point = (metric, Labels::none(), *second, Value::Int(*value));
            test_run.points.push(point);
        }
        test_run.summary()
    };
    // The mark of the first process vanishes with it, at 6 s.
    let restarted = [(2, 90_000_000), (5, 95_000_000), (8, 55_000_000)];
    let run = ints(catalogue::TARGET_RSS_PEAK, &restarted);
    assert!(close(run.figures.rss_peak_bytes, 95e6));
    assert!(close(run.value(&GoalMetric::MemoryPeak), 95e6));
    // A process that lived between two readings of the mark.
    let short = [(4, 40_000_000), (5, 70_000_000), (6, 40_000_000)];
    let run = ints(catalogue::TARGET_RSS, &short);
    assert!(close(run.value(&GoalMetric::MemoryPeak), 70e6));
    let unmarked = TestRun::healthy().without(catalogue::TARGET_RSS_PEAK);
    assert!(close(unmarked.summary().figures.rss_peak_bytes, 50e6));
}

#[test]
fn every_series_is_a_goal() {
    let labels = |kind: &str| Labels::none().with("kind", kind);
    let run = TestRun::healthy()
        .with(scraped("target/errors", COUNTER), labels("a"), 3.0)
        .with(scraped("target/errors", COUNTER), labels("b"), 5.0)
        .with(scraped("target/depth", GAUGE), Labels::none(), 7.0)
        .summary();
    for (text, expected) in [
        ("series:target/errors:rate", 8.0),
        ("series:target/errors:per_event", 0.008),
        ("series:target/depth:mean", 7.0),
        ("series:target/depth:peak", 7.0),
        ("series:bytes_received['s']:rate", 90_000.0),
        ("series:bytes_received:rate", 90_000.0),
        ("series:total_rss_bytes:peak", 50e6),
    ] {
        assert!(
            close(run.value(&goal(text)), expected),
            "{text} {:?}",
            run.series
        );
    }
    assert!(close(
        run.series.get("target/errors{kind=b}:rate").copied(),
        5.0
    ));
    for text in ["series:target/depth:rate", "series:target/none:mean"] {
        assert!(matches!(
            run.measured(&goal(text)),
            Measured::Missing { .. }
        ));
    }
}

#[test]
fn a_counter_that_appears_while_measuring_was_at_zero() {
    let mut test_run = TestRun::healthy();
    for second in 8..=15_u64 {
        let value = Value::Int(10 * (second - 7));
        let late = scraped("target/retries", COUNTER);
        test_run.points.push((late, Labels::none(), second, value));
    }
    let run = test_run.summary();
    // 60 until the end of the ten seconds.
    assert!(close(run.value(&goal("series:target/retries:rate")), 6.0));
}

/// A run with the counter `target/work` from the second `first` on. Its page is read at each second
/// from `scraped_from` on, and has the counter once for each of `values`.
fn with_page(scraped_from: u64, first: u64, values: &[fn(u64) -> f64]) -> RunSummary {
    const URL: &str = "http://127.0.0.1:9/metrics";
    let mut test_run = TestRun::healthy();
    for second in 0..=15_u64 {
        let page = Labels::none().with("url", URL);
        let scrapes = Value::Int((second + 1).saturating_sub(scraped_from));
        let point = (catalogue::SCRAPE_OK, page, second, scrapes);
        test_run.points.push(point);
        for value in values.iter().filter(|_| second >= first) {
            let labels = Labels::none().with("source", URL);
            let work = scraped("target/work", COUNTER);
            let point = (work, labels, second, Value::Float(value(second)));
            test_run.points.push(point);
        }
    }
    test_run.summary()
}

#[test]
fn a_scraped_counter_that_begins_again_grows_by_its_whole_new_value() {
    // From 30 to 70, to 10 after the restart, and to 60.
    let restarted: fn(u64) -> f64 = |second| match second {
        0..8 => 10.0 * float_from_u64(second),
        _ => 10.0 * float_from_u64(second - 7),
    };
    // A page that has the series a second time does not restart it.
    let second_copy: fn(u64) -> f64 = |_| 0.0;
    for values in [&[restarted][..], &[restarted, second_copy]] {
        let run = with_page(0, 0, values);
        assert!(close(run.value(&goal("series:target/work:rate")), 10.0));
        let per_event = run.value(&goal("series:target/work:per_event"));
        assert!(close(per_event, 0.01), "{per_event:?}");
    }
}

#[test]
fn a_received_counter_that_falls_does_not_begin_again() {
    let page = Labels::none().with("url", "http://127.0.0.1:9/metrics");
    let mut test_run = TestRun::healthy().with(catalogue::SCRAPE_OK, page, 1.0);
    // The sink `intake` adds up received points, which may be negative.
    for second in 0..=15_u64 {
        let value = Value::Int(if second == 8 { 65 } else { 10 * second });
        let labels = Labels::none().with("source", "intake");
        let point = (scraped("target/work", COUNTER), labels, second, value);
        test_run.points.push(point);
    }
    let run = test_run.summary();
    assert!(close(run.value(&goal("series:target/work:rate")), 10.0));
}

#[test]
fn a_scraped_counter_that_appears_was_at_zero_only_if_its_page_was_read_before() {
    let total: fn(u64) -> f64 = |second| 1000.0 + 10.0 * float_from_u64(second);
    // 1130 after the ten seconds; or 70 in the seven seconds since the first scrape.
    for (scraped_from, expected) in [(0, 113.0), (3, 113.0), (4, 10.0), (6, 10.0)] {
        let run = with_page(scraped_from, 6, &[total]);
        let rate = run.value(&goal("series:target/work:rate"));
        assert!(close(rate, expected), "{scraped_from}: {rate:?}");
        let per_event = run.value(&goal("series:target/work:per_event"));
        assert!(close(per_event, expected / 1000.0), "{per_event:?}");
    }
}

#[test]
fn too_many_series_are_cut_and_that_is_reported() {
    let mut test_run = TestRun::healthy();
    for number in 0..1500 {
        let labels = Labels::none().with("n", format!("{number:04}"));
        test_run.set(scraped("target/many", COUNTER), labels, 1.0);
    }
    let run = test_run.summary();
    assert!(run.series.len() <= crate::limits::SERIES_MAX + 1);
    assert!(run.series_left_out > 400, "{}", run.series_left_out);
    // The sum over all of them is kept.
    assert!(close(run.value(&goal("series:target/many:rate")), 1500.0));
    assert!(matches!(run.notes[..], [RunNote::SeriesLeftOut { .. }]));
}

#[test]
fn points_that_a_sink_did_not_record_are_reported() {
    let mut test_run = TestRun::healthy();
    let labels = Labels::none()
        .with("id", "intake")
        .with("reason", "untyped");
    let metric = catalogue::POINTS_SKIPPED;
    test_run.points.push((metric, labels, 9, Value::Int(7)));
    let run = test_run.summary();
    let [note] = &run.notes[..] else {
        panic!("{:?}", run.notes);
    };
    let text = "points skipped: sink intake did not record 7 points: their series have no type";
    assert_eq!(note.to_string(), text);
}

#[test]
fn rates_are_of_the_time_with_load() {
    // Half of the time another run had the load.
    let run = TestRun::healthy()
        .with(catalogue::ACTIVE_TIME, Labels::none(), 0.5e9)
        .with(catalogue::WORKER_RUNNING, sink(), 0.46e9)
        .summary();
    assert!(close(run.value(&GoalMetric::IngressThroughput), 200_000.0));
    assert!(close(run.value(&GoalMetric::Cpu), 1.0));
    assert!(close(run.value(&GoalMetric::CpuPerEvent), 500_000.0));
    assert!(close(
        run.value(&goal("series:bytes_received:rate")),
        180_000.0
    ));
    // Host shares stay those of the wall clock: 20 ms each second of two CPUs.
    assert!(close(run.figures.foreign_cpu_share, 0.01));
    let sink = run.figures.workers.last().unwrap();
    assert!((sink.running - 0.92).abs() < 1e-9, "{sink:?}");
}

#[test]
fn what_the_pair_must_share_is_kept() {
    let mut test_run = TestRun::healthy();
    test_run.manifest.host = serde_json::json!({
        "kernel": "6.1",
        "load": "0.1 0.2 0.3",
        "cgroup_limits": [["cpu.max", "max"]],
        "cpus": [{"number": 0, "governor": "performance"}, {"number": 1, "governor": "powersave"}],
    });
    test_run.manifest.notes = vec![Note {
        what: "cgroup".to_owned(),
        why: "not permitted".to_owned(),
    }];
    let facts = test_run.summary().environment;
    let fact = |name: &str| facts.get(name).map(String::as_str);
    assert_eq!(fact("kernel"), Some("6.1"));
    assert_eq!(fact("governors"), Some("performance powersave"));
    assert_eq!(fact("cgroup"), Some("not isolated"));
    assert_eq!(fact(TARGET_CPUS), Some("1"));
    assert_eq!(fact("load"), None);
    assert_eq!(facts.len(), 8, "{facts:?}");
}
