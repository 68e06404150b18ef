//! `payload` of a generator.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{CefHeader, GelfEnd, HecEncoding};
use stillwell_text::{Node, Value};

use super::ReadContext;
use crate::element::{Element, Shape, optional};

mod binary;
mod json_template;
mod template;
mod text;

pub use binary::{
    NativeDialect, PayloadDialect, read_binary_payload, read_range, read_trace_agent,
};
pub use json_template::read_template;
pub use text::read_pattern;

/// Formats that need no options.
const WORDS: &[&str] = &[
    "ascii",
    "json",
    "syslog5424",
    "syslog3164",
    "apache_common",
    "datadog_log",
    "splunk_hec",
    "loki",
    "elasticsearch",
    "influx",
    "gelf",
    "cef",
    "dogstatsd",
    "fluent",
    "opentelemetry_logs",
    "opentelemetry_metrics",
    "opentelemetry_traces",
    "trace_agent",
    "remote_write",
    "netflow",
];

/// Formats with options.
const KINDS: &[&str] = &[
    "lines",
    "splunk_hec",
    "loki",
    "elasticsearch",
    "influx",
    "gelf",
    "cef",
    "static",
    "static_chunks",
    "static_timestamped",
    "templated_json",
    "template",
    "dogstatsd",
    "opentelemetry_logs",
    "opentelemetry_metrics",
    "opentelemetry_traces",
    "trace_agent",
    "remote_write",
    "netflow",
];

/// Formats whose options are read in `binary`.
const BINARY: &[&str] = &[
    "dogstatsd",
    "fluent",
    "opentelemetry_logs",
    "opentelemetry_metrics",
    "opentelemetry_traces",
    "trace_agent",
    "remote_write",
    "netflow",
];

const PAYLOAD: Element = Element::new(
    "payload",
    "Format of the events.",
    &[
        optional(
            "lines",
            text::LINES_SHAPE,
            "The lines of a file, in order, over and over.",
        ),
        optional(
            "splunk_hec",
            text::SPLUNK_HEC_SHAPE,
            "Events for Splunk's HTTP event collector.",
        ),
        optional("loki", text::LOKI_SHAPE, "Loki's push API, as JSON."),
        optional(
            "elasticsearch",
            text::ELASTICSEARCH_SHAPE,
            "Elasticsearch's bulk API.",
        ),
        optional("influx", text::INFLUX_SHAPE, "InfluxDB's line protocol."),
        optional("gelf", text::GELF_SHAPE, "Graylog's JSON messages."),
        optional("cef", text::CEF_SHAPE, "ArcSight's common event format."),
        optional(
            "static",
            text::FILES_SHAPE,
            "Whole files, each a block, over and over.",
        ),
        optional(
            "static_chunks",
            text::FILES_SHAPE,
            "Lines of files, as many in a block as fit.",
        ),
        optional(
            "static_timestamped",
            text::TIMESTAMPED_SHAPE,
            "The lines of a log; the lines of each second are a block.",
        ),
        optional(
            "templated_json",
            text::LINES_SHAPE,
            "JSON made from a template of generators.",
        ),
        optional("template", template::SHAPE, "Text made from a template."),
        optional(
            "dogstatsd",
            Shape::Element(&binary::DOGSTATSD),
            "DogStatsD's metrics, events and service checks.",
        ),
        optional(
            "opentelemetry_logs",
            Shape::Element(&binary::LOGS),
            "OpenTelemetry logs.",
        ),
        optional(
            "opentelemetry_metrics",
            Shape::Element(&binary::METRICS),
            "OpenTelemetry metrics.",
        ),
        optional(
            "opentelemetry_traces",
            Shape::Element(&binary::TRACES),
            "OpenTelemetry traces.",
        ),
        optional(
            "trace_agent",
            Shape::Element(&binary::TRACE_AGENT),
            "Traces for Datadog's agent.",
        ),
        optional(
            "remote_write",
            Shape::Element(&binary::REMOTE_WRITE),
            "Prometheus remote write.",
        ),
        optional(
            "netflow",
            Shape::Element(&binary::NETFLOW),
            "NetFlow and IPFIX.",
        ),
    ],
)
.one_of(KINDS);

/// The format of events.
pub(super) const SHAPE: Shape = Shape::Any(&[Shape::Words(WORDS), Shape::Element(&PAYLOAD)]);

pub(super) fn read_payload(context: &ReadContext<'_>, node: &Node) -> Option<PayloadFormat> {
    if let Value::Scalar { text, .. } = &node.value {
        if BINARY.contains(&text.as_str()) {
            let none = Node {
                span: node.span,
                value: Value::Null,
            };
            return read_binary_payload(context.reader, text, &none, &NativeDialect);
        }
        let format = plain(text);
        if format.is_none() {
            let words = WORDS.iter().copied().chain(["{lines: {path: FILE}}"]);
            let words = words.chain(KINDS.iter().copied().filter(|kind| !WORDS.contains(kind)));
            context
                .reader
                .unknown_word(node.span, "payload", text, words);
        }
        return format;
    }
    let (kind, options) = context.reader.map(node, &PAYLOAD.keys())?.one_of(KINDS)?;
    match kind {
        _ if BINARY.contains(&kind) => {
            read_binary_payload(context.reader, kind, options, &NativeDialect)
        }
        "template" => template::read(context, options).map(PayloadFormat::Template),
        _ => text::read(context, kind, options),
    }
}

/// The format called `name` without options.
fn plain(name: &str) -> Option<PayloadFormat> {
    Some(match name {
        "ascii" => PayloadFormat::Ascii,
        "json" => PayloadFormat::Json,
        "syslog5424" => PayloadFormat::Syslog5424,
        "syslog3164" => PayloadFormat::Syslog3164,
        "apache_common" => PayloadFormat::ApacheCommon,
        "datadog_log" => PayloadFormat::DatadogLog,
        "splunk_hec" => PayloadFormat::SplunkHec {
            encoding: HecEncoding::default(),
        },
        "loki" => PayloadFormat::Loki(stillwell_plan::payload::LokiPlan::default()),
        "elasticsearch" => {
            PayloadFormat::Elasticsearch(stillwell_plan::payload::ElasticsearchPlan::default())
        }
        "influx" => PayloadFormat::Influx(stillwell_plan::payload::InfluxPlan::default()),
        "gelf" => PayloadFormat::Gelf {
            end: GelfEnd::default(),
        },
        "cef" => PayloadFormat::Cef {
            header: CefHeader::default(),
        },
        _ => return None,
    })
}
