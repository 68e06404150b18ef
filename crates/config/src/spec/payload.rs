//! `payload` of a generator.

use stillwell_legacy::{Node, Value};
use stillwell_plan::PayloadFormat;

use super::Door;
use crate::files::EntryKind;
use crate::schema::{Element, Shape, required};

const WORDS: &[&str] = &[
    "ascii",
    "json",
    "syslog5424",
    "apache_common",
    "datadog_log",
];

const FILE: Element = Element {
    name: "lines payload",
    about: "The lines of a file, in order, over and over.",
    fields: &[required("path", Shape::Text, "The file.")],
    one_of: &[],
};

const LINES: Element = Element {
    name: "payload",
    about: "What is sent.",
    fields: &[required(
        "lines",
        Shape::Any(&[Shape::Text, Shape::Element(&FILE)]),
        "The lines of a file, in order, over and over.",
    )],
    one_of: &[],
};

/// The format of events.
pub(super) const SHAPE: Shape = Shape::Any(&[Shape::Words(WORDS), Shape::Element(&LINES)]);

pub(super) fn read_payload(door: &Door<'_>, node: &Node) -> Option<PayloadFormat> {
    let reader = door.reader;
    if let Value::Scalar { text, .. } = &node.value {
        return match text.as_str() {
            "ascii" => Some(PayloadFormat::Ascii),
            "json" => Some(PayloadFormat::Json),
            "syslog5424" => Some(PayloadFormat::Syslog5424),
            "apache_common" => Some(PayloadFormat::ApacheCommon),
            "datadog_log" => Some(PayloadFormat::DatadogLog),
            _ => {
                let words = WORDS.iter().copied().chain(["{lines: {path: FILE}}"]);
                reader.unknown_word(node.span, "payload", text, words);
                None
            }
        };
    }
    let map = reader.map(node, &LINES.keys())?;
    let lines = map.required("lines")?;
    let path = if matches!(lines.value, Value::Scalar { .. }) {
        lines
    } else {
        reader.map(lines, &FILE.keys())?.required("path")?
    };
    let path = door.existing(path, EntryKind::File)?;
    Some(PayloadFormat::Lines { path })
}
