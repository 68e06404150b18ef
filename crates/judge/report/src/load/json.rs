//! Stillwell's own form of a load's result.

use serde_json::Value;

use super::LoadReport;
use crate::document::escape;

/// Names the shape of [`write_load_json`]'s text; keys are added within a version
/// and never removed.
pub const LOAD_SCHEMA: &str = "stillwell/load/v2";

/// The whole result, keys in one order for all time, units in their names.
/// Histograms are there in full, with a few of their quantiles beside them.
#[must_use]
pub fn write_load_json(report: &LoadReport) -> String {
    let mut value = serde_json::to_value(report)
        .unwrap_or_else(|_| unreachable!("every key is a text and every number finite or null"));
    value["schema"] = LOAD_SCHEMA.into();
    value["valid"] = report.health.is_valid().into();
    // `#` formats indented text; printing a value cannot fail.
    escape::json(&format!("{value:#}\n"))
}

/// The result that `text` holds.
///
/// # Errors
/// [`LoadJsonError`] says what is wrong.
pub fn read_load_json(text: &str) -> Result<LoadReport, LoadJsonError> {
    let json = |error: serde_json::Error| LoadJsonError::Json {
        problem: error.to_string(),
    };
    let mut value: Value = serde_json::from_str(text).map_err(json)?;
    let schema = value.as_object_mut().and_then(|map| {
        // What follows from the rest is not read back.
        map.remove("valid");
        map.remove("schema")
    });
    match schema.as_ref().and_then(Value::as_str) {
        Some(LOAD_SCHEMA) => serde_json::from_value(value).map_err(json),
        schema => Err(LoadJsonError::Schema {
            actual: schema.unwrap_or("none").to_owned(),
        }),
    }
}

/// A text that is no result of a load of ours.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LoadJsonError {
    /// No JSON, or a value that is not as it should be.
    #[error("it is not a load result: {problem}")]
    Json {
        /// What, and where it is known the place.
        problem: String,
    },
    /// Some other shape.
    #[error("its schema is {actual}, not {LOAD_SCHEMA}")]
    Schema {
        /// The schema of the document.
        actual: String,
    },
}
