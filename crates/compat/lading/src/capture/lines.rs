//! Captures as JSON lines.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Number, Value as Json};
use stillwell_metric::{Kind, Value};

use super::{LadingRow, Problem, Sample};
use stillwell_capture::schema;

/// No line of a capture is nearly as long.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Reads all lines, each by `parse`. Returns the problem of an incomplete last line.
pub(super) fn read<T>(
    mut lines: impl BufRead,
    parse: impl Fn(&[u8]) -> Result<T, String>,
    take: &mut dyn FnMut(T) -> Result<(), Problem>,
) -> Result<Option<String>, Problem> {
    let mut bytes = Vec::new();
    for line in 1_u64.. {
        bytes.clear();
        let read = lines
            .by_ref()
            .take(LINE_BYTES_MAX + 1)
            .read_until(b'\n', &mut bytes);
        match read {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            // A compressed file whose writer was killed ends within a frame.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Ok(Some(format!("the file is truncated at line {line}")));
            }
            Err(error) => return Err(Problem::Read(error)),
        }
        let whole = bytes.last() == Some(&b'\n');
        let text = bytes.trim_ascii();
        if text.is_empty() {
            continue;
        }
        if !whole && (bytes.len() as u64) > LINE_BYTES_MAX {
            let problem = "it is longer than 1 MiB".to_owned();
            return Err(Problem::Line { line, problem });
        }
        match parse(text) {
            Ok(row) => take(row)?,
            // Without its end, what is wrong with it is that it was cut.
            Err(_) if !whole => {
                return Ok(Some(format!("the file is truncated within line {line}")));
            }
            Err(problem) => return Err(Problem::Line { line, problem }),
        }
    }
    Ok(None)
}

/// Returns the number of a line: NaN for the null that JSON has in its place.
fn number_or_nan<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(reader)?.unwrap_or(f64::NAN))
}

/// One line. Keys that are not named here are labels.
#[derive(Deserialize)]
struct Line {
    run_id: String,
    time: f64,
    fetch_index: u64,
    metric_name: String,
    metric_kind: String,
    #[serde(deserialize_with = "number_or_nan")]
    value: f64,
    #[serde(default)]
    value_histogram: Option<IgnoredAny>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    experiment: Option<String>,
    #[serde(default)]
    variant: Option<String>,
    #[serde(default)]
    phase: Option<Json>,
}

/// The sample in a line, or what is wrong with it.
pub(super) fn sample(text: &[u8]) -> Result<Sample, String> {
    let line: Line = serde_json::from_slice(text).map_err(|error| message(&error))?;
    let kind = kind_of(&line.metric_kind)?;
    let is_histogram = kind == Kind::Histogram || line.value_histogram.is_some();
    Ok(Sample {
        run_id: line.run_id,
        tick: line.fetch_index,
        wall_millis: stillwell_units::floor_to_u64(line.time),
        metric: line.metric_name,
        kind,
        id: line.id,
        experiment: line.experiment,
        variant: line.variant,
        phase: line
            .phase
            .and_then(|phase| Some(phase.as_str()?.to_owned())),
        value: (!is_histogram).then_some(line.value),
    })
}

fn kind_of(word: &str) -> Result<Kind, String> {
    Kind::from_name(&word.to_ascii_lowercase()).ok_or_else(|| {
        let shown: String = word.chars().take(40).collect();
        format!("`metric_kind` is `{shown}`, not counter, gauge or histogram")
    })
}

/// One line with all of its labels.
#[derive(Deserialize)]
struct WholeLine {
    #[serde(default)]
    run_id: String,
    time: f64,
    fetch_index: u64,
    metric_name: String,
    metric_kind: String,
    value: Option<Json>,
    #[serde(default)]
    value_histogram: Option<String>,
    #[serde(flatten)]
    labels: BTreeMap<String, Json>,
}

/// The row in a line, or what is wrong with it.
pub(super) fn row(text: &[u8]) -> Result<LadingRow, String> {
    let mut line: WholeLine = serde_json::from_slice(text).map_err(|error| message(&error))?;
    let kind = kind_of(&line.metric_kind)?;
    // Our own journals have two keys more, and hexadecimal digits.
    if line.labels.remove(schema::MOMENT_NS).is_some() {
        line.labels.remove(schema::PHASE);
    }
    let value = match (line.value_histogram, line.value) {
        (Some(sketch), _) => Value::Histogram(STANDARD.decode(sketch).unwrap_or_default()),
        (None, value) => {
            number(value.as_ref()).ok_or_else(|| "`value` is not a number".to_owned())?
        }
    };
    let text = |(key, value): (String, Json)| Some((key, value.as_str()?.to_owned()));
    Ok(LadingRow {
        run_id: line.run_id,
        tick: line.fetch_index,
        wall_millis: stillwell_units::floor_to_u64(line.time),
        metric: line.metric_name,
        kind,
        labels: line.labels.into_iter().filter_map(text).collect(),
        value,
    })
}

/// Numbers that JSON lacks are text or null in the file.
fn number(value: Option<&Json>) -> Option<Value> {
    let whole = value.and_then(Json::as_u64).map(Value::Int);
    whole.or_else(|| match value {
        Some(Json::Number(number)) => Number::as_f64(number).map(Value::Float),
        Some(Json::String(text)) => text.parse().ok().map(Value::Float),
        Some(Json::Null) | None => Some(Value::Float(f64::NAN)),
        Some(_) => None,
    })
}

/// The parser's message without its place, which counts from the line's start.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => format!("{message} at column {}", error.column()),
        None => text,
    }
}
