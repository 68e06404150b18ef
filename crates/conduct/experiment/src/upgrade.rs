//! Records that older versions wrote, as they would be written now.

use serde_json::{Map, Value, json};
use stillwell_plan::GoalMetric;

/// The text of a `suite.json`, with what it did not say yet as it was meant then:
/// a fixed number of pairs, one variant after the other, nothing confirmed. What
/// is no such record stays as it is.
pub(crate) fn upgrade(mut record: Value) -> Value {
    let experiments = record.pointer_mut("/plan/experiments");
    let experiments = experiments.and_then(Value::as_array_mut);
    for experiment in experiments.into_iter().flatten() {
        if let Some(experiment) = experiment.as_object_mut() {
            upgrade_experiment(experiment);
        }
    }
    record
}

fn upgrade_experiment(experiment: &mut Map<String, Value>) {
    if let Some(pairs) = experiment.remove("pairs") {
        let mut set = |key: &str, value: Value| {
            experiment.entry(key).or_insert(value);
        };
        set("stopping", json!({"fixed": {"pairs": pairs}}));
        set("design", json!("paired"));
        set("warmup", json!("stated"));
        set("confirm", json!(false));
        set("family", Value::Null);
    }
    let goals = experiment.get_mut("goals").and_then(Value::as_array_mut);
    for goal in goals.into_iter().flatten() {
        let metric = goal["metric"].as_str().map(str::parse::<GoalMetric>);
        let direction = metric.and_then(Result::ok).and_then(|m| m.direction());
        if let (Some(goal), Some(direction)) = (goal.as_object_mut(), direction) {
            goal.entry("direction").or_insert_with(|| json!(direction));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_settings_keep_their_earlier_defaults() {
        let old = json!({"plan": {"seed": "1", "experiments": [{
            "name": "one",
            "pairs": 6,
            "goals": [
                {"metric": "cpu", "tolerance": 0.02},
                {"metric": "egress_throughput", "tolerance": 0.02},
            ],
        }]}});
        let new = upgrade(old);
        let experiment = &new["plan"]["experiments"][0];
        assert_eq!(experiment["stopping"], json!({"fixed": {"pairs": 6}}));
        assert_eq!(experiment["confirm"], json!(false));
        assert_eq!(experiment["goals"][0]["direction"], "lower_is_better");
        assert_eq!(experiment["goals"][1]["direction"], "higher_is_better");
        assert!(experiment.get("pairs").is_none());
        assert_eq!(upgrade(new.clone()), new);
        assert_eq!(upgrade(json!([1])), json!([1]));
    }
}
