//! Keys of binary payloads and those of metrics.

use crate::element::{Element, Field, Shape, TEXTS, optional};

mod dogstatsd;
mod opentelemetry;
mod options;
mod read;
mod topology;

pub use options::range as read_range;
pub use read::{NativeDialect, PayloadDialect, read_binary_payload, read_trace_agent};

const RANGE_ELEMENT: Element = Element::new(
    "range",
    "Values from a minimum to a maximum, both included.",
    &[
        optional("min", Shape::Number, "Minimum."),
        optional("max", Shape::Number, "Maximum."),
        optional("constant", Shape::Number, "One fixed value."),
        optional(
            "inclusive",
            Shape::Element(&ENDS),
            "The same as `min` and `max`.",
        ),
    ],
);

const ENDS: Element = Element::new(
    "range ends",
    "The ends of a range.",
    &[
        optional("min", Shape::Number, "Minimum."),
        optional("max", Shape::Number, "Maximum."),
    ],
);

const RANGE: Shape = Shape::Any(&[
    Shape::Number,
    Shape::Like("5..10"),
    Shape::Element(&RANGE_ELEMENT),
]);

/// Named weights.
const WEIGHTS: Shape = Shape::Map(&Shape::Whole);

const fn range(name: &'static str, about: &'static str) -> Field {
    optional(name, RANGE, about)
}

const VALUE: Element = Element::new(
    "dogstatsd value",
    "The values of metrics.",
    &[
        optional(
            "float_probability",
            Shape::Number,
            "Share of values with decimals.",
        ),
        range("range", "Their range."),
    ],
);

const TIMESTAMP: Element = Element::new(
    "dogstatsd timestamp",
    "Times of metrics.",
    &[
        range("range", "Seconds since 1970."),
        optional(
            "probability",
            Shape::Number,
            "Share of metrics that have one.",
        ),
    ],
);

pub(super) const DOGSTATSD: Element = Element::new(
    "dogstatsd payload",
    "Metrics, events and service checks as DogStatsD reads them.",
    &[
        range(
            "contexts",
            "Distinct contexts of metrics; 5000..10000 by default.",
        ),
        range(
            "service_check_names",
            "Distinct names of service checks and events; 1..10000 by default.",
        ),
        range("name_length", "Characters of a name; 1..200 by default."),
        range("tag_length", "Characters of a tag; 3..100 by default."),
        range("tags_per_msg", "Tags of a message; 2..50 by default."),
        optional(
            "multivalue_pack_probability",
            Shape::Number,
            "Share of metrics with several values; 0.08 by default.",
        ),
        range(
            "multivalue_count",
            "Number of values of a metric that has several; 2..32 by default.",
        ),
        range("sampling_range", "Sampling rates; 0.1..1 by default."),
        optional(
            "sampling_probability",
            Shape::Number,
            "Share of metrics with a sampling rate; 0.5 by default.",
        ),
        optional(
            "kind_weights",
            WEIGHTS,
            "Weights of metrics, events and service checks; 80, 10 and 10 by default.",
        ),
        optional(
            "metric_weights",
            WEIGHTS,
            "Weights of the types of metrics.",
        ),
        optional("value", Shape::Element(&VALUE), "The values of metrics."),
        optional(
            "length_prefix_framed",
            Shape::Boolean,
            "`true`: each block begins with its length.",
        ),
        optional(
            "unique_tag_ratio",
            Shape::Number,
            "Distinct tags as a share of all tags of all contexts; 0.11 by default.",
        ),
        optional(
            "metric_names",
            TEXTS,
            "Names, with ranges such as `{{a-f}}` and `{{0-99}}`.",
        ),
        optional(
            "tag_names",
            TEXTS,
            "Keys of tags, with ranges as in `metric_names`.",
        ),
        optional(
            "tag_values",
            TEXTS,
            "Values of tags, with ranges as in `metric_names`.",
        ),
        optional(
            "container_ids",
            TEXTS,
            "Container IDs that metrics carry; `[]` for none.",
        ),
        optional("external_data", TEXTS, "Values of the external data field."),
        optional("cardinality", TEXTS, "Values of the cardinality field."),
        optional("timestamp", Shape::Element(&TIMESTAMP), "Times of metrics."),
    ],
);

const CONTEXTS: Element = Element::new(
    "opentelemetry contexts",
    "Resources, their scopes, and the records or metrics of scopes.",
    &[
        range(
            "total_contexts",
            "Distinct log records or metrics, not counting times and values; 100 by default.",
        ),
        range(
            "attributes_per_resource",
            "Attributes of each resource; 1..20 by default.",
        ),
        range(
            "scopes_per_resource",
            "Scopes of each resource; 1..20 by default.",
        ),
        range(
            "attributes_per_scope",
            "Attributes of each scope; 0 by default.",
        ),
        range(
            "logs_per_scope",
            "Log records of each scope; 1..20 by default.",
        ),
        range(
            "attributes_per_log",
            "Attributes of each log record; 0..10 by default.",
        ),
        range(
            "metrics_per_scope",
            "Metrics of each scope; 1..20 by default.",
        ),
        range(
            "attributes_per_metric",
            "Attributes of each metric; 0..10 by default.",
        ),
    ],
);

