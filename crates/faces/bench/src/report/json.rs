//! For programs.

use serde_json::{Value, json};
use stillwell_metric::quantile_ticks;

use super::Report;

/// The schema of the document: that of `stillwell bench`.
const SCHEMA: &str = "stillwell/bench/v2";

pub(super) fn json(report: &Report) -> Value {
    let table = &report.latency;
    let known = |value: Value| if table.is_empty() { Value::Null } else { value };
    let transit = (!report.transit.is_empty()).then(|| {
        let of = |share: f64| report.transit.value_at_quantile(share);
        json!({
            "p50": of(0.5), "p90": of(0.9), "p99": of(0.99), "p999": of(0.999),
            "max": report.transit.max(), "mean": report.transit.mean(),
        })
    });
    let answers = report.answers.map(|answers| {
        json!({
            "acknowledged": answers.acknowledged,
            "refused": answers.failed,
            "unacknowledged": answers.unacknowledged,
            "again": answers.again,
        })
    });
    json!({
        "schema": SCHEMA,
        "mean": known(json!(table.mean())),
        "stdev": known(json!(table.stdev())),
        "max": known(json!(table.max())),
        "min": known(json!(table.min())),
        "count": table.len(),
        "buckets": table.buckets(),
        "subbuckets": table.distinct_values(),
        "bytes": report.received.bytes,
        "throughput": {
            "events_per_second": report.events_per_second(),
            "bytes_per_second": report.bytes_per_second(),
        },
        "quantiles": quantile_ticks(table),
        "unit": "ns",
        "window": {
            "seconds": report.length.as_secs_f64(),
            "events": report.measured.events,
            "bytes": report.measured.bytes,
        },
        "sent": { "events": report.sent.events, "bytes": report.sent.bytes },
        "received": { "events": report.received.events, "bytes": report.received.bytes },
        "answers": answers,
        "from_sent_time": transit,
        "ledger": ledger(report),
        "name": report.name,
        "target": "in process",
        "outcome": if report.stopped { "stopped" } else { "completed" },
        "failures": report.failures(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// As a capture has it, for the one source; all counts are exact.
fn ledger(report: &Report) -> Value {
    let exact = |count: u64| json!({ "least": count, "most": count });
    let losses = report.losses.iter().map(|range| {
        let lost = exact(range.end() - range.start() + 1);
        json!({ "first": range.start(), "last": range.end(), "lost": lost })
    });
    json!({
        "generators": [{
            "id": "source",
            "streams": 1,
            "sent": report.sent.events,
            "received": exact(report.arrived),
            "lost": exact(report.lost()),
            "duplicated": exact(report.duplicated),
            "arrivals": report.received.events,
            "reordered": report.reordered,
            "displacement_max": report.displacement_max,
            "losses": losses.collect::<Vec<_>>(),
            "loss_ranges": report.loss_ranges,
        }],
        "foreign": report.foreign,
    })
}
