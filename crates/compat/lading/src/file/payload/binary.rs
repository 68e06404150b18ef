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
    let divided = (name == "opentelemetry_metrics").then(|| with_older_weights(reader, options));
    let options = divided.flatten().unwrap_or_else(|| options.clone());
    read_binary_payload(reader, name, &options, &LadingDialect)
}

/// Kinds of metrics until lading 0.31, with the weight of one that is not named.
const FIRST_KINDS: [(&str, u8); 3] = [("gauge", 50), ("sum_delta", 25), ("sum_cumulative", 25)];

/// Further kinds of metrics since then.
const LATER_KINDS: [&str; 5] = [
    "histogram_delta",
    "histogram_cumulative",
    "exp_histogram_delta",
    "exp_histogram_cumulative",
    "summary",
];

/// Returns `options` with the weights of an older file: kinds that were not there yet have the weight 0. The
/// weight `sum`, which was one until 2025, is divided among both of its kinds.
fn with_older_weights(reader: &Reader, options: &Node) -> Option<Node> {
    let weights = options.entry("metric_weights")?;
    let named = |kind: &str| weights.entry(kind);
    if let Some(sum) = named("sum") {
        let weight = reader.whole(sum, 0, u8::MAX)?;
        let message = "`sum` is read as half `sum_delta` and half `sum_cumulative`";
        reader.report(reader.warning(code::OLD_SPELLING, sum.span, message));
        let gauge = named("gauge").map_or(Some(0), |node| reader.whole(node, 0, u8::MAX))?;
        let (gauge, weight) = (u16::from(gauge) * 2, u16::from(weight));
        return with_weights(options, sum.span, [gauge, weight, weight]);
    }
    let entries = weights.entries()?;
    let is_first = |entry: &Entry| FIRST_KINDS.iter().any(|(kind, _)| *kind == entry.key.text);
    if entries.is_empty() || !entries.iter().all(is_first) {
        return None;
    }
    let first = FIRST_KINDS.map(|(kind, usual)| match named(kind) {
        Some(node) => reader.text(node).and_then(|text| text.parse::<u8>().ok()),
        None => Some(usual),
    });
    let [Some(gauge), Some(delta), Some(cumulative)] = first else {
        return None;
    };
    let first = [gauge, delta, cumulative];
    if !first.contains(&0) {
        let message = "kinds of metrics that are not named have their default weights";
        let note = reader.note(code::MEANING, weights.span, message);
        reader
            .report(note.help("until lading 0.31 there were no other kinds than gauges and sums"));
        return None;
    }
    // With all kinds, lading refuses a weight of 0.
    let message = "these weights are read as those of gauges and sums alone, as until lading 0.31";
    reader.report(reader.warning(code::OLD_SPELLING, weights.span, message));
    with_weights(options, weights.span, first.map(u16::from))
}

/// Returns `options` with these weights of gauges and of both kinds of sums, and none of other kinds.
fn with_weights(options: &Node, span: Span, first: [u16; 3]) -> Option<Node> {
    let first = FIRST_KINDS.into_iter().map(|(kind, _)| kind).zip(first);
    let later = LATER_KINDS.into_iter().map(|kind| (kind, 0));
    let weights: Vec<(&str, u16)> = first.chain(later).collect();
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
            .into_iter()
            .map(|(kind, weight)| Entry {
                key: Key {
                    text: kind.to_owned(),
                    ..place.clone()
                },
                value: Node {
                    span,
                    value: Value::Scalar {
                        text: weight.div_ceil(divisor).to_string(),
                        quoted: false,
                    },
                },
            })
            .collect(),
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
        &Keys::new("trace_agent payload", &["v0.4"]).known(&["v1", "v1.0"]),
    )?;
    match map.take("v0.4") {
        Some(inner) => stillwell_config::shared::read_trace_agent(reader, inner),
        None => map.key_span("v0.4").map(|_| plan),
    }
}
