use stillwell_plan::StampPlan;
use stillwell_units::Nanos;
use stillwell_verdict::{DividedLedger, LedgerFigures};

use super::*;
use crate::{Format, Style};

/// Tremor's own sample: as many samples as in its documentation, spread as there.
fn report() -> BenchReport {
    let mut latency = stillwell_metric::empty_histogram();
    for (value, count) in [
        (8_500, 1),
        (15_600, 249_318),
        (25_000, 497_379),
        (2_800_000, 248_678),
    ] {
        latency.record_n(value, count).unwrap();
    }
    let count = latency.len();
    let volume = Volume {
        events: count,
        bytes: 5_242_880,
    };
    BenchReport {
        name: "blaster".to_owned(),
        target: "relay".to_owned(),
        source: "in.json".to_owned(),
        outcome: "completed".to_owned(),
        warnings: Vec::new(),
        unstamped: None,
        transit: latency.clone(),
        latency,
        window: BenchWindow {
            length: Nanos::from_secs(10),
            volume,
        },
        received: volume,
        sent: volume,
        ledger: Some(ledger(count)),
        answers: None,
        rounds_cut: None,
        lossy: false,
        significant_figures: 2,
        version: "0.1.0".to_owned(),
        command: "stillwell bench bench.yaml".to_owned(),
        capture: "results".to_owned(),
        curves: Vec::new(),
    }
}

fn exactly(count: u64) -> CountBounds {
    CountBounds {
        least: count,
        most: count,
    }
}

fn ledger(count: u64) -> LedgerRecord {
    LedgerRecord {
        clock_error: None,
        divided: None,
        generators: vec![LedgerFigures {
            id: "bench".to_owned(),
            expected: StampPlan::ALL,
            streams: 1,
            sent: count,
            received: exactly(count),
            lost: exactly(0),
            incomplete: exactly(0),
            duplicated: exactly(0),
            unsent: exactly(0),
            arrivals: count,
            reordered: 0,
            displacement_max: 0,
            late: 0,
            unclear: 0,
            intact: 0,
            damaged: 0,
            unverifiable: 0,
            undeclared: count,
            bounded_windows: 0,
            losses: Vec::new(),
            loss_ranges: 0,
            damages: Vec::new(),
        }],
        broken: 0,
        foreign: 0,
        memory_bytes: 0,
        quiet: true,
        under_way: Some(0),
    }
}

#[test]
fn a_ledger_of_several_machines_reports_what_each_of_them_saw() {
    let mut whole = ledger(5);
    let row = |ledger: &LedgerRecord, wanted: &str| {
        let rows = crate::run::stamps::rows(ledger).into_iter();
        let mut texts = rows
            .filter(|(head, _)| head == wanted)
            .map(|(_, text)| text);
        texts.next()
    };
    assert_eq!(row(&whole, "reordered").unwrap(), "0");
    let divided = |again| DividedLedger {
        machines: 2,
        arrived_again: exactly(again),
    };
    whole.divided = Some(divided(0));
    assert_eq!(
        row(&whole, "reordered").unwrap(),
        "0; counted on each of 2 machines with sinks"
    );
    assert_eq!(row(&whole, "on several machines"), None);
    whole.divided = Some(divided(1_500));
    assert_eq!(
        row(&whole, "on several machines").unwrap(),
        "1,500 times an event arrived on a second machine or more; latency and late count each arrival"
    );
}

/// Reads a text as HdrHistogram's plotter does: see C.2 of the notes on it.
fn plotted(text: &str) -> Vec<(f64, f64)> {
    let rows = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let [value, _, _, inverse] = words.as_slice() else {
            return None;
        };
        let number = |word: &str| word.parse::<f64>().ok().filter(|number| number.is_finite());
        Some((number(value)?, number(inverse)?))
    });
    rows.collect()
}

#[test]
fn the_text_is_tremors_table_and_what_became_of_events() {
    insta::assert_snapshot!(FullReport::from(&report()).render(Format::Terminal, Style::default()));
}

