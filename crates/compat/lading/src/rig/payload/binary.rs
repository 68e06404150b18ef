//! Binary payloads and those of metrics, with lading's spellings of all ages.

use stillwell_config::shared::{PayloadDialect, read_binary_payload};
use stillwell_plan::{DogstatsdPlan, PayloadFormat, TraceAgentPlan, TraceEncoding};
use stillwell_text::{Keys, MapReader, Node, Reader, Span, Value, code};

use super::dogstatsd;

/// Binary payloads and those of metrics that lading has.
pub(super) const BUILT: &[&str] = &[
    "dogstatsd",
    "fluent",
    "opentelemetry_logs",
    "opentelemetry_metrics",
    "opentelemetry_traces",
    "trace_agent",
];

/// Spellings of lading and of its earlier versions.
struct LadingDialect;

impl PayloadDialect for LadingDialect {
    fn dogstatsd_keys(&self) -> Vec<&'static str> {
        dogstatsd::keys()
    }

    fn read_dogstatsd(
        &self,
        reader: &Reader,
        map: &MapReader<'_, '_>,
        plan: &mut DogstatsdPlan,
    ) -> bool {
        dogstatsd::read(reader, map, plan)
    }

    fn remark_on_contexts(&self, reader: &Reader, span: Span, items: &str) {
        let message =
            format!("`total_contexts` counts distinct {items}, in as many resources as they need");
        let note = reader.note(code::MEANING, span, message);
        reader
            .report(note.help("in lading it counts resources, each with scopes and more below it"));
    }
}

/// Reads the options of the payload called `name`.
pub(super) fn read(reader: &Reader, name: &str, options: &Node) -> Option<PayloadFormat> {
    if name == "trace_agent" {
        let none = Node {
            span: options.span,
            value: Value::Map(Vec::new()),
        };
        let options = match options.value {
            Value::Null => &none,
            _ => options,
        };
        return read_trace_agent(reader, options).map(PayloadFormat::TraceAgent);
    }
    read_binary_payload(reader, name, options, &LadingDialect)
}

/// Reads traces for Datadog's agent: options below the version, or only an encoding.
pub(in crate::rig) fn read_trace_agent(reader: &Reader, options: &Node) -> Option<TraceAgentPlan> {
    let encodings = [
        ("msgpack", TraceEncoding::Msgpack),
        ("json", TraceEncoding::Json),
    ];
    let mut plan = TraceAgentPlan::default();
    if let Value::Scalar { text, .. } = &options.value {
        if text != "v0.4" {
            plan.encoding = reader.word(options, "encoding", &encodings)?;
        }
        return Some(plan);
    }
    if options.entries().is_some_and(<[_]>::is_empty) {
        return Some(plan);
    }
    let map = reader.map(
        options,
        &Keys::new("trace_agent payload", &["v0.4"]).known(&["v1"]),
    )?;
    match map.take("v0.4") {
        Some(inner) => stillwell_config::shared::read_trace_agent(reader, inner),
        None => map.key_span("v0.4").map(|_| plan),
    }
}
