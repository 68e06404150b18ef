//! Text payloads with options.

use std::path::PathBuf;

use stillwell_config::shared::{read_pattern, read_template};
use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{HecEncoding, TimestampedPlan};

use stillwell_text::{Keys, Node, Reader, Value, code};

/// The text format called `name`, with its options.
pub(super) fn read(reader: &Reader, name: &str, options: &Node) -> Option<PayloadFormat> {
    match name {
        "splunk_hec" => read_splunk_hec(reader, options),
        "static" => {
            let paths = read_paths(reader, "static payload", options)?;
            Some(PayloadFormat::Static { paths })
        }
        "static_chunks" => {
            let paths = read_paths(reader, "static_chunks payload", options)?;
            Some(PayloadFormat::StaticChunks { paths })
        }
        "static_timestamped" => read_timestamped(reader, options),
        _ => {
            let keys = Keys::new("templated_json payload", &["template_path"]);
            let path = reader.map(options, &keys)?.required("template_path")?;
            let source = reader.named_text(path)?;
            let (template, diagnostics) = read_template(&source);
            diagnostics
                .into_iter()
                .for_each(|error| reader.report(error));
            Some(PayloadFormat::TemplatedJson(template?))
        }
    }
}

fn read_splunk_hec(reader: &Reader, options: &Node) -> Option<PayloadFormat> {
    let encoding = if matches!(options.value, Value::Null) {
        None
    } else {
        let map = reader.map(options, &Keys::new("splunk_hec payload", &["encoding"]))?;
        map.read("encoding", |node| read_encoding(reader, node))?
    };
    let encoding = encoding.unwrap_or_default();
    Some(PayloadFormat::SplunkHec { encoding })
}

/// `text` or `json`.
pub(in crate::file) fn read_encoding(reader: &Reader, node: &Node) -> Option<HecEncoding> {
    let words = [("text", HecEncoding::Text), ("json", HecEncoding::Json)];
    reader.word(node, "encoding", &words)
}

/// The file at `static_path`, or the files in the folder there.
fn read_paths(reader: &Reader, what: &'static str, options: &Node) -> Option<Vec<PathBuf>> {
    let map = reader.map(options, &Keys::new(what, &["static_path"]))?;
    reader.named_files(map.required("static_path")?)
}

fn read_timestamped(reader: &Reader, options: &Node) -> Option<PayloadFormat> {
    let keys = Keys::new(
        "static_timestamped payload",
        &[
            "static_path",
            "timestamp_format",
            "emit_placeholder",
            "start_line_index",
        ],
    );
    let map = reader.map(options, &keys)?;
    let path = map.required("static_path");
    let path = path.and_then(|node| Some((node, reader.named_files(node)?)));
    let time = map.required("timestamp_format");
    let time = time.and_then(|node| read_pattern(reader, node));
    let placeholder = map.read_or("emit_placeholder", false, |node| reader.boolean(node));
    let start_line = map.read("start_line_index", |node| reader.whole(node, 0, u64::MAX))?;
    let (node, mut paths) = path?;
    if paths.len() != 1 {
        let message = "a folder is not a log: name one file";
        reader.report(reader.error(code::UNREADABLE, node.span, message));
        return None;
    }
    Some(PayloadFormat::StaticTimestamped(TimestampedPlan {
        path: paths.remove(0),
        time: time?,
        placeholder: placeholder?,
        start_line,
    }))
}
