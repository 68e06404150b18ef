//! Counters by Nighthawk's names, most of which are Envoy's.

use std::collections::BTreeMap;

use stillwell_capture::{LoadEnd, TelemetryResult};
use stillwell_metric::{CounterFacts, LoadCounts};

use super::LoadReportInput;

/// Names of counters of exported spans, after the name of the receiver.
pub const SPAN_COUNTERS: [&str; 4] = [
    "spans_sent",
    "spans_dropped",
    "reports_sent",
    "reports_dropped",
];

/// Returns the counts of a worker in the measured time, without zeros.
pub(super) fn of(input: &LoadReportInput<'_>, counts: &LoadCounts) -> BTreeMap<String, u64> {
    counts.printed(&CounterFacts {
        was_stopped: matches!(input.capture.manifest.end, LoadEnd::Interrupted(_)),
        ..input.plan().counter_facts()
    })
}

/// Returns counters of exported spans, by Nighthawk's names where it has any; zeros are
/// left out.
#[must_use]
pub fn span_counters(telemetry: &TelemetryResult) -> Vec<(String, u64)> {
    let Some(spans) = &telemetry.spans else {
        return Vec::new();
    };
    let kind = if spans.name.starts_with("zipkin") {
        "zipkin"
    } else {
        "otlp"
    };
    // In the order of the names. Envoy counts what it has passed to reports, delivered or not.
    let values = [
        spans.sampled.saturating_sub(spans.dropped),
        spans.dropped,
        spans.batches - spans.batches_failed,
        spans.batches_failed,
    ];
    let all = SPAN_COUNTERS.into_iter().zip(values);
    let all = all.filter(|(_, value)| *value > 0);
    all.map(|(name, value)| (format!("tracing.{kind}.{name}"), value))
        .collect()
}
