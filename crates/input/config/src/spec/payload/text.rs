//! Options of the text formats.

use std::path::PathBuf;

use stillwell_plan::{
    BulkAction, CefHeader, ElasticsearchPlan, GelfEnd, HecEncoding, InfluxPlan, LokiPlan,
    PayloadFormat, SERIES_MAX, TimePattern, TimePatternError, TimestampedPlan, is_index_name,
};
use stillwell_text::{MapReader, Node, Reader, Value, code};

use super::json_template::read_template;
use crate::element::{Element, Shape, optional, required};
use crate::files::{EntryKind, files_in, read_source};
use crate::spec::Door;

const FILE: Element = Element {
    name: "lines payload",
    about: "A file.",
    fields: &[required("path", Shape::Text, "The file.")],
    one_of: &[],
};

pub(super) const LINES_SHAPE: Shape = Shape::Any(&[Shape::Text, Shape::Element(&FILE)]);

const FILES: Element = Element {
    name: "static payload",
    about: "Files.",
    fields: &[required(
        "path",
        Shape::Text,
        "A file, or a folder of files.",
    )],
    one_of: &[],
};

pub(super) const FILES_SHAPE: Shape = Shape::Any(&[Shape::Text, Shape::Element(&FILES)]);

const TIMESTAMPED: Element = Element {
    name: "static_timestamped payload",
    about: "The lines of a log without their times, each second a block.",
    fields: &[
        required("path", Shape::Text, "The log."),
        required(
            "time",
            Shape::Like("%Y-%m-%d %H:%M:%S"),
            "The time at the beginning of each line.",
        ),
        optional(
            "placeholder",
            Shape::Boolean,
            "`true`: a second without lines is an empty line.",
        ),
        optional(
            "start_line",
            Shape::Whole,
            "The line, from 0, in whose second to begin; else drawn.",
        ),
    ],
    one_of: &[],
};

pub(super) const TIMESTAMPED_SHAPE: Shape = Shape::Element(&TIMESTAMPED);

const SPLUNK_HEC: Element = Element {
    name: "splunk_hec payload",
    about: "Events for Splunk's HTTP event collector.",
    fields: &[optional(
        "encoding",
        Shape::Words(&["json", "text"]),
        "Encoding of events.",
    )],
    one_of: &[],
};

pub(super) const SPLUNK_HEC_SHAPE: Shape = Shape::Element(&SPLUNK_HEC);

const LOKI: Element = Element {
    name: "loki payload",
    about: "Loki's push API, as JSON.",
    fields: &[optional(
        "streams",
        Shape::Whole,
        "Distinct sets of labels.",
    )],
    one_of: &[],
};

pub(super) const LOKI_SHAPE: Shape = Shape::Element(&LOKI);

const ELASTICSEARCH: Element = Element {
    name: "elasticsearch payload",
    about: "Elasticsearch's bulk API.",
    fields: &[
        optional("index", Shape::Text, "The index or data stream."),
        optional(
            "action",
            Shape::Words(&["create", "index"]),
            "Requested path.",
        ),
    ],
    one_of: &[],
};

pub(super) const ELASTICSEARCH_SHAPE: Shape = Shape::Element(&ELASTICSEARCH);

const INFLUX: Element = Element {
    name: "influx payload",
    about: "InfluxDB's line protocol.",
    fields: &[optional("series", Shape::Whole, "Distinct series.")],
    one_of: &[],
};

pub(super) const INFLUX_SHAPE: Shape = Shape::Element(&INFLUX);

const GELF: Element = Element {
    name: "gelf payload",
    about: "Graylog's JSON messages.",
    fields: &[optional(
        "end",
        Shape::Words(&["zero", "newline", "nothing"]),
        "End of each event; without it, each event is a block.",
    )],
    one_of: &[],
};

pub(super) const GELF_SHAPE: Shape = Shape::Element(&GELF);

const CEF: Element = Element {
    name: "cef payload",
    about: "ArcSight's common event format.",
    fields: &[optional(
        "header",
        Shape::Words(&["syslog", "nothing"]),
        "Prefix of each record.",
    )],
    one_of: &[],
};

pub(super) const CEF_SHAPE: Shape = Shape::Element(&CEF);

/// The format called `kind`, with its options.
pub(super) fn read(door: &Door<'_>, kind: &str, node: &Node) -> Option<PayloadFormat> {
    match kind {
        "lines" => {
            let path = door.existing(file(door, node, &FILE)?, EntryKind::File)?;
            Some(PayloadFormat::Lines { path })
        }
        "static" => Some(PayloadFormat::Static {
            paths: files(door, file(door, node, &FILES)?)?,
        }),
        "static_chunks" => Some(PayloadFormat::StaticChunks {
            paths: files(door, file(door, node, &FILES)?)?,
        }),
        "static_timestamped" => read_timestamped(door, node),
        "templated_json" => read_templated_json(door, file(door, node, &FILE)?),
        "splunk_hec" => {
            let words = [("json", HecEncoding::Json), ("text", HecEncoding::Text)];
            let encoding = word(door, node, &SPLUNK_HEC, "encoding", &words)?;
            Some(PayloadFormat::SplunkHec { encoding })
        }
        "loki" => {
            let default = LokiPlan::default().streams;
            let streams = series(door, node, &LOKI, "streams", default)?;
            Some(PayloadFormat::Loki(LokiPlan { streams }))
        }
        "influx" => {
            let default = InfluxPlan::default().series;
            let series = series(door, node, &INFLUX, "series", default)?;
            Some(PayloadFormat::Influx(InfluxPlan { series }))
        }
        "elasticsearch" => read_elasticsearch(door, node),
        "gelf" => {
            let words = [
                ("zero", GelfEnd::Null),
                ("newline", GelfEnd::Newline),
                ("nothing", GelfEnd::Nothing),
            ];
            let end = word(door, node, &GELF, "end", &words)?;
            Some(PayloadFormat::Gelf { end })
        }
        _ => {
            let words = [
                ("syslog", CefHeader::Syslog),
                ("nothing", CefHeader::Nothing),
            ];
            let header = word(door, node, &CEF, "header", &words)?;
            Some(PayloadFormat::Cef { header })
        }
    }
}

