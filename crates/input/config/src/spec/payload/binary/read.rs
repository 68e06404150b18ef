//! Binary payloads and those of metrics, with options.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{
    DogstatsdPlan, EventTimes, NetflowPlan, NetflowVersion, REMOTE_WRITE_SERIES_MAX,
    RemoteWritePlan, TRACE_AGENT_CONTEXTS_MAX, TraceAgentPlan, TraceEncoding,
};
use stillwell_text::{Keys, MapReader, Node, Reader, Span, Value, code};

use super::options::{range, set, share};
use super::{dogstatsd, opentelemetry, topology};

/// Keys of `trace_agent`.
pub(super) const TRACE_AGENT_KEYS: &[&str] = &[
    "encoding",
    "contexts",
    "spans_per_trace",
    "tags_per_span",
    "metrics_per_span",
    "error_rate",
    "service_name_length",
    "operation_name_length",
    "resource_name_length",
    "span_type_length",
    "tag_key_length",
    "tag_value_length",
    "metric_key_length",
];

/// Keys of `remote_write`.
pub(super) const REMOTE_WRITE_KEYS: &[&str] = &[
    "series",
    "labels_per_series",
    "samples_per_request",
    "times",
];

/// Keys of `netflow`.
pub(super) const NETFLOW_KEYS: &[&str] =
    &["version", "flows_per_packet", "exporter", "template_every"];

