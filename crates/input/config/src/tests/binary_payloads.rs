//! Binary payloads and those of metrics, with all their keys.

use super::experiment;
use super::golden::LEAST;

/// Each with all its keys, those of ranges among them.
pub(super) const NATIVE: [&str; 12] = [
    "dogstatsd",
    "{dogstatsd: {contexts: {min: 5, max: 6}, service_check_names: {constant: 3}, \
     name_length: {inclusive: {min: 8, max: 9}}, tag_length: 5..9, tags_per_msg: 3, \
     multivalue_pack_probability: 0.1, multivalue_count: 2..3, sampling_range: 0.1..0.5, \
     sampling_probability: 0.2, kind_weights: {metric: 1, event: 0, service_check: 0}, \
     metric_weights: {count: 1, gauge: 0, timer: 0, distribution: 0, set: 0, histogram: 0}, \
     value: {float_probability: 0.1, range: -5..5}, length_prefix_framed: true, \
     unique_tag_ratio: 0.3, metric_names: [a], tag_names: [b], tag_values: ['{{0-99}}'], \
     container_ids: [c], external_data: [d], cardinality: [low], \
     timestamp: {range: 1..2, probability: 0.5}}}",
    "{opentelemetry_logs: {severity_weights: {info: 3}, trace_cardinality: 5, body_size: 9, \
     contexts: {total_contexts: 9, attributes_per_resource: 1, scopes_per_resource: 2, \
     attributes_per_scope: 1, logs_per_scope: 3, attributes_per_log: 1..2}}}",
    "{opentelemetry_metrics: {metric_weights: {summary: 0}, \
     contexts: {metrics_per_scope: 3, attributes_per_metric: 1..2}, \
     histogram_count_limits: {bucket: 9, zero: 3, total: 99}}}",
    "{opentelemetry_traces: {error_rate: 0.5, services: [\
     {name: a, service_type: http, scope_name: s, scope_version: '2', \
     resource_attributes: [{key: k, value: {static: v}}, {key: l, value: {static_int: 3}}], \
     operations: [{id: x, method: GET, route: /x, root: true, \
     attributes: [{key: m, value: {random_string: {length: 3}}}, \
     {key: n, value: {random_int: {min: 1, max: 2}}}, {key: o, value: {dictionary: http_methods}}, \
     {key: p, value: {one_of: [q, r]}}], \
     suboperations: [{to: b/y, rate: 0.5, max_repeat: 2, attributes: []}, {to: c/z}, {to: d/w}]}]}, \
     {name: b, service_type: grpc, grpc: {service: B}, operations: [{id: y, method: Y}]}, \
     {name: c, service_type: database, database: {system: s, name: n}, \
     operations: [{id: z, query: SELECT, table: t}]}, \
     {name: d, operations: [{id: w, span_name: work}]}]}}",
    "opentelemetry_traces",
    "{trace_agent: {encoding: json, contexts: 5, spans_per_trace: 1..3, tags_per_span: 1, \
     metrics_per_span: 1, error_rate: 0.1, service_name_length: 5, operation_name_length: 5, \
     resource_name_length: 5, span_type_length: 5, tag_key_length: 5, tag_value_length: 5, \
     metric_key_length: 5}}",
    "trace_agent",
    "fluent",
    "{remote_write: {series: 9, labels_per_series: 1, samples_per_request: 3..5, times: now}}",
    "{netflow: {version: ipfix, flows_per_packet: 1..9, exporter: 3, template_every: 5}}",
    "netflow",
];

#[test]
fn every_key_of_every_payload_is_read() {
    for payload in NATIVE {
        let text = LEAST.replace("payload: ascii", &format!("payload: {payload}"));
        let loaded = experiment(&text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
        assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
        let generator = &loaded.plan.experiments[0].run_plan.generators[0];
        let name = payload.trim_start_matches('{');
        assert!(
            name.starts_with(generator.payload.format.name()),
            "{payload}"
        );
    }
}
