//! Results of other tools, read into named numbers: columns of numbers, and the JSON of `stillwell load`,
//! Nighthawk and fortio.
//!
//! The unit of every comparison is one run. A column holds one number per run, and a JSON result is one run
//! with a number for each [`Figure`]. [`Columns::not_runs`] reports rows that look like the seconds of one run.

mod columns;
mod fortio;
mod native;
mod nighthawk;
mod number;
mod seconds;

use serde_json::Value;
use stillwell_metric::Unit;
use stillwell_plan::goal::Direction;

pub use columns::{Column, Columns, ColumnsError, TextColumn, parse_columns, parse_inline};
pub use fortio::{fortio_percentiles, is_fortio_success};
pub use nighthawk::NIGHTHAWK_OUTCOMES;
pub use number::{NumberError, parse_number};

/// Unit of a number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct FigureUnit {
    /// The unit, in base units: bytes, nanoseconds, shares of one.
    pub unit: Unit,
    /// The number is per second.
    pub per_second: bool,
}

impl FigureUnit {
    /// A number of unknown unit.
    pub const UNKNOWN: Self = Self::of(Unit::Unknown);
    /// Things a second.
    pub const COUNT_PER_SECOND: Self = Self {
        unit: Unit::Count,
        per_second: true,
    };

    /// Not for each second.
    #[must_use]
    pub const fn of(unit: Unit) -> Self {
        Self {
            unit,
            per_second: false,
        }
    }
}

/// One number of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name, for selection.
    pub name: String,
    /// Its unit.
    pub unit: FigureUnit,
    /// The better direction, if it is known.
    pub better: Option<Direction>,
    /// Shown by default.
    pub shown: bool,
    /// Finite.
    pub value: f64,
}

/// The tool that wrote a result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResultTool {
    /// fortio, and missing Nighthawk writes in its shape.
    Fortio,
    /// Nighthawk, as JSON.
    Nighthawk,
    /// `stillwell load`, as JSON.
    Stillwell,
}

impl ResultTool {
    /// The tool's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fortio => "fortio",
            Self::Nighthawk => "Nighthawk",
            Self::Stillwell => "stillwell load",
        }
    }
}

/// One run, as a load generator reported it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The tool.
    pub tool: ResultTool,
    /// Its numbers, the most important first; names are unique.
    pub figures: Vec<Figure>,
}

/// Returns true if `text` begins like a result of `stillwell load` as CSV.
#[must_use]
pub fn is_load_csv(text: &str) -> bool {
    native::is_csv(text)
}

/// Returns the summary in a CSV of `stillwell load` as its JSON; `null` if `text` is something else.
///
/// # Errors
/// [`ResultError::ListRow`] for a row that `stillwell load` does not write.
pub fn load_csv(text: &str) -> Result<Value, ResultError> {
    native::of_csv(text)
}

/// Parses one result: JSON, or the CSV of `stillwell load`.
///
/// # Errors
/// [`ResultError`] if it is not JSON, or not of a known tool.
pub fn read_result(text: &str) -> Result<ToolResult, ResultError> {
    let result = behind_logs(text);
    let value: Value = match is_load_csv(result) {
        true => native::of_csv(result)?,
        false => serde_json::from_str(result).map_err(|error| {
            if is_unknown_json(text, result) {
                return ResultError::Unknown;
            }
            ResultError::Json {
                line: error.line(),
                problem: error.to_string(),
            }
        })?,
    };
    let tool = tool_of(&value).ok_or(ResultError::Unknown)?;
    let figures = match tool {
        ResultTool::Stillwell => native::figures(&value),
        ResultTool::Nighthawk => nighthawk::figures(&value),
        ResultTool::Fortio => fortio::figures(&value),
    };
    let figures = figures.map_err(|missing| ResultError::Missing {
        tool: tool.name(),
        missing,
    })?;
    Ok(ToolResult {
        tool,
        figures: usable(figures),
    })
}

/// Returns the tool that writes results of this shape.
fn tool_of(value: &Value) -> Option<ResultTool> {
    if native::is_load(value) {
        Some(ResultTool::Stillwell)
    } else if value.get("results").is_some_and(Value::is_array) {
        Some(ResultTool::Nighthawk)
    } else if value.get("DurationHistogram").is_some() {
        Some(ResultTool::Fortio)
    } else {
        None
    }
}

/// Returns true if `text`, of which `result` is no single value, is JSON of no known tool all the same: a list, whose
/// lines may look like those of a log, or values in lines.
fn is_unknown_json(text: &str, result: &str) -> bool {
    let mut values = serde_json::Deserializer::from_str(result).into_iter::<Value>();
    let first = values.next().and_then(Result::ok);
    let is_unknown = first.is_some_and(|value| tool_of(&value).is_none());
    is_unknown || serde_json::from_str::<Value>(text).is_ok()
}

/// A text that could not be read as a result.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ResultError {
    /// No JSON, or JSON that was cut.
    #[error("it is not complete JSON: {problem}")]
    Json {
        /// Counted from 1.
        line: usize,
        /// The parser's message, with its place.
        problem: String,
    },
    /// The result of a known tool lacks an essential part.
    #[error("it looks like a result of {tool}, but has no {missing}")]
    Missing {
        /// The tool.
        tool: &'static str,
        /// The missing part.
        missing: &'static str,
    },
    /// A row of CSV in a list, without a number.
    #[error(
        "`{name}` is not a row of `stillwell load`: the part behind the first dot must be a whole number"
    )]
    ListRow {
        /// Name of the row.
        name: String,
    },
    /// JSON of another shape.
    #[error(
        "it is not JSON of a known tool: that of `stillwell load` has `schema`, Nighthawk's has `results`, fortio's has `DurationHistogram`"
    )]
    Unknown,
}

/// Returns `text` from its first line that opens an object on: a tool whose standard
/// output was kept may have logged before it, in lines that begin with `[`.
#[must_use]
pub fn behind_logs(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with('[') {
        match rest.split_once('\n') {
            Some((_, behind)) => rest = behind.trim_start(),
            None => return text,
        }
    }
    rest
}

/// Finite numbers, each name once.
fn usable(figures: Vec<Figure>) -> Vec<Figure> {
    let mut names = std::collections::BTreeSet::new();
    let mut figures = figures;
    figures.retain(|figure| figure.value.is_finite() && names.insert(figure.name.clone()));
    figures
}

/// A number, or a text with a number: 64-bit ones are often texts.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .filter(|number: &f64| number.is_finite())
}

/// The name of a quantile of times: `latency_p99` for 0.99, `latency_p999` for
/// 0.999.
fn quantile_name(prefix: &str, share: f64) -> String {
    let percent = (share * 1e5).round() / 1e3;
    let digits: String = percent.to_string().chars().filter(|c| *c != '.').collect();
    format!("{prefix}p{digits}")
}

#[cfg(test)]
mod tests;