#[test]
fn plotters_take_the_table_and_nothing_else() {
    let report = report();
    let rows = plotted(&FullReport::from(&report).render(Format::Terminal, Style::default()));
    let ticks: Vec<_> = report.table().iter_quantiles(2).collect();
    // The last row has no end, and is left out.
    assert_eq!(rows.len(), ticks.len() - 1);
    for (row, tick) in rows.iter().zip(&ticks) {
        let value = stillwell_units::float_from_u64(tick.value_iterated_to());
        assert!((row.0 - value).abs() < 0.5, "{row:?} {value}");
        let inverse = 1.0 / (1.0 - tick.quantile_iterated_to());
        assert!((row.1 - inverse).abs() < 0.01, "{row:?} {inverse}");
    }
}

#[test]
fn the_object_has_every_key_of_tremors() {
    let object = bench_json(&report());
    for key in [
        "mean",
        "stdev",
        "max",
        "count",
        "buckets",
        "subbuckets",
        "bytes",
        "throughput",
        "quantiles",
    ] {
        assert!(!object[key].is_null(), "{key}");
    }
    for key in ["events_per_second", "bytes_per_second"] {
        assert!(object["throughput"][key].is_f64(), "{key}");
    }
    for key in ["value", "quantile", "quantile_to"] {
        assert!(object["quantiles"][0][key].is_number(), "{key}");
    }
    // As Tremor's documentation has them for its bounds and two digits.
    assert_eq!(
        (&object["buckets"], &object["subbuckets"]),
        (&30.into(), &3968.into())
    );
    assert_eq!(object["count"], 995_376);
    assert_eq!(object["throughput"]["bytes_per_second"], 524_288.0);
    insta::assert_snapshot!(serde_json::to_string_pretty(&object).unwrap());
}

#[test]
fn a_bench_fails_for_what_did_not_come_through() {
    let of = |change: fn(&mut BenchReport)| {
        let mut report = report();
        change(&mut report);
        report.failures()
    };
    assert_eq!(of(|_| ()), Vec::<String>::new());
    let lose = |report: &mut BenchReport| {
        if let Some(ledger) = &mut report.ledger {
            ledger.generators[0].lost = exactly(3);
            ledger.generators[0].duplicated = exactly(2);
        }
    };
    assert_eq!(
        of(|report| {
            if let Some(ledger) = &mut report.ledger {
                ledger.generators[0].lost = exactly(3);
                ledger.generators[0].duplicated = exactly(2);
                ledger.generators[0].damaged = 1;
            }
        }),
        [
            "3 events were lost",
            "2 events arrived more than once",
            "1 event arrived damaged"
        ]
    );
    let mut refused = report();
    lose(&mut refused);
    refused.answers = Some(BenchAnswers {
        refused: 3,
        at_least_once: true,
        ..BenchAnswers::default()
    });
    assert_eq!(refused.failures(), ["3 events were refused permanently"]);
    refused.lossy = true;
    assert!(refused.failures().is_empty());
}

#[test]
fn nothing_sent_and_rounds_that_were_not_sent_held() {
    let mut report = report();
    report.lossy = true;
    report.rounds_cut = Some(3);
    let [failure] = &report.failures()[..] else {
        panic!("{:?}", report.failures());
    };
    assert!(
        failure.contains("before all 3 rounds were sent: 995376 events were sent"),
        "{failure}"
    );
    report.sent = Volume::default();
    assert_eq!(report.failures(), ["nothing was sent"]);
}

#[test]
fn no_arrivals_are_reported() {
    let mut report = report();
    report.latency = stillwell_metric::empty_histogram();
    report.transit = stillwell_metric::empty_histogram();
    report.window = BenchWindow::default();
    let object = bench_json(&report);
    assert!(object["mean"].is_null() && object["max"].is_null());
    assert_eq!(object["throughput"]["events_per_second"], 0.0);
    assert_eq!(
        plotted(&FullReport::from(&report).render(Format::Terminal, Style::default())),
        []
    );
}
