//! A session's spec out of JSON or text proto.

use serde_json::Value;
use stillwell_units::Nanos;

use crate::envoy::snake_json;

use super::{BUILTIN_METRICS, ExponentialSearch, MetricSpec, Scoring, SessionSpec, Threshold};
use crate::fields::{Fields, MessageError, whole_message};
use crate::read;
use crate::wire::Schema;

const BUILTIN: &str = "nighthawk.builtin";
const FACTOR: f64 = 2.0;

/// Reads a session: JSON if `text` begins with a brace, text proto otherwise.
///
/// # Errors
/// [`MessageError`] names the first field that is unknown or has a wrong value.
pub fn read_session(text: &str) -> Result<SessionSpec, MessageError> {
    let value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| MessageError::Json {
            problem: error.to_string(),
        })?
    } else {
        let name = "nighthawk.adaptive_load.AdaptiveLoadSessionSpec";
        let read = Schema::shared().read_text(name, text);
        read.map_err(MessageError::Text)?
    };
    whole_message(value, "", session)
}

fn session(fields: &mut Fields) -> Result<SessionSpec, MessageError> {
    let raw = fields.raw("nighthawk_traffic_template");
    let template = read::options(raw.ok_or_else(|| required("nighthawk_traffic_template"))?)?;
    if template.duration.is_some() || template.no_duration.is_some() {
        return Err(MessageError::Shape {
            path: "nighthawk_traffic_template.duration".to_owned(),
            expected: "omitted: measuring_period sets the length of each load",
        });
    }
    let plugins = fields.raw("metrics_plugin_configs");
    let has_plugins = plugins.and_then(|list| list.as_array().map(|all| !all.is_empty()));
    if has_plugins == Some(true) {
        return Err(MessageError::Shape {
            path: "metrics_plugin_configs".to_owned(),
            expected: "omitted: there are no plugins except nighthawk.builtin",
        });
    }
    let thresholds = fields.list("metric_thresholds", |value, path| {
        let mut threshold = whole_message(value.clone(), path, threshold)?;
        threshold.message = with_defaults(snake_json(value));
        Ok(threshold)
    })?;
    if thresholds.is_empty() {
        return Err(required("metric_thresholds"));
    }
    let (_, search) = plugin(fields, "step_controller_config", search)?;
    let mut length = |name: &str, default: u64| {
        let length = fields.duration(name)?;
        Ok(length.unwrap_or_else(|| Nanos::from_secs(default)))
    };
    Ok(SessionSpec {
        template,
        thresholds,
        search,
        measuring_period: length("measuring_period", 10)?,
        convergence_deadline: length("convergence_deadline", 300)?,
        testing_stage: length("testing_stage_duration", 30)?,
        cooldown: length("benchmark_cooldown_duration", 0)?,
        informational: fields.messages("informational_metric_specs", metric_spec)?,
    })
}

/// Returns a threshold with the fields that Nighthawk fills in before it copies it into the output.
fn with_defaults(mut threshold: Value) -> Value {
    let mut fill = |part: &str, field: &str, default: Value| {
        let part = threshold.get_mut(part).and_then(Value::as_object_mut);
        if let Some(part) = part {
            let value = part.entry(field).or_insert(Value::Null);
            if value.is_null() || value.as_str() == Some("") {
                *value = default;
            }
        }
    };
    fill("metric_spec", "metrics_plugin_name", BUILTIN.into());
    fill("threshold_spec", "weight", 1.0.into());
    threshold
}

fn required(name: &str) -> MessageError {
    MessageError::Shape {
        path: name.to_owned(),
        expected: "present: a session needs it",
    }
}

fn threshold(fields: &mut Fields) -> Result<Threshold, MessageError> {
    let spec = fields.message("metric_spec", metric_spec)?;
    let scored = fields.message("threshold_spec", |fields| {
        let weight = fields.number("weight")?.unwrap_or(1.0);
        let (_, scoring) = plugin(fields, "scoring_function", scoring)?;
        Ok((scoring, weight))
    })?;
    let (scoring, weight) = scored.ok_or_else(|| required("metric_thresholds.threshold_spec"))?;
    Ok(Threshold {
        spec: spec.ok_or_else(|| required("metric_thresholds.metric_spec"))?,
        scoring,
        weight,
        message: Value::Null,
    })
}

