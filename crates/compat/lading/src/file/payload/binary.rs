//! Binary payloads and those of metrics, with lading's spellings of all ages.

use stillwell_config::shared::{PayloadDialect, read_binary_payload};
use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{DogstatsdPlan, TraceAgentPlan, TraceEncoding};
use stillwell_text::{Entry, Key, Keys, MapReader, Node, Reader, Span, Value, code};

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
    let divided = (name == "opentelemetry_metrics").then(|| divide_sums(reader, options));
    let options = divided.flatten().unwrap_or_else(|| options.clone());
    read_binary_payload(reader, name, &options, &LadingDialect)
}

/// Returns `options` with the weight `sum`, which was one until 2025, divided among both of its
/// kinds; the kinds that were not there yet have the weight 0.
fn divide_sums(reader: &Reader, options: &Node) -> Option<Node> {
    let sum = options.entry("metric_weights")?.entry("sum")?;
    let weight = reader.whole(sum, 0, u8::MAX)?;
    let message = "`sum` is read as half `sum_delta` and half `sum_cumulative`";
    reader.report(reader.warning(code::OLD_SPELLING, sum.span, message));
    let gauge = options.entry("metric_weights")?.entry("gauge");
    let gauge = gauge.map_or(Some(0), |node| reader.whole(node, 0, u8::MAX))?;
    let weights = [
        ("gauge", u16::from(gauge) * 2),
        ("sum_delta", u16::from(weight)),
        ("sum_cumulative", u16::from(weight)),
        ("histogram_delta", 0),
        ("histogram_cumulative", 0),
        ("exp_histogram_delta", 0),
        ("exp_histogram_cumulative", 0),
        ("summary", 0),
    ];
    let largest = weights.iter().map(|(_, weight)| *weight).max()?;
    // Weights are at most 255.
    let divisor = if largest > u16::from(u8::MAX) { 2 } else { 1 };
    let mut options = options.clone();
    let Value::Map(entries) = &mut options.value else {
        return None;
    };
    let entry = entries
        .iter_mut()
        .find(|entry| entry.key.text == "metric_weights")?;
    let place = entry.key.clone();
    entry.value.value = Value::Map(
        weights
            .map(|(kind, weight)| Entry {
                key: Key {
                    text: kind.to_owned(),
                    ..place.clone()
                },
                value: Node {
                    span: sum.span,
                    value: Value::Scalar {
                        text: weight.div_ceil(divisor).to_string(),
                        quoted: false,
                    },
                },
            })
            .to_vec(),
    );
    Some(options)
}

/// Reads traces for Datadog's agent: options below the version, or only an encoding.
pub(in crate::file) fn read_trace_agent(reader: &Reader, options: &Node) -> Option<TraceAgentPlan> {
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