/// Spellings of another format, accepted besides the native ones.
pub trait PayloadDialect {
    /// Further keys of `dogstatsd`.
    fn dogstatsd_keys(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Reads the further keys of `dogstatsd` into `plan`; false where there is something
    /// wrong with them, which is then reported.
    fn read_dogstatsd(
        &self,
        _reader: &Reader,
        _map: &MapReader<'_, '_>,
        _plan: &mut DogstatsdPlan,
    ) -> bool {
        true
    }

    /// Remarks on `total_contexts` at `span`, which counts distinct `items`.
    fn remark_on_contexts(&self, _reader: &Reader, _span: Span, _items: &str) {}
}

/// The native spellings alone.
#[derive(Clone, Copy, Debug)]
pub struct NativeDialect;

impl PayloadDialect for NativeDialect {}

/// Reads the options of the binary or metric payload called `name`; none where
/// it is not one of these or something is wrong, which is then reported.
#[must_use]
pub fn read_binary_payload(
    reader: &Reader,
    name: &str,
    options: &Node,
    dialect: &dyn PayloadDialect,
) -> Option<PayloadFormat> {
    let none = Node {
        span: options.span,
        value: Value::Map(Vec::new()),
    };
    let options = match options.value {
        Value::Null => &none,
        _ => options,
    };
    match name {
        "dogstatsd" => dogstatsd::read(reader, options, dialect)
            .map(|plan| PayloadFormat::Dogstatsd(Box::new(plan))),
        "fluent" => {
            reader.map(options, &Keys::new("payload without options", &[]))?;
            Some(PayloadFormat::Fluent)
        }
        "opentelemetry_logs" => {
            opentelemetry::read_logs(reader, options, dialect).map(PayloadFormat::OpentelemetryLogs)
        }
        "opentelemetry_metrics" => opentelemetry::read_metrics(reader, options, dialect)
            .map(PayloadFormat::OpentelemetryMetrics),
        "opentelemetry_traces" => topology::read(reader, options)
            .map(|plan| PayloadFormat::OpentelemetryTraces(Box::new(plan))),
        "trace_agent" => read_trace_agent(reader, options).map(PayloadFormat::TraceAgent),
        "remote_write" => read_remote_write(reader, options).map(PayloadFormat::RemoteWrite),
        "netflow" => read_netflow(reader, options).map(PayloadFormat::Netflow),
        _ => None,
    }
}

/// Reads the options of traces for Datadog's agent.
#[must_use]
pub fn read_trace_agent(reader: &Reader, options: &Node) -> Option<TraceAgentPlan> {
    let mut plan = TraceAgentPlan::default();
    let encodings = [
        ("msgpack", TraceEncoding::Msgpack),
        ("json", TraceEncoding::Json),
    ];
    let map = reader.map(options, &Keys::new("trace_agent payload", TRACE_AGENT_KEYS))?;
    let mut is_fine = set(&map, "encoding", &mut plan.encoding, |node| {
        reader.word(node, "encoding", &encodings)
    });
    is_fine &= set(&map, "contexts", &mut plan.contexts, |node| {
        range(reader, node, 1, TRACE_AGENT_CONTEXTS_MAX)
    });
    is_fine &= set(&map, "error_rate", &mut plan.error_rate, |node| {
        share(reader, node)
    });
    let ranges = [
        ("spans_per_trace", &mut plan.spans_per_trace, 1),
        ("tags_per_span", &mut plan.tags_per_span, 0),
        ("metrics_per_span", &mut plan.metrics_per_span, 0),
        ("service_name_length", &mut plan.service_name_length, 0),
        ("operation_name_length", &mut plan.operation_name_length, 0),
        ("resource_name_length", &mut plan.resource_name_length, 0),
        ("span_type_length", &mut plan.span_type_length, 0),
        ("tag_key_length", &mut plan.tag_key_length, 0),
        ("tag_value_length", &mut plan.tag_value_length, 0),
        ("metric_key_length", &mut plan.metric_key_length, 0),
    ];
    for (key, place, minimum) in ranges {
        is_fine &= set(&map, key, place, |node| {
            range(reader, node, minimum, u8::MAX)
        });
    }
    is_fine &= has_enough_names(reader, &map, &plan);
    is_fine.then_some(plan)
}

/// Returns true if names of these lengths give enough different contexts.
fn has_enough_names(reader: &Reader, map: &MapReader<'_, '_>, plan: &TraceAgentPlan) -> bool {
    let most = plan.contexts_possible();
    if u64::from(plan.contexts.high) <= most {
        return true;
    }
    let span = map.key_span("contexts").unwrap_or_else(|| map.span());
    let message = format!(
        "names of these lengths give fewer than {} different contexts",
        plan.contexts.high
    );
    let error = reader.error(code::OUT_OF_RANGE, span, message);
    reader.report(error.label(format!("at most {most} here")));
    false
}

fn read_remote_write(reader: &Reader, options: &Node) -> Option<RemoteWritePlan> {
    let map = reader.map(
        options,
        &Keys::new("remote_write payload", REMOTE_WRITE_KEYS),
    )?;
    let mut plan = RemoteWritePlan::default();
    let series = set(&map, "series", &mut plan.series, |node| {
        range(reader, node, 1, REMOTE_WRITE_SERIES_MAX)
    });
    let labels = set(
        &map,
        "labels_per_series",
        &mut plan.labels_per_series,
        |node| range(reader, node, 0, u8::MAX),
    );
    let samples = set(
        &map,
        "samples_per_request",
        &mut plan.samples_per_request,
        |node| range(reader, node, 1, u32::MAX),
    );
    let words = [("seed", EventTimes::Seed), ("now", EventTimes::Now)];
    let times = set(&map, "times", &mut plan.times, |node| {
        reader.word(node, "time", &words)
    });
    (series && labels && samples && times).then_some(plan)
}

fn read_netflow(reader: &Reader, options: &Node) -> Option<NetflowPlan> {
    let versions = [
        ("5", NetflowVersion::V5),
        ("v5", NetflowVersion::V5),
        ("9", NetflowVersion::V9),
        ("v9", NetflowVersion::V9),
        ("ipfix", NetflowVersion::Ipfix),
    ];
    let map = reader.map(options, &Keys::new("netflow payload", NETFLOW_KEYS))?;
    let mut plan = NetflowPlan::default();
    let mut is_fine = set(&map, "version", &mut plan.version, |node| {
        reader.word(node, "version", &versions)
    });
    let most = if plan.version == NetflowVersion::V5 {
        30
    } else {
        u8::MAX
    };
    is_fine &= set(
        &map,
        "flows_per_packet",
        &mut plan.flows_per_packet,
        |node| range(reader, node, 1, most),
    );
    is_fine &= set(&map, "exporter", &mut plan.exporter, |node| {
        reader.whole(node, 0, u8::MAX)
    });
    is_fine &= set(&map, "template_every", &mut plan.template_every, |node| {
        reader.whole(node, 1, u16::MAX)
    });
    is_fine.then_some(plan)
}
