//! Pipelines that are wrong by known amounts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use serde_json::Value;
use stillwell_bench::{Bench, BenchError, Due, Plan, PlanError, Rate, Report, Ticket};
use stillwell_scope::clock;
use stillwell_units::Nanos;

/// Sends through `pipeline`, which hands on what comes out, all in one thread.
fn through(plan: Plan, mut pipeline: impl FnMut(Ticket, &mut dyn FnMut(Ticket))) -> Report {
    let (bench, mut source, mut sink) = Bench::start(plan).unwrap();
    while let Some(ticket) = source.next() {
        source.wrote(10);
        pipeline(ticket, &mut |ticket| sink.arrived(&ticket, 10));
    }
    drop((source, sink));
    bench.finish().unwrap()
}

fn plan(events: u64) -> Plan {
    Plan {
        events,
        ..Plan::new("test")
    }
}

#[test]
fn what_is_dropped_is_known_by_number() {
    let report = through(plan(10_000), |ticket, out| {
        if ticket.sequence % 100 != 7 {
            out(ticket);
        }
    });
    assert_eq!(
        (report.lost(), report.arrived, report.loss_ranges),
        (100, 9_900, 100)
    );
    assert_eq!(report.losses.len(), 64);
    assert_eq!(report.losses[2], 207..=207);
    assert_eq!(report.failures(), ["100 events were lost"]);
    assert_eq!(report.latency.len(), 9_900);
    assert_eq!(
        (report.sent.bytes, report.received.bytes),
        (100_000, 99_000)
    );
    assert!(report.events_per_second() > 0.0);
}

#[test]
fn doubles_and_what_changed_places_are_counted() {
    let mut kept = None;
    let report = through(plan(1_000), |ticket, out| match ticket.sequence % 10 {
        3 => {
            out(ticket);
            out(ticket);
        }
        // Changes places with the one behind it.
        5 => kept = Some(ticket),
        _ => {
            out(ticket);
            kept.take().into_iter().for_each(&mut *out);
        }
    });
    assert_eq!((report.lost(), report.duplicated), (0, 100));
    assert_eq!((report.reordered, report.displacement_max), (100, 1));
    // A double makes no second latency.
    assert_eq!(
        (report.latency.len(), report.received.events),
        (1_000, 1_100)
    );
    assert_eq!(report.failures(), ["100 events arrived more than once"]);
}

#[test]
fn several_sinks_are_one() {
    let (bench, mut source, sink) = Bench::start(plan(999)).unwrap();
    let mut sinks = vec![sink.clone(), sink.clone(), sink];
    while let Some(ticket) = source.next() {
        let place = usize::try_from(ticket.sequence % 3).unwrap();
        sinks[place].arrived(&ticket, 1);
        if ticket.sequence == 500 {
            // Once more, elsewhere.
            sinks[0].arrived(&ticket, 1);
        }
    }
    drop((source, sinks));
    let report = bench.finish().unwrap();
    assert_eq!(
        (report.lost(), report.duplicated, report.arrived),
        (0, 1, 999)
    );
}

#[test]
fn reports_of_the_pipeline_about_an_event_count_once() {
    let plan = Plan {
        answers: true,
        ..plan(100)
    };
    let (bench, mut source, mut sink) = Bench::start(plan).unwrap();
    while let Some(ticket) = source.next() {
        match ticket.sequence {
            // Nothing is said of these.
            0..10 => {}
            10..20 => sink.failed(&ticket),
            // First given up, then delivered all the same.
            20..30 => {
                sink.failed(&ticket);
                sink.arrived(&ticket, 1);
                sink.acknowledged(&ticket);
            }
            _ => {
                sink.arrived(&ticket, 1);
                sink.acknowledged(&ticket);
                sink.acknowledged(&ticket);
            }
        }
    }
    drop((source, sink));
    let report = bench.finish().unwrap();
    let answers = report.answers.unwrap();
    assert_eq!((answers.acknowledged, answers.failed), (80, 10));
    assert_eq!((answers.unacknowledged, answers.again), (10, 70));
    assert_eq!(
        report.failures(),
        ["10 events failed", "10 events were not acknowledged"]
    );
    assert!(report.text().contains("unacknowledged  10 events"));
}