pub(super) const LOGS: Element = Element::new(
    "opentelemetry_logs payload",
    "OpenTelemetry logs in protobuf.",
    &[
        optional("severity_weights", WEIGHTS, "Weights of the severities."),
        optional(
            "contexts",
            Shape::Element(&CONTEXTS),
            "Resources and scopes of the records.",
        ),
        range(
            "trace_cardinality",
            "Traces that records belong to; 0 for none.",
        ),
        range("body_size", "Bytes of a record's text; 1..16 by default."),
    ],
);

pub(super) const METRICS: Element = Element::new(
    "opentelemetry_metrics payload",
    "OpenTelemetry metrics in protobuf.",
    &[
        optional("metric_weights", WEIGHTS, "Weights of the kinds."),
        optional(
            "contexts",
            Shape::Element(&CONTEXTS),
            "Resources and scopes of the metrics.",
        ),
        optional(
            "histogram_count_limits",
            WEIGHTS,
            "Largest counts of a histogram: `bucket`, `zero` and `total`.",
        ),
    ],
);

pub(super) const TRACES: Element = Element::new(
    "opentelemetry_traces payload",
    "OpenTelemetry traces through a simulated system of services.",
    &[
        optional(
            "services",
            Shape::List(&Shape::Element(&SERVICE)),
            "The services; by default those of a small shop.",
        ),
        optional(
            "error_rate",
            Shape::Number,
            "Share of failed spans; 0.01 by default.",
        ),
    ],
);

const ATTRIBUTES: Shape = Shape::List(&Shape::Element(&ATTRIBUTE));

const ATTRIBUTE: Element = Element::new(
    "trace attribute",
    "An attribute.",
    &[
        optional("key", Shape::Text, "Key of the attribute."),
        optional(
            "value",
            Shape::Any(&[Shape::Text, Shape::Number, Shape::Element(&ATTRIBUTE_VALUE)]),
            "Value, or a rule that makes it.",
        ),
    ],
);

const ATTRIBUTE_VALUE: Element = Element::new(
    "trace attribute value",
    "Values of an attribute.",
    &[
        optional("static", Shape::Text, "Always this text."),
        optional("static_int", Shape::Number, "Always this number."),
        optional(
            "random_string",
            Shape::Map(&Shape::Whole),
            "This many letters: `{length: N}`.",
        ),
        optional("random_int", RANGE, "A number."),
        optional(
            "dictionary",
            Shape::Words(DICTIONARIES),
            "A word of a dictionary.",
        ),
        optional("one_of", TEXTS, "One of these texts."),
    ],
)
.one_of(&[
    "static",
    "static_int",
    "random_string",
    "random_int",
    "dictionary",
    "one_of",
]);

const DICTIONARIES: &[&str] = &[
    "http_methods",
    "http_status_codes",
    "grpc_status_codes",
    "cloud_regions",
    "environments",
];

const SERVICE: Element = Element::new(
    "trace service",
    "One service.",
    &[
        optional("name", Shape::Text, "Name of the service."),
        optional(
            "service_type",
            Shape::Words(&["http", "grpc", "database"]),
            "Type of its operations.",
        ),
        optional(
            "grpc",
            Shape::Map(&Shape::Text),
            "`service`: its name in gRPC.",
        ),
        optional(
            "database",
            Shape::Map(&Shape::Text),
            "`system` and `name` of the database.",
        ),
        optional(
            "operations",
            Shape::List(&Shape::Element(&OPERATION)),
            "Its operations.",
        ),
        optional(
            "resource_attributes",
            ATTRIBUTES,
            "Attributes of its resource.",
        ),
        optional("scope_name", Shape::Text, "The scope of its spans."),
        optional(
            "scope_version",
            Shape::Text,
            "The version of that scope; 1.0.0 by default.",
        ),
    ],
);

const OPERATION: Element = Element::new(
    "trace operation",
    "One operation of a service.",
    &[
        optional("id", Shape::Text, "Name that is unique in its service."),
        optional(
            "span_name",
            Shape::Text,
            "Name of its spans, in a service without `service_type`.",
        ),
        optional("method", Shape::Text, "The method, of http and grpc."),
        optional("route", Shape::Text, "The route, of http."),
        optional("table", Shape::Text, "The table, of a database."),
        optional("query", Shape::Text, "The query, of a database."),
        optional(
            "root",
            Shape::Boolean,
            "`true`: traces begin here; by default they begin at operations without a caller.",
        ),
        optional(
            "suboperations",
            Shape::List(&Shape::Element(&CALL)),
            "Calls of the operation, in order.",
        ),
        optional("attributes", ATTRIBUTES, "Attributes of its spans."),
    ],
);

