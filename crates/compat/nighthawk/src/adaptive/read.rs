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
    let name = "nighthawk_traffic_template";
    let raw = fields.raw(name).ok_or_else(|| required(name))?;
    Fields::of(raw.clone(), name)?.message("request_options", known_request)?;
    let template = read::options(raw)?;
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
    let search = plugin(fields, "step_controller_config", search)?;
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

/// Checks that a request has known fields only. Results of newer versions may have unknown ones, which
/// `read::options` ignores.
fn known_request(fields: &mut Fields) -> Result<(), MessageError> {
    for name in ["request_method", "request_body_size", "json_body"] {
        fields.raw(name);
    }
    fields.messages("request_headers", known_header)?;
    Ok(())
}

/// Checks that a header of a request has known fields only.
fn known_header(fields: &mut Fields) -> Result<(), MessageError> {
    // The action for a header that exists already is Envoy's choice.
    for name in ["append", "append_action", "keep_empty_value"] {
        fields.raw(name);
    }
    fields.message("header", |fields| {
        fields.raw("key");
        fields.raw("value");
        Ok(())
    })?;
    Ok(())
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
        if weight <= 0.0 {
            return Err(MessageError::Shape {
                path: fields.at("weight"),
                expected:
                    "above 0; list metrics that do not decide under informational_metric_specs",
            });
        }
        let scoring = plugin(fields, "scoring_function", scoring)?;
        Ok((scoring, weight))
    })?;
    let (scoring, weight) = scored.ok_or_else(|| required(&fields.at("threshold_spec")))?;
    Ok(Threshold {
        spec: spec.ok_or_else(|| required(&fields.at("metric_spec")))?,
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
            path: fields.at("metrics_plugin_name"),
            expected: "nighthawk.builtin: there are no other plugins",
        });
    }
    let metric = fields.text("metric_name")?;
    let metric = metric.ok_or_else(|| required(&fields.at("metric_name")))?;
    if !BUILTIN_METRICS.contains(&metric.as_str()) {
        return Err(MessageError::Shape {
            path: fields.at("metric_name"),
            expected: "a metric of nighthawk.builtin, such as success-rate or latency-ns-mean",
        });
    }
    Ok(MetricSpec {
        metric,
        plugin: plugin.unwrap_or_else(|| BUILTIN.to_owned()),
    })
}

/// Reads the plugin in the field `name`. `read` gets the plugin's name, the path of the field, and
/// the plugin's configuration.
fn plugin<T>(
    fields: &mut Fields,
    name: &'static str,
    read: fn(&str, &str, &mut Fields) -> Result<T, MessageError>,
) -> Result<T, MessageError> {
    let path = fields.at(name);
    let plugin = fields.message(name, extension)?;
    let (plugin_name, config) = plugin.ok_or_else(|| required(&path))?;
    let mut config = Fields::of(config, &format!("{path}.typed_config"))?;
    config.raw("@type");
    let settings = read(&plugin_name, &path, &mut config)?;
    config.finish()?;
    Ok(settings)
}

/// Reads Envoy's `TypedExtensionConfig`: a plugin's name, and its configuration, empty by default.
fn extension(fields: &mut Fields) -> Result<(String, Value), MessageError> {
    let name = fields.text("name")?.unwrap_or_default();
    let config = fields.raw("typed_config");
    let config = config.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    Ok((name, config))
}

fn scoring(name: &str, path: &str, fields: &mut Fields) -> Result<Scoring, MessageError> {
    let shape = |field: &str, expected| MessageError::Shape {
        path: format!("{path}.{field}"),
        expected,
    };
    match name {
        "nighthawk.binary_scoring" => {
            let lower = fields.number("lower_threshold")?;
            let upper = fields.number("upper_threshold")?;
            if lower.is_none() && upper.is_none() {
                let expected = "a message with lower_threshold or upper_threshold";
                return Err(shape("typed_config", expected));
            }
            Ok(Scoring::Binary { lower, upper })
        }
        "nighthawk.linear_scoring" => {
            let threshold = fields.number("threshold")?.unwrap_or(0.0);
            let scale = fields.number("scaling_constant")?;
            // With 0 each score is 0, and the threshold holds for each value.
            let scale = scale.filter(|scale| *scale != 0.0).ok_or_else(|| {
                let expected = "a message with a scaling_constant that is not 0";
                shape("typed_config", expected)
            })?;
            Ok(Scoring::Linear { threshold, scale })
        }
        _ => Err(shape(
            "name",
            "nighthawk.binary_scoring or nighthawk.linear_scoring",
        )),
    }
}

fn search(name: &str, path: &str, fields: &mut Fields) -> Result<ExponentialSearch, MessageError> {
    let shape = |field: &str, expected| MessageError::Shape {
        path: format!("{path}.{field}"),
        expected,
    };
    if name != "nighthawk.exponential_search" {
        return Err(shape("name", "nighthawk.exponential_search"));
    }
    let setter = fields.message("input_variable_setter", extension)?;
    if setter.is_some_and(|(name, _)| name != "nighthawk.rps") {
        let field = "typed_config.input_variable_setter.name";
        return Err(shape(field, "nighthawk.rps"));
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
        return Err(shape("typed_config.initial_value", "a number above 0"));
    }
    if !(positive(factor) && factor > 1.0) {
        let field = "typed_config.exponential_factor";
        return Err(shape(field, "a number above 1"));
    }
    Ok(ExponentialSearch { initial, factor })
}
