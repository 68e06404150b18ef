//! Payloads as lading spells them.

use stillwell_config::shared::check_cache_size;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::ByteSize;

use super::size::{read_size, read_size_of_old};
use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};

mod binary;
mod dogstatsd;
mod text;

#[cfg(test)]
mod tests;

pub(super) use binary::read_trace_agent;
pub(crate) use dogstatsd::OldRange;
pub(super) use text::read_encoding;

/// Formats without options.
const PLAIN: [(&str, PayloadFormat); 5] = [
    ("ascii", PayloadFormat::Ascii),
    ("json", PayloadFormat::Json),
    ("apache_common", PayloadFormat::ApacheCommon),
    ("syslog5424", PayloadFormat::Syslog5424),
    ("datadog_log", PayloadFormat::DatadogLog),
];

/// All that are built.
const BUILT: &[&str] = &[
    "ascii",
    "json",
    "apache_common",
    "syslog5424",
    "datadog_log",
    "splunk_hec",
    "static",
    "static_chunks",
    "static_timestamped",
    "templated_json",
    "dogstatsd",
    "fluent",
    "opentelemetry_logs",
    "opentelemetry_metrics",
    "opentelemetry_traces",
    "trace_agent",
];

/// Keys of payloads, for generators with their own keys.
pub(super) const KEYS: &[&str] = &[
    "variant",
    "maximum_prebuild_cache_size_bytes",
    "block_cache_method",
];

/// The same for generators that define the content.
pub(super) const CACHE_KEYS: &[&str] = &["maximum_prebuild_cache_size_bytes", "block_cache_method"];

/// Keys about blocks, which stay with the generator.
pub(super) const BLOCK_KEYS: &[&str] = &["maximum_block_size", "block_sizes"];

/// The payload that `content` describes, in blocks of at most `maximum`.
pub(super) fn read(
    reader: &Reader,
    content: &MapReader<'_, '_>,
    maximum: Option<ByteSize>,
) -> Option<PayloadPlan> {
    let format = content
        .required("variant")
        .and_then(|node| read_format(reader, node));
    read_as(reader, content, format, maximum)
}

/// The same for a known format.
pub(super) fn read_as(
    reader: &Reader,
    content: &MapReader<'_, '_>,
    format: Option<PayloadFormat>,
    maximum: Option<ByteSize>,
) -> Option<PayloadPlan> {
    if let Some(method) = content.take("block_cache_method") {
        read_cache_method(reader, method);
    }
    let cache = content
        .required("maximum_prebuild_cache_size_bytes")
        .and_then(|node| {
            let cache = read_size(reader, node)?;
            check_cache_size(reader, node, cache);
            Some(cache)
        });
    Some(PayloadPlan {
        format: format?,
        blocks: BlockShape::UpTo { maximum: maximum? },
        cache: cache?,
        // lading builds its blocks once.
        repeats: true,
    })
}

/// Reports a largest block that `map` sets and that its cache does not hold.
pub(super) fn check_block(reader: &Reader, map: &MapReader<'_, '_>, payload: &PayloadPlan) {
    let (largest, cache) = (payload.blocks.maximum(), payload.cache);
    if let Some(span) = map.key_span("maximum_block_size")
        && largest > cache
    {
        let message = format!("a block of {largest} does not fit in a cache of {cache}");
        reader.report(reader.error(code::BLOCK_TOO_LARGE, span, message));
    }
}

fn read_format(reader: &Reader, node: &Node) -> Option<PayloadFormat> {
    if let Value::Scalar { text, .. } = &node.value {
        let today = today_name(text);
        if let Some(today) = today {
            let message = format!("`{text}` was renamed to `{today}`");
            let warning = reader.warning(code::OLD_SPELLING, node.span, message);
            reader.report(warning.label("an outdated name"));
        }
        let wanted = today.unwrap_or(text);
        let Some(name) = BUILT.iter().find(|name| **name == wanted) else {
            reader.unknown_word(node.span, "payload", text, BUILT.iter().copied());
            return None;
        };
        // As if it had an empty map of options; only some formats accept that.
        let none = Node {
            span: node.span,
            value: Value::Map(Vec::new()),
        };
        return read_options(reader, name, &none);
    }
    let map = reader.map(node, &Keys::new("payload", BUILT))?;
    let (name, options) = map.one_of(BUILT)?;
    read_options(reader, name, options)
}

/// The format called `name`, with its options.
fn read_options(reader: &Reader, name: &str, options: &Node) -> Option<PayloadFormat> {
    if let Some((_, format)) = PLAIN.iter().find(|(format, _)| *format == name) {
        if !matches!(options.value, Value::Null) {
            drop(reader.map(options, &Keys::new("payload without options", &[])));
        }
        return Some(format.clone());
    }
    if binary::BUILT.contains(&name) {
        return binary::read(reader, name, options);
    }
    text::read(reader, name, options)
}

/// Returns today's name of a payload that was named as a type until 2022: `DatadogLog`.
pub(crate) fn today_name(text: &str) -> Option<&'static str> {
    let is_of = |name: &&&str| {
        let words = name.split('_').map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        });
        words.collect::<String>() == text
    };
    BUILT.iter().find(is_of).copied()
}

fn read_cache_method(reader: &Reader, node: &Node) {
    let Some(text) = reader.text(node) else {
        return;
    };
    match text {
        "Fixed" | "fixed" => {}
        "Streaming" | "streaming" => {
            let message =
                "`Streaming` is read as `Fixed`: blocks are built before the run, and repeat";
            reader.report(reader.warning(code::NO_EFFECT, node.span, message));
        }
        _ => reader.unknown_word(node.span, "cache method", text, std::iter::once("Fixed")),
    }
}

/// The largest block: `maximum_block_size`, the largest of the old
/// `block_sizes`, or `default`; never above `limit`.
pub(super) fn read_maximum(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    default: ByteSize,
    limit: Option<ByteSize>,
) -> Option<ByteSize> {
    let sizes = map.take("block_sizes");
    let maximum = map.take("maximum_block_size");
    if let Some(node) = sizes {
        let message = "`block_sizes` is read as `maximum_block_size` with its largest value";
        let warning = reader.warning(code::MEANING, node.span, message);
        reader
            .report(warning.help("lading has no such key since 0.21: write `maximum_block_size`"));
    }
    let (size, span) = match (maximum, sizes) {
        (Some(node), _) => (read_size(reader, node)?, node.span),
        (None, Some(node)) => {
            let items = reader.list(node)?.iter();
            let sizes = items.filter_map(|item| read_size_of_old(reader, item));
            (sizes.max().unwrap_or(default), node.span)
        }
        (None, None) => return Some(default),
    };
    if let Some(limit) = limit
        && size > limit
    {
        let message = format!("a block of {size} does not fit in one datagram");
        let error = reader.error(code::BLOCK_TOO_LARGE, span, message);
        reader.report(error.label(format!("at most {} bytes", limit.bytes())));
        return None;
    }
    Some(size)
}
