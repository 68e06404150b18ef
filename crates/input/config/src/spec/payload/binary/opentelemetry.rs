//! Options of `opentelemetry_logs` and `opentelemetry_metrics`.

use stillwell_plan::payload::{OTLP_CONTEXTS_MAX, OtlpContexts, OtlpLogsPlan, OtlpMetricsPlan};

use super::PayloadDialect;
use super::options::{range, set, weights};
use stillwell_text::{Keys, Node, Reader};

/// Keys of `opentelemetry_logs`.
pub(super) const OPENTELEMETRY_LOGS_KEYS: &[&str] = &[
    "severity_weights",
    "contexts",
    "trace_cardinality",
    "body_size",
];

/// Keys of `opentelemetry_metrics`.
pub(super) const OPENTELEMETRY_METRICS_KEYS: &[&str] =
    &["metric_weights", "contexts", "histogram_count_limits"];

/// Names of the keys of contexts: items of a scope, and attributes of an item.
const LOG_KEYS: [&str; 2] = ["logs_per_scope", "attributes_per_log"];
const METRIC_KEYS: [&str; 2] = ["metrics_per_scope", "attributes_per_metric"];

pub(super) fn read_logs(
    reader: &Reader,
    node: &Node,
    dialect: &dyn PayloadDialect,
) -> Option<OtlpLogsPlan> {
    let keys = Keys::new("opentelemetry_logs payload", OPENTELEMETRY_LOGS_KEYS);
    let map = reader.map(node, &keys)?;
    let mut plan = OtlpLogsPlan::default();
    let contexts = set(&map, "contexts", &mut plan.contexts, |node| {
        read_contexts(reader, node, LOG_KEYS, dialect)
    });
    let traces = set(
        &map,
        "trace_cardinality",
        &mut plan.trace_cardinality,
        |node| range(reader, node, 0, u32::MAX),
    );
    let bodies = set(&map, "body_size", &mut plan.body_size, |node| {
        range(reader, node, 0, u16::MAX)
    });
    let severities = &mut plan.severity_weights;
    let severities = map.take("severity_weights").is_none_or(|node| {
        let places = &mut [
            ("trace", &mut severities.trace),
            ("debug", &mut severities.debug),
            ("info", &mut severities.info),
            ("warn", &mut severities.warn),
            ("error", &mut severities.error),
            ("fatal", &mut severities.fatal),
        ];
        weights(reader, node, "severity_weights", false, places)
    });
    (contexts && traces && bodies && severities).then_some(plan)
}

pub(super) fn read_metrics(
    reader: &Reader,
    node: &Node,
    dialect: &dyn PayloadDialect,
) -> Option<OtlpMetricsPlan> {
    let keys = Keys::new("opentelemetry_metrics payload", OPENTELEMETRY_METRICS_KEYS);
    let map = reader.map(node, &keys)?;
    let mut plan = OtlpMetricsPlan::default();
    let contexts = set(&map, "contexts", &mut plan.contexts, |node| {
        read_contexts(reader, node, METRIC_KEYS, dialect)
    });
    let kinds = &mut plan.metric_weights;
    let kinds = map.take("metric_weights").is_none_or(|node| {
        let places = &mut [
            ("gauge", &mut kinds.gauge),
            ("sum_delta", &mut kinds.sum_delta),
            ("sum_cumulative", &mut kinds.sum_cumulative),
            ("histogram_delta", &mut kinds.histogram_delta),
            ("histogram_cumulative", &mut kinds.histogram_cumulative),
            ("exp_histogram_delta", &mut kinds.exp_histogram_delta),
            (
                "exp_histogram_cumulative",
                &mut kinds.exp_histogram_cumulative,
            ),
            ("summary", &mut kinds.summary),
        ];
        weights(reader, node, "metric_weights", false, places)
    });
    let limits = map.take("histogram_count_limits").is_none_or(|node| {
        let keys = Keys::new("histogram_count_limits", &["bucket", "zero", "total"]);
        let Some(map) = reader.map(node, &keys) else {
            return false;
        };
        let most = i64::MAX.cast_unsigned();
        let limits = &mut plan.histogram_count_limits;
        let bucket = set(&map, "bucket", &mut limits.bucket, |node| {
            reader.whole(node, 0, most)
        });
        let zero = set(&map, "zero", &mut limits.zero, |node| {
            reader.whole(node, 0, most)
        });
        let total = set(&map, "total", &mut limits.total, |node| {
            reader.whole(node, 0, most)
        });
        bucket && zero && total
    });
    (contexts && kinds && limits).then_some(plan)
}

fn read_contexts(
    reader: &Reader,
    node: &Node,
    [items, attributes]: [&'static str; 2],
    dialect: &dyn PayloadDialect,
) -> Option<OtlpContexts> {
    let keys = [
        "total_contexts",
        "attributes_per_resource",
        "scopes_per_resource",
        "attributes_per_scope",
        items,
        attributes,
    ];
    let map = reader.map(node, &Keys::new("contexts", &keys))?;
    let mut plan = OtlpContexts::default();
    if let Some(span) = map.key_span("total_contexts") {
        dialect.remark_on_contexts(reader, span, items.trim_end_matches("_per_scope"));
    }
    let mut is_fine = set(&map, "total_contexts", &mut plan.contexts, |node| {
        range(reader, node, 1, OTLP_CONTEXTS_MAX)
    });
    let counts = [
        (
            "attributes_per_resource",
            &mut plan.attributes_per_resource,
            0,
        ),
        ("scopes_per_resource", &mut plan.scopes_per_resource, 1),
        ("attributes_per_scope", &mut plan.attributes_per_scope, 0),
        (items, &mut plan.items_per_scope, 1),
        (attributes, &mut plan.attributes_per_item, 0),
    ];
    for (key, place, minimum) in counts {
        is_fine &= set(&map, key, place, |node| {
            range(reader, node, minimum, u8::MAX)
        });
    }
    is_fine.then_some(plan)
}