fn metric_spec(fields: &mut Fields) -> Result<MetricSpec, MessageError> {
    let plugin = fields.text("metrics_plugin_name")?;
    let plugin = plugin.filter(|name| !name.is_empty());
    if plugin.as_ref().is_some_and(|name| name != BUILTIN) {
        return Err(MessageError::Shape {
            path: "metric_spec.metrics_plugin_name".to_owned(),
            expected: "nighthawk.builtin: there are no other plugins",
        });
    }
    let metric = fields.text("metric_name")?;
    let metric = metric.ok_or_else(|| required("metric_spec.metric_name"))?;
    if !BUILTIN_METRICS.contains(&metric.as_str()) {
        return Err(MessageError::Shape {
            path: "metric_spec.metric_name".to_owned(),
            expected: "a metric of nighthawk.builtin, such as success-rate or latency-ns-mean",
        });
    }
    Ok(MetricSpec {
        metric,
        plugin: plugin.unwrap_or_else(|| BUILTIN.to_owned()),
    })
}

/// Envoy's `TypedExtensionConfig` in the field `name`, read by the plugin's name.
fn plugin<T>(
    fields: &mut Fields,
    name: &'static str,
    read: fn(&str, &mut Fields) -> Result<T, MessageError>,
) -> Result<(String, T), MessageError> {
    let value = fields.raw(name).ok_or_else(|| required(name))?;
    let expected = "a message with name and typed_config";
    let shape = || MessageError::Shape {
        path: name.to_owned(),
        expected,
    };
    let plugin_name = value
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(shape)?;
    let config = value
        .get("typed_config")
        .or_else(|| value.get("typedConfig"));
    let mut config = config
        .cloned()
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    config.as_object_mut().ok_or_else(shape)?.remove("@type");
    let mut inner = Fields::of(config, name)?;
    let settings = read(plugin_name, &mut inner)?;
    inner.finish()?;
    Ok((plugin_name.to_owned(), settings))
}

fn scoring(name: &str, fields: &mut Fields) -> Result<Scoring, MessageError> {
    match name {
        "nighthawk.binary_scoring" => Ok(Scoring::Binary {
            lower: fields.number("lower_threshold")?,
            upper: fields.number("upper_threshold")?,
        }),
        "nighthawk.linear_scoring" => Ok(Scoring::Linear {
            threshold: fields.number("threshold")?.unwrap_or(0.0),
            scale: fields.number("scaling_constant")?.unwrap_or(0.0),
        }),
        _ => Err(MessageError::Shape {
            path: "scoring_function.name".to_owned(),
            expected: "nighthawk.binary_scoring or nighthawk.linear_scoring",
        }),
    }
}

fn search(name: &str, fields: &mut Fields) -> Result<ExponentialSearch, MessageError> {
    let shape = |path: &str, expected| MessageError::Shape {
        path: format!("step_controller_config.{path}"),
        expected,
    };
    if name != "nighthawk.exponential_search" {
        return Err(shape("name", "nighthawk.exponential_search"));
    }
    if let Some(setter) = fields.raw("input_variable_setter") {
        let setter = setter.get("name").and_then(Value::as_str);
        if setter.is_some_and(|name| name != "nighthawk.rps") {
            return Err(shape("input_variable_setter.name", "nighthawk.rps"));
        }
    }
    let positive = |number: f64| number.is_finite() && number > 0.0;
    let initial = fields
        .number("initial_value")?
        .filter(|number| *number != 0.0);
    let factor = fields
        .number("exponential_factor")?
        .filter(|number| *number != 0.0);
    let (initial, factor) = (initial.unwrap_or(1.0), factor.unwrap_or(FACTOR));
    if !positive(initial) {
        return Err(shape("initial_value", "a number above 0"));
    }
    if !(positive(factor) && factor > 1.0) {
        return Err(shape("exponential_factor", "a number above 1"));
    }
    Ok(ExponentialSearch { initial, factor })
}