const CALL: Element = Element::new(
    "trace call",
    "One operation calling another.",
    &[
        optional("to", Shape::Like("service/operation"), "Called operation."),
        optional(
            "rate",
            Shape::Number,
            "Probability of the call; 1 by default.",
        ),
        optional(
            "max_repeat",
            Shape::Whole,
            "Maximum number of calls; 1 by default.",
        ),
        optional(
            "attributes",
            ATTRIBUTES,
            "Attributes of the spans of caller and called.",
        ),
    ],
);

pub(super) const TRACE_AGENT: Element = Element::new(
    "trace_agent payload",
    "Traces as Datadog's agent accepts them at `/v0.4/traces`.",
    &[
        optional(
            "encoding",
            Shape::Words(&["msgpack", "json"]),
            "Encoding; msgpack by default.",
        ),
        range(
            "contexts",
            "Distinct services with their operations and resources; 5000..10000 by default.",
        ),
        range("spans_per_trace", "Spans of each trace; 1..50 by default."),
        range("tags_per_span", "Tags of each span; 2..20 by default."),
        range("metrics_per_span", "Metrics of each span; 0..5 by default."),
        optional(
            "error_rate",
            Shape::Number,
            "Share of failed spans; 0.01 by default.",
        ),
        range(
            "service_name_length",
            "Characters of each service name; 0..128 by default.",
        ),
        range(
            "operation_name_length",
            "Characters of each operation name; 0..128 by default.",
        ),
        range(
            "resource_name_length",
            "Characters of each resource name; 0..128 by default.",
        ),
        range(
            "span_type_length",
            "Characters of each span type; 0..128 by default.",
        ),
        range(
            "tag_key_length",
            "Characters of each tag key; 0..128 by default.",
        ),
        range(
            "tag_value_length",
            "Characters of each tag value; 0..128 by default.",
        ),
        range(
            "metric_key_length",
            "Characters of each metric key; 0..128 by default.",
        ),
    ],
);

pub(super) const REMOTE_WRITE: Element = Element::new(
    "remote_write payload",
    "Prometheus remote write, one compressed request per block.",
    &[
        range("series", "Distinct time series; 10000 by default."),
        range(
            "labels_per_series",
            "Labels beside name, job and instance; 1..8 by default.",
        ),
        range(
            "samples_per_request",
            "Samples of each request; 500..2000 by default.",
        ),
        optional(
            "times",
            Shape::Words(&["seed", "now"]),
            "Time of the first samples; from the seed by default.",
        ),
    ],
);

pub(super) const NETFLOW: Element = Element::new(
    "netflow payload",
    "Flow records, one packet per block. Each worker is an exporter.",
    &[
        optional(
            "version",
            Shape::Words(&["5", "v5", "9", "v9", "ipfix"]),
            "The protocol; 5 by default.",
        ),
        range(
            "flows_per_packet",
            "Flows of each packet; 1..30 by default.",
        ),
        optional(
            "exporter",
            Shape::Whole,
            "Number of the first exporter: engine, source or observation domain; 0 by default.",
        ),
        optional(
            "template_every",
            Shape::Whole,
            "Packets from one template to the next; 20 by default.",
        ),
    ],
);

#[cfg(test)]
mod tests {
    use super::dogstatsd::DOGSTATSD_KEYS;
    use super::opentelemetry::{OPENTELEMETRY_LOGS_KEYS, OPENTELEMETRY_METRICS_KEYS};
    use super::read::{NETFLOW_KEYS, REMOTE_WRITE_KEYS, TRACE_AGENT_KEYS};
    use super::topology::OPENTELEMETRY_TRACES_KEYS;
    use super::*;

    #[test]
    fn the_schema_has_the_keys_that_are_read() {
        for (element, keys) in [
            (&DOGSTATSD, DOGSTATSD_KEYS),
            (&LOGS, OPENTELEMETRY_LOGS_KEYS),
            (&METRICS, OPENTELEMETRY_METRICS_KEYS),
            (&TRACES, OPENTELEMETRY_TRACES_KEYS),
            (&TRACE_AGENT, TRACE_AGENT_KEYS),
            (&REMOTE_WRITE, REMOTE_WRITE_KEYS),
            (&NETFLOW, NETFLOW_KEYS),
        ] {
            let names: Vec<&str> = element.fields.iter().map(|field| field.name).collect();
            assert_eq!(names, keys, "{}", element.name);
        }
    }
}
