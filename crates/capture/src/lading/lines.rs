//! Captures as JSON lines.

use std::io::{BufRead, Read};

use serde::Deserialize;
use serde::de::IgnoredAny;
use stillwell_metric::Kind;

use super::fold::Fold;
use super::{Problem, Sample};

/// No line of a capture is nearly as long.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Reads all lines; says what is missing if the last one was cut.
pub(super) fn read(
    mut lines: impl BufRead,
    fold: &mut Fold<'_>,
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
                return Ok(Some(format!("the file is cut at line {line}")));
            }
            Err(error) => return Err(Problem::Read(error)),
        }
        let whole = bytes.last() == Some(&b'\n');
        let text = bytes.trim_ascii();
        if text.is_empty() {
            continue;
        }
        if !whole && u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LINE_BYTES_MAX {
            let problem = "it is longer than one MiB".to_owned();
            return Err(Problem::Line { line, problem });
        }
        match parse(text) {
            Ok(sample) => fold.push(sample)?,
            // Without its end, what is wrong with it is that it was cut.
            Err(_) if !whole => {
                return Ok(Some(format!("the file is cut within line {line}")));
            }
            Err(problem) => return Err(Problem::Line { line, problem }),
        }
    }
    Ok(None)
}

/// One line. Keys that are not named here are labels.
#[derive(Deserialize)]
struct Line {
    run_id: String,
    time: f64,
    fetch_index: u64,
    metric_name: String,
    metric_kind: String,
    value: f64,
    #[serde(default)]
    value_histogram: Option<IgnoredAny>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    experiment: Option<String>,
    #[serde(default)]
    variant: Option<String>,
}

/// The sample in a line, or what is wrong with it.
fn parse(text: &[u8]) -> Result<Sample, String> {
    let line: Line = serde_json::from_slice(text).map_err(|error| message(&error))?;
    let kind = line.metric_kind.to_ascii_lowercase();
    let kind = Kind::from_name(&kind).ok_or_else(|| {
        let found: String = line.metric_kind.chars().take(40).collect();
        format!("`metric_kind` is `{found}`: one of counter, gauge and histogram is known")
    })?;
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
        value: (!is_histogram).then_some(line.value),
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

/// The sample in a line, for those who write the same as a table.
#[cfg(test)]
pub(super) fn parse_for_tests(text: &str) -> Result<Sample, String> {
    parse(text.as_bytes())
}
