//! Options of the text formats.

use std::path::PathBuf;

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{
    BulkAction, CefHeader, ElasticsearchPlan, GelfEnd, HecEncoding, InfluxPlan, LokiPlan,
    SERIES_MAX, TimePattern, TimePatternError, TimestampedPlan, is_index_name,
};
use stillwell_text::{MapReader, Node, Reader, Value, code};

use super::json_template::read_template;
use crate::element::{Element, Shape, optional, required};
use crate::files::{EntryKind, files_in, read_source};
use crate::spec::ReadContext;

const FILE: Element = Element::new(
    "lines payload",
    "A file.",
    &[required("path", Shape::Text, "The file.")],
);

pub(super) const LINES_SHAPE: Shape = Shape::Any(&[Shape::Text, Shape::Element(&FILE)]);

const FILES: Element = Element::new(
    "static payload",
    "Files.",
    &[required(
        "path",
        Shape::Text,
        "A file, or a folder of files.",
    )],
);

pub(super) const FILES_SHAPE: Shape = Shape::Any(&[Shape::Text, Shape::Element(&FILES)]);

const TIMESTAMPED: Element = Element::new(
    "static_timestamped payload",
    "The lines of a log without their times; the lines of each second are a block.",
    &[
        required("path", Shape::Text, "The log."),
        required(
            "time",
            Shape::Like("%Y-%m-%d %H:%M:%S"),
            "Format of the time at the beginning of each line.",
        ),
        optional(
            "placeholder",
            Shape::Boolean,
            "`true`: a second without lines is an empty line.",
        ),
        optional(
            "start_line",
            Shape::Whole,
            "Number of the first line, from 0; random by default.",
        ),
    ],
);

pub(super) const TIMESTAMPED_SHAPE: Shape = Shape::Element(&TIMESTAMPED);

const SPLUNK_HEC: Element = Element::new(
    "splunk_hec payload",
    "Events for Splunk's HTTP event collector.",
    &[optional(
        "encoding",
        Shape::Words(&["json", "text"]),
        "Encoding of events.",
    )],
);

pub(super) const SPLUNK_HEC_SHAPE: Shape = Shape::Element(&SPLUNK_HEC);

const LOKI: Element = Element::new(
    "loki payload",
    "Loki's push API, as JSON.",
    &[optional(
        "streams",
        Shape::Whole,
        "Distinct sets of labels.",
    )],
);

pub(super) const LOKI_SHAPE: Shape = Shape::Element(&LOKI);

const ELASTICSEARCH: Element = Element::new(
    "elasticsearch payload",
    "Elasticsearch's bulk API.",
    &[
        optional("index", Shape::Text, "The index or data stream."),
        optional(
            "action",
            Shape::Words(&["create", "index"]),
            "Action of each entry; `create` by default.",
        ),
    ],
);

pub(super) const ELASTICSEARCH_SHAPE: Shape = Shape::Element(&ELASTICSEARCH);

const INFLUX: Element = Element::new(
    "influx payload",
    "InfluxDB's line protocol.",
    &[optional("series", Shape::Whole, "Distinct series.")],
);

pub(super) const INFLUX_SHAPE: Shape = Shape::Element(&INFLUX);

const GELF: Element = Element::new(
    "gelf payload",
    "Graylog's JSON messages.",
    &[optional(
        "end",
        Shape::Words(&["zero", "newline", "nothing"]),
        "End of each event; without it, each event is a block.",
    )],
);

pub(super) const GELF_SHAPE: Shape = Shape::Element(&GELF);

const CEF: Element = Element::new(
    "cef payload",
    "ArcSight's common event format.",
    &[optional(
        "header",
        Shape::Words(&["syslog", "nothing"]),
        "Prefix of each record.",
    )],
);

pub(super) const CEF_SHAPE: Shape = Shape::Element(&CEF);

/// The format called `kind`, with its options.
pub(super) fn read(context: &ReadContext<'_>, kind: &str, node: &Node) -> Option<PayloadFormat> {
    match kind {
        "lines" => {
            let path = context.existing(file(context, node, &FILE)?, EntryKind::File)?;
            Some(PayloadFormat::Lines { path })
        }
        "static" => Some(PayloadFormat::Static {
            paths: files(context, file(context, node, &FILES)?)?,
        }),
        "static_chunks" => Some(PayloadFormat::StaticChunks {
            paths: files(context, file(context, node, &FILES)?)?,
        }),
        "static_timestamped" => read_timestamped(context, node),
        "templated_json" => read_templated_json(context, file(context, node, &FILE)?),
        "splunk_hec" => {
            let words = [("json", HecEncoding::Json), ("text", HecEncoding::Text)];
            let encoding = word(context, node, &SPLUNK_HEC, "encoding", &words)?;
            Some(PayloadFormat::SplunkHec { encoding })
        }
        "loki" => {
            let default = LokiPlan::default().streams;
            let streams = series(context, node, &LOKI, "streams", default)?;
            Some(PayloadFormat::Loki(LokiPlan { streams }))
        }
        "influx" => {
            let default = InfluxPlan::default().series;
            let series = series(context, node, &INFLUX, "series", default)?;
            Some(PayloadFormat::Influx(InfluxPlan { series }))
        }
        "elasticsearch" => read_elasticsearch(context, node),
        "gelf" => {
            let words = [
                ("zero", GelfEnd::Null),
                ("newline", GelfEnd::Newline),
                ("nothing", GelfEnd::Nothing),
            ];
            let end = word(context, node, &GELF, "end", &words)?;
            Some(PayloadFormat::Gelf { end })
        }
        _ => {
            let words = [
                ("syslog", CefHeader::Syslog),
                ("nothing", CefHeader::Nothing),
            ];
            let header = word(context, node, &CEF, "header", &words)?;
            Some(PayloadFormat::Cef { header })
        }
    }
}