#[test]
fn an_open_schedule_counts_what_had_to_wait() {
    // The pipeline holds each event up for as long as ten are apart.
    let held = Nanos::from_millis(1);
    let plan = Plan {
        rate: Rate::PerSecond(10_000.0),
        ..plan(50)
    };
    let report = through(plan, |ticket, out| {
        let until = clock::now() + held;
        while clock::now() < until {
            std::hint::spin_loop();
        }
        out(ticket);
    });
    // The last one was due 4.9 ms after the first, and came out after 50 ms.
    assert!(report.latency.max() > 44_000_000, "{}", report.text());
    // Three digits are kept.
    assert!(report.transit.min() >= 999_000, "{}", report.text());
}

#[test]
fn a_warm_up_is_accounted_for_and_not_measured() {
    let plan = Plan {
        rate: Rate::PerSecond(10_000.0),
        warmup: Duration::from_millis(50),
        ..plan(1_000)
    };
    let report = through(plan, |ticket, out| out(ticket));
    assert_eq!((report.sent.events, report.lost()), (1_000, 0));
    assert_eq!((report.measured.events, report.latency.len()), (500, 500));
}

#[test]
fn separate_timers_are_polled_without_waiting() {
    let plan = Plan {
        rate: Rate::PerSecond(1.0),
        ..plan(2)
    };
    let (bench, mut source, sink) = Bench::start(plan).unwrap();
    assert!(matches!(source.due(), Due::Now(ticket) if ticket.sequence == 0));
    let Due::In(wait) = source.due() else {
        panic!("it is not due for a second");
    };
    assert!(wait <= Duration::from_secs(1));
    bench.stop();
    assert_eq!(source.due(), Due::End);
    drop((source, sink));
    let report = bench.finish().unwrap();
    assert!(report.stopped);
    assert_eq!((report.sent.events, report.lost()), (1, 1));
}

#[test]
fn ends_that_are_still_held_are_errors() {
    let (bench, source, sink) = Bench::start(plan(1)).unwrap();
    assert_eq!(bench.finish().unwrap_err(), BenchError::SourceHeld);
    drop((source, sink));
    let (bench, source, sink) = Bench::start(plan(1)).unwrap();
    let clone = sink.clone();
    drop((source, sink));
    let error = bench.finish().unwrap_err();
    assert!(
        error.to_string().starts_with("sinks are still in use (1)"),
        "{error}"
    );
    drop(clone);
}

#[test]
fn tickets_of_others_are_foreign() {
    let (bench, mut source, mut sink) = Bench::start(plan(10)).unwrap();
    let ticket = source.next().unwrap();
    sink.arrived(&ticket, 1);
    for sequence in [5, 10, u64::MAX] {
        sink.arrived(&Ticket { sequence, ..ticket }, 1);
    }
    drop((source, sink));
    let report = bench.finish().unwrap();
    assert_eq!(
        (report.sent.events, report.arrived, report.foreign),
        (1, 1, 3)
    );
}

#[test]
fn plans_that_cannot_be_are_refused() {
    for (plan, expected) in [
        (plan(0), "0 events: 1 to"),
        (plan(u64::MAX), "events: 1 to"),
        (
            Plan {
                rate: Rate::PerSecond(0.0),
                ..plan(1)
            },
            "a rate of 0 events",
        ),
        (
            Plan {
                rate: Rate::PerSecond(f64::NAN),
                ..plan(1)
            },
            "a rate of NaN events",
        ),
    ] {
        let error = Bench::start(plan).map(|_| ()).unwrap_err();
        assert!(matches!(
            error,
            BenchError::Plan(PlanError::Events { .. } | PlanError::Rate { .. })
        ));
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn the_object_has_every_key_of_tremors() {
    let report = through(plan(100), |ticket, out| out(ticket));
    let object: Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(object["schema"], "stillwell/bench/v2");
    for key in [
        "mean",
        "stdev",
        "max",
        "count",
        "buckets",
        "subbuckets",
        "bytes",
    ] {
        assert!(object[key].is_number(), "{key}: {object}");
    }
    for key in ["events_per_second", "bytes_per_second"] {
        assert!(object["throughput"][key].is_number(), "{key}");
    }
    let quantiles = object["quantiles"].as_array().unwrap();
    assert!(
        quantiles
            .iter()
            .all(|tick| tick["value"].is_u64() && tick["quantile_to"].is_number())
    );
    assert_eq!(object["ledger"]["generators"][0]["lost"]["most"], 0);
    // A plotter of HdrHistogram's text takes rows of numbers alone.
    let text = report.text();
    let rows = text.lines().filter(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() == 4 && words.iter().all(|word| word.parse::<f64>().is_ok())
    });
    assert_eq!(rows.count(), quantiles.len());
}
