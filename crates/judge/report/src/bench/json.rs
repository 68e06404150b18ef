//! For programs: one JSON object.

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use stillwell_metric::quantile_ticks;

use super::BenchReport;

/// Schema of the document.
const SCHEMA: &str = "stillwell/bench/v2";

/// One object. Latencies are in nanoseconds from the intended time; `mean`, `stdev` and `max` are null where
/// nothing was timed.
#[must_use]
pub fn bench_json(report: &BenchReport) -> Value {
    let table = report.table();
    let mut all = Map::new();
    all.insert("schema".to_owned(), SCHEMA.into());
    all.extend(latencies(report, &table));
    all.extend(counts(report));
    let about = [
        ("name", json!(report.name)),
        ("target", json!(report.target)),
        ("source", json!(report.source)),
        ("outcome", json!(report.outcome)),
        ("failures", json!(report.failures())),
        ("warnings", json!(report.warnings)),
        ("unstamped", json!(report.unstamped)),
        ("significant_figures", json!(report.significant_figures)),
        ("version", json!(report.version)),
        ("command", json!(report.command)),
        ("capture", json!(report.capture)),
    ];
    all.extend(about.map(|(key, value)| (key.to_owned(), value)));
    Value::Object(all)
}

/// Latencies and volume.
fn latencies(report: &BenchReport, table: &Histogram<u64>) -> Vec<(String, Value)> {
    let known = |value: Value| if table.is_empty() { Value::Null } else { value };
    let count = if report.ledger.is_some() {
        table.len()
    } else {
        report.received.events
    };
    let keys = [
        ("mean", known(json!(table.mean()))),
        ("stdev", known(json!(table.stdev()))),
        ("max", known(json!(table.max()))),
        ("count", json!(count)),
        ("buckets", json!(table.buckets())),
        ("subbuckets", json!(table.distinct_values())),
        ("bytes", json!(report.received.bytes)),
        (
            "throughput",
            json!({
                "events_per_second": report.window.events_per_second(),
                "bytes_per_second": report.window.bytes_per_second(),
            }),
        ),
        ("quantiles", json!(quantile_ticks(table))),
    ];
    keys.map(|(key, value)| (key.to_owned(), value)).to_vec()
}

fn counts(report: &BenchReport) -> Vec<(String, Value)> {
    let window = &report.window;
    let answers = report.answers.map(|answers| {
        json!({
            "acknowledged": answers.acknowledged,
            "refused": answers.refused,
            "unacknowledged": answers.unacknowledged,
            "requests_again": answers.requests_again,
            "at_least_once": answers.at_least_once,
        })
    });
    let transit = (!report.transit.is_empty()).then(|| {
        let of = |share: f64| report.transit.value_at_quantile(share);
        json!({
            "p50": of(0.5), "p90": of(0.9), "p99": of(0.99), "p999": of(0.999),
            "max": report.transit.max(), "mean": report.transit.mean(),
        })
    });
    let keys = [
        ("unit", json!("ns")),
        (
            "min",
            json!((!report.latency.is_empty()).then(|| report.latency.min())),
        ),
        (
            "window",
            json!({
                "seconds": window.length.as_secs_f64(),
                "events": window.volume.events,
                "bytes": window.volume.bytes,
            }),
        ),
        (
            "sent",
            json!({ "events": report.sent.events, "bytes": report.sent.bytes }),
        ),
        (
            "received",
            json!({ "events": report.received.events, "bytes": report.received.bytes }),
        ),
        ("answers", json!(answers)),
        ("from_sent_time", json!(transit)),
        ("ledger", json!(report.ledger)),
    ];
    keys.map(|(key, value)| (key.to_owned(), value)).to_vec()
}
