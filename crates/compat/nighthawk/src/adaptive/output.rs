//! A session's output as text proto and as JSON.

use serde_json::Value;

use super::{BenchmarkResult, Evaluation, SessionOutput};
use crate::time::timestamp_text;
use crate::wire::{Schema, WireError};
use crate::{Tree, write};

/// `AdaptiveLoadSessionOutput` in the text form of protocol buffers.
///
/// # Errors
/// [`WireError`] for a threshold that is no message.
pub fn session_text(output: &SessionOutput) -> Result<String, WireError> {
    let value = serde_json::from_str(&session_json(output)).unwrap_or_default();
    Schema::shared().write_text("nighthawk.adaptive_load.AdaptiveLoadSessionOutput", &value)
}

/// `AdaptiveLoadSessionOutput` in the JSON form of protocol buffers.
#[must_use]
pub fn session_json(output: &SessionOutput) -> String {
    let mut fields = vec![(
        "adjusting_stage_results".to_owned(),
        Tree::List(output.adjusting.iter().map(result).collect()),
    )];
    if let Some(testing) = &output.testing {
        fields.push(("testing_stage_result".to_owned(), result(testing)));
    }
    let thresholds = output
        .thresholds
        .iter()
        .map(|threshold: &Value| Tree::from(threshold));
    fields.push((
        "metric_thresholds".to_owned(),
        Tree::List(thresholds.collect()),
    ));
    Tree::Map(fields).to_json()
}

fn result(result: &BenchmarkResult) -> Tree {
    let evaluations = result.evaluations.iter().map(evaluation);
    let fields = [
        ("nighthawk_service_output", write::output(&result.output)),
        ("metric_evaluations", Tree::List(evaluations.collect())),
        ("start_time", Tree::Text(timestamp_text(result.started))),
        ("end_time", Tree::Text(timestamp_text(result.ended))),
    ];
    map(fields.into_iter())
}

fn evaluation(evaluation: &Evaluation) -> Tree {
    let numbers = [
        ("metric_value", Some(evaluation.value)),
        ("threshold_score", evaluation.score),
        ("weight", evaluation.weight),
    ];
    let numbers = numbers
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| (name, Tree::Number(value))));
    let id = ("metric_id", Tree::text(evaluation.metric_id.as_str()));
    map([id].into_iter().chain(numbers))
}

fn map(fields: impl Iterator<Item = (&'static str, Tree)>) -> Tree {
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Tree::Map(fields.collect())
}
