//! Payloads as lading spells them.

use stillwell_plan::{BlockShape, PayloadFormat, PayloadPlan};
use stillwell_units::ByteSize;

use super::size::read_size;
use crate::code;
use crate::node::{Node, Value};
use crate::reader::{Keys, MapReader, Reader};

const FORMATS: [(&str, PayloadFormat); 5] = [
    ("ascii", PayloadFormat::Ascii),
    ("json", PayloadFormat::Json),
    ("apache_common", PayloadFormat::ApacheCommon),
    ("syslog5424", PayloadFormat::Syslog5424),
    ("datadog_log", PayloadFormat::DatadogLog),
];

const KNOWN: &[&str] = &[
    "dogstatsd",
    "fluent",
    "opentelemetry_logs",
    "opentelemetry_metrics",
    "opentelemetry_traces",
    "splunk_hec",
    "static",
    "static_chunks",
    "static_timestamped",
    "templated_json",
    "trace_agent",
];

/// Payload keys beside which the generator's own stand.
pub(super) const KEYS: &[&str] = &[
    "variant",
    "maximum_prebuild_cache_size_bytes",
    "block_cache_method",
];

/// Keys about blocks, which stay with the generator.
pub(super) const BLOCK_KEYS: &[&str] = &["maximum_block_size", "block_sizes"];

/// The payload that `content` describes, in blocks of at most `maximum`.
pub(super) fn read(
    reader: &Reader,
    content: &MapReader<'_, '_>,
    maximum: Option<ByteSize>,
) -> Option<PayloadPlan> {
    if let Some(method) = content.take("block_cache_method") {
        read_cache_method(reader, method);
    }
    let cache = content
        .required("maximum_prebuild_cache_size_bytes")
        .and_then(|node| read_size(reader, node));
    let format = content
        .required("variant")
        .and_then(|node| read_format(reader, node));
    Some(PayloadPlan {
        format: format?,
        blocks: BlockShape::UpTo { maximum: maximum? },
        cache: cache?,
    })
}

fn read_format(reader: &Reader, node: &Node) -> Option<PayloadFormat> {
    let accepted = FORMATS.map(|(name, _)| name);
    if let Value::Scalar { text, .. } = &node.value {
        if KNOWN.contains(&text.as_str()) {
            reader.not_built(node.span, "payload", text, None);
            return None;
        }
        let found = FORMATS.iter().find(|(name, _)| name == text);
        if found.is_none() {
            reader.unknown_word(node.span, "payload", text, accepted.into_iter());
        }
        return found.map(|(_, format)| format.clone());
    }
    let map = reader.map(node, &Keys::new("payload", &accepted).known(KNOWN))?;
    let (name, options) = map.one_of(&accepted)?;
    if !matches!(options.value, Value::Null) {
        drop(reader.map(options, &Keys::new("payload without options", &[])));
    }
    let format = FORMATS.iter().find(|(known, _)| *known == name)?;
    Some(format.1.clone())
}

fn read_cache_method(reader: &Reader, node: &Node) {
    let Some(text) = reader.text(node) else {
        return;
    };
    match text {
        "Fixed" | "fixed" => {
            let message =
                "`block_cache_method` has no effect: blocks are always built before the run";
            reader.report(reader.note(code::NO_EFFECT, node.span, message));
        }
        "Streaming" | "streaming" => {
            let message = "`Streaming` is read as `Fixed`: blocks are built before the run";
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
        let message = "`block_sizes` is read as a largest block of its largest size";
        let warning = reader.warning(code::MEANING, node.span, message);
        reader.report(
            warning.help("lading itself ignores it since 0.21: write `maximum_block_size`"),
        );
    }
    let (size, span) = match (maximum, sizes) {
        (Some(node), _) => (read_size(reader, node)?, node.span),
        (None, Some(node)) => {
            let items = reader.list(node)?.iter();
            let sizes = items.filter_map(|item| read_size(reader, item));
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