/// The node of a path, written short or not.
fn file<'n>(door: &Door<'_>, node: &'n Node, element: &Element) -> Option<&'n Node> {
    if matches!(node.value, Value::Scalar { .. }) {
        return Some(node);
    }
    door.reader.map(node, &element.keys())?.required("path")
}

/// The file at a path, or those of a folder there.
fn files(door: &Door<'_>, node: &Node) -> Option<Vec<PathBuf>> {
    let path = door.path(node)?;
    if door.files.kind(&path) != Some(EntryKind::Folder) {
        return Some(vec![door.existing(node, EntryKind::File)?]);
    }
    match files_in(door.files, &path) {
        Ok(diagnostics) => Some(diagnostics),
        Err(reason) => {
            let error = door.reader.error(code::UNREADABLE, node.span, reason);
            door.reader.report(error.label("files are looked for here"));
            None
        }
    }
}

/// The options of an element; all keep their defaults where there is nothing.
fn options<'d, 'n>(
    door: &'d Door<'_>,
    node: &'n Node,
    element: &Element,
) -> Option<Option<MapReader<'d, 'n>>> {
    match node.value {
        Value::Null => Some(None),
        _ => Some(Some(door.reader.map(node, &element.keys())?)),
    }
}

fn word<T: Clone + Default>(
    door: &Door<'_>,
    node: &Node,
    element: &Element,
    key: &'static str,
    words: &[(&str, T)],
) -> Option<T> {
    let map = options(door, node, element)?;
    match map.as_ref().and_then(|map| map.take(key)) {
        Some(node) => door.reader.word(node, key, words),
        None => Some(T::default()),
    }
}

fn series(
    door: &Door<'_>,
    node: &Node,
    element: &Element,
    key: &'static str,
    default: u32,
) -> Option<u32> {
    let map = options(door, node, element)?;
    match map.as_ref().and_then(|map| map.take(key)) {
        Some(node) => door.reader.whole(node, 1, SERIES_MAX),
        None => Some(default),
    }
}

fn read_elasticsearch(door: &Door<'_>, node: &Node) -> Option<PayloadFormat> {
    let mut plan = ElasticsearchPlan::default();
    let Some(map) = options(door, node, &ELASTICSEARCH)? else {
        return Some(PayloadFormat::Elasticsearch(plan));
    };
    let index = map.take("index");
    if let Some(node) = map.take("action") {
        let words = [("create", BulkAction::Create), ("index", BulkAction::Index)];
        plan.action = door.reader.word(node, "action", &words)?;
    }
    if let Some(node) = index {
        plan.index = door.filled(node)?.to_owned();
        if !is_index_name(&plan.index) {
            let message = format!("`{}` cannot be the name of an index", plan.index);
            let error = door.reader.error(code::BAD_VALUE, node.span, message);
            door.reader
                .report(error.label("up to 64 of a to z, 0 to 9, `.`, `_` and `-`"));
            return None;
        }
    }
    Some(PayloadFormat::Elasticsearch(plan))
}

fn read_timestamped(door: &Door<'_>, node: &Node) -> Option<PayloadFormat> {
    let map = door.reader.map(node, &TIMESTAMPED.keys())?;
    let path = map.required("path");
    let path = path.and_then(|node| door.existing(node, EntryKind::File));
    let time = map.required("time");
    let time = time.and_then(|node| read_pattern(door.reader, node));
    let placeholder = match map.take("placeholder") {
        Some(node) => door.reader.boolean(node),
        None => Some(false),
    };
    let start_line = match map.take("start_line") {
        Some(node) => Some(door.reader.whole(node, 0, u64::MAX)?),
        None => None,
    };
    Some(PayloadFormat::StaticTimestamped(TimestampedPlan {
        path: path?,
        time: time?,
        placeholder: placeholder?,
        start_line,
    }))
}

fn read_templated_json(door: &Door<'_>, node: &Node) -> Option<PayloadFormat> {
    let path = door.existing(node, EntryKind::File)?;
    match read_source(door.files, &path) {
        Ok(source) => {
            let (template, diagnostics) = read_template(&source);
            let has_errors = diagnostics.has_errors();
            diagnostics
                .into_iter()
                .for_each(|diagnostic| door.reader.report(diagnostic));
            let template = template.filter(|_| !has_errors)?;
            Some(PayloadFormat::TemplatedJson(template))
        }
        Err(error) => {
            door.reader.report(error.at(door.reader.place(node.span)));
            None
        }
    }
}

/// A pattern of times in the manner of `strftime`.
#[must_use]
pub fn read_pattern(reader: &Reader, node: &Node) -> Option<TimePattern> {
    match TimePattern::parse(reader.text(node)?) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let known = "known here: %Y %y %m %b %d %e %H %M %S %f %3f %.3f %s %z %:z %F %T %D %R";
            let report = reader.error(code::BAD_VALUE, node.span, error.to_string());
            reader.report(match error {
                TimePatternError::Unknown { .. } => report.help(known),
                TimePatternError::ZoneName | TimePatternError::Empty { .. } => report,
            });
            None
        }
    }
}
