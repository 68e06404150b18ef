//! Plans of runs in the store: without secrets, which each task reads from the files of the suite.

use serde_json::Value;
use stillwell_capture::RunIdentity;
use stillwell_cluster::PlannedRun;
use stillwell_plan::{RunPlan, SuitePlan};
use stillwell_run::RunRequest;
use stillwell_units::Secrets;

use crate::secrets;

/// Returns the run of `request` for the store. An error is a sentence for readers.
pub(super) fn shared(suite: &SuitePlan, request: &RunRequest) -> Result<PlannedRun, String> {
    let typed = value(&request.plan)?;
    let masked = secrets::handling().json(typed.clone());
    let is_masked = masked != typed;
    let identity = request.identity.clone();
    let identity = identity.ok_or("the run has no place in a suite")?;
    if is_masked && filled(masked.clone(), &of_files(suite, &identity)?) != typed {
        return Err(
            "a secret of the experiment is not in its files, so the tasks cannot read it: \
             --keep-secrets saves it in the store and in the results"
                .to_owned(),
        );
    }
    Ok(PlannedRun {
        plan: plan(masked)?,
        is_masked,
        files: request.places.files.clone(),
        experiment: request.places.experiment.clone(),
        identity,
    })
}

/// Returns the plan of a run with the secrets of `suite`, as this machine reads it.
pub(super) fn typed(run: &PlannedRun, suite: &SuitePlan) -> Result<RunPlan, String> {
    plan(filled(value(&run.plan)?, &of_files(suite, &run.identity)?))
}

fn value(plan: &RunPlan) -> Result<Value, String> {
    serde_json::to_value(plan).map_err(|error| format!("write the plan: {error}"))
}

fn plan(value: Value) -> Result<RunPlan, String> {
    serde_json::from_value(value).map_err(|error| format!("read the plan: {error}"))
}

/// Returns the plan of a run of this experiment and variant as the files have it.
fn of_files(suite: &SuitePlan, identity: &RunIdentity) -> Result<Value, String> {
    let experiments = suite.experiments.iter();
    let mut variants = experiments
        .filter(|experiment| experiment.name == identity.experiment)
        .flat_map(|experiment| {
            let variants = experiment.variants.iter();
            variants.map(move |variant| (experiment, variant))
        });
    let (experiment, variant) = variants
        .find(|(_, variant)| variant.name == identity.variant)
        .ok_or_else(|| {
            format!(
                "the files have no experiment `{}` with a variant `{}`",
                identity.experiment, identity.variant
            )
        })?;
    value(
        &experiment
            .run_plan
            .around(experiment.target_of(variant, None)),
    )
}

/// Returns `masked` with the secrets of `typed`.
fn filled(mut masked: Value, typed: &Value) -> Value {
    fill(&mut masked, typed, &Secrets::Masked.json(typed.clone()));
    masked
}

/// Replaces each part of `value` that is one of `typed` without its secrets.
fn fill(value: &mut Value, typed: &Value, typed_masked: &Value) {
    if value == typed_masked {
        value.clone_from(typed);
        return;
    }
    match (value, typed, typed_masked) {
        (Value::Object(fields), Value::Object(typed), Value::Object(masked)) => {
            for (name, field) in fields {
                if let (Some(typed), Some(masked)) = (typed.get(name), masked.get(name)) {
                    fill(field, typed, masked);
                }
            }
        }
        (Value::Array(values), Value::Array(typed), Value::Array(masked)) => {
            for ((value, typed), masked) in values.iter_mut().zip(typed).zip(masked) {
                fill(value, typed, masked);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_those_of_the_files_and_all_else_is_of_the_run() {
        let of_files = json!({
            "environment": {"API_KEY": "hunter2", "SIDE": "one"},
            "program": "relay",
            "arguments": ["--token", "hunter3", "--in", "x"],
            "rate": 1,
        });
        let of_run = json!({
            "environment": {"API_KEY": "hunter2", "SIDE": "one", "STILLWELL_PADDING": "xx"},
            "program": "/cache/relay",
            "arguments": ["--token", "hunter3", "--in", "x", "--more"],
            "rate": 2,
        });
        let masked = Secrets::Masked.json(of_run.clone());
        assert!(!masked.to_string().contains("hunter"), "{masked}");
        assert_eq!(filled(masked, &of_files), of_run);
    }
}