/// The node of a path, written short or not.
fn file<'n>(context: &ReadContext<'_>, node: &'n Node, element: &Element) -> Option<&'n Node> {
    if matches!(node.value, Value::Scalar { .. }) {
        return Some(node);
    }
    context.reader.map(node, &element.keys())?.required("path")
}

/// The file at a path, or those of a folder there.
fn files(context: &ReadContext<'_>, node: &Node) -> Option<Vec<PathBuf>> {
    let path = context.path(node)?;
    if context.files.kind(&path) != Some(EntryKind::Folder) {
        return Some(vec![context.existing(node, EntryKind::File)?]);
    }
    match files_in(context.files, &path) {
        Ok(diagnostics) => Some(diagnostics),
        Err(reason) => {
            let error = context.reader.error(code::UNREADABLE, node.span, reason);
            context
                .reader
                .report(error.label("files are looked for here"));
            None
        }
    }
}

/// The options of an element; all keep their defaults where there is nothing.
fn options<'d, 'n>(
    context: &'d ReadContext<'_>,
    node: &'n Node,
    element: &Element,
) -> Option<Option<MapReader<'d, 'n>>> {
    match node.value {
        Value::Null => Some(None),
        _ => Some(Some(context.reader.map(node, &element.keys())?)),
    }
}

fn word<T: Clone + Default>(
    context: &ReadContext<'_>,
    node: &Node,
    element: &Element,
    key: &'static str,
    words: &[(&str, T)],
) -> Option<T> {
    let map = options(context, node, element)?;
    match map.as_ref().and_then(|map| map.take(key)) {
        Some(node) => context.reader.word(node, key, words),
        None => Some(T::default()),
    }
}

fn series(
    context: &ReadContext<'_>,
    node: &Node,
    element: &Element,
    key: &'static str,
    default: u32,
) -> Option<u32> {
    let map = options(context, node, element)?;
    match map.as_ref().and_then(|map| map.take(key)) {
        Some(node) => context.reader.whole(node, 1, SERIES_MAX),
        None => Some(default),
    }
}

fn read_elasticsearch(context: &ReadContext<'_>, node: &Node) -> Option<PayloadFormat> {
    let mut plan = ElasticsearchPlan::default();
    let Some(map) = options(context, node, &ELASTICSEARCH)? else {
        return Some(PayloadFormat::Elasticsearch(plan));
    };
    let index = map.take("index");
    if let Some(node) = map.take("action") {
        let words = [("create", BulkAction::Create), ("index", BulkAction::Index)];
        plan.action = context.reader.word(node, "action", &words)?;
    }
    if let Some(node) = index {
        plan.index = context.filled(node)?.to_owned();
        if !is_index_name(&plan.index) {
            let message = format!("`{}` cannot be the name of an index", plan.index);
            let error = context.reader.error(code::BAD_VALUE, node.span, message);
            context
                .reader
                .report(error.label("up to 64 of a to z, 0 to 9, `.`, `_` and `-`"));
            return None;
        }
    }
    Some(PayloadFormat::Elasticsearch(plan))
}

fn read_timestamped(context: &ReadContext<'_>, node: &Node) -> Option<PayloadFormat> {
    let map = context.reader.map(node, &TIMESTAMPED.keys())?;
    let path = map.required("path");
    let path = path.and_then(|node| context.existing(node, EntryKind::File));
    let time = map.required("time");
    let time = time.and_then(|node| read_pattern(context.reader, node));
    let placeholder = map.read_or("placeholder", false, |node| context.reader.boolean(node));
    let start_line = map.read("start_line", |node| context.reader.whole(node, 0, u64::MAX))?;
    Some(PayloadFormat::StaticTimestamped(TimestampedPlan {
        path: path?,
        time: time?,
        placeholder: placeholder?,
        start_line,
    }))
}

fn read_templated_json(context: &ReadContext<'_>, node: &Node) -> Option<PayloadFormat> {
    let path = context.existing(node, EntryKind::File)?;
    match read_source(context.files, &path) {
        Ok(source) => {
            let (template, diagnostics) = read_template(&source);
            let has_errors = diagnostics.has_errors();
            diagnostics
                .into_iter()
                .for_each(|diagnostic| context.reader.report(diagnostic));
            let template = template.filter(|_| !has_errors)?;
            Some(PayloadFormat::TemplatedJson(template))
        }
        Err(error) => {
            context
                .reader
                .report(error.at(context.reader.place(node.span)));
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
