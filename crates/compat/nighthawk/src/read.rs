//! Messages out of JSON and YAML.

use serde_json::Value;

use super::enums::Enumeration;
use super::fields::{Fields, MessageError, whole_message};
use super::{
    CommandLineOptions, Counter, Endpoint, MultiTarget, Output, Percentile, Quantity,
    RequestOptions, Statistic, UserDefinedOutput, WorkerResult, yaml,
};

/// Reads an `Output` from JSON.
///
/// # Errors
/// [`MessageError`] names the first field that is not one of the message, or that
/// holds something else. Fields of the options that are not known are kept.
pub fn read_json(text: &str) -> Result<Output, MessageError> {
    let value = serde_json::from_str(text).map_err(|error| MessageError::Json {
        problem: error.to_string(),
    })?;
    whole_message(value, "", output)
}

/// Reads an `Output` from YAML.
///
/// # Errors
/// As [`read_json`].
pub fn read_yaml(text: &str) -> Result<Output, MessageError> {
    whole_message(yaml::read(text)?, "", output)
}

/// Reads options.
pub(super) fn options(value: Value) -> Result<CommandLineOptions, MessageError> {
    whole_message(value, "options", options_of)
}

pub(super) fn output(fields: &mut Fields) -> Result<Output, MessageError> {
    Ok(Output {
        options: fields.message("options", options_of)?.unwrap_or_default(),
        results: fields.messages("results", result)?,
        timestamp: fields.timestamp("timestamp")?,
        version: fields.raw("version"),
    })
}

fn result(fields: &mut Fields) -> Result<WorkerResult, MessageError> {
    Ok(WorkerResult {
        name: fields.text("name")?.unwrap_or_default(),
        statistics: fields.messages("statistics", statistic)?,
        counters: fields.messages("counters", counter)?,
        execution_duration: fields.duration("execution_duration")?,
        execution_start: fields.timestamp("execution_start")?,
        user_defined_outputs: fields.messages("user_defined_outputs", user_defined)?,
    })
}

fn statistic(fields: &mut Fields) -> Result<Statistic, MessageError> {
    Ok(Statistic {
        count: fields.long("count")?.unwrap_or(0),
        id: fields.text("id")?.unwrap_or_default(),
        percentiles: fields.messages("percentiles", percentile)?,
        mean: quantity(fields, "mean", "raw_mean")?,
        pstdev: quantity(fields, "pstdev", "raw_pstdev")?,
        min: quantity(fields, "min", "raw_min")?,
        max: quantity(fields, "max", "raw_max")?,
    })
}

fn percentile(fields: &mut Fields) -> Result<Percentile, MessageError> {
    Ok(Percentile {
        percentile: fields.number("percentile")?.unwrap_or(0.0),
        count: fields.long("count")?.unwrap_or(0),
        value: quantity(fields, "duration", "raw_value")?,
    })
}

fn quantity(fields: &mut Fields, time: &str, raw: &str) -> Result<Option<Quantity>, MessageError> {
    if let Some(time) = fields.duration(time)? {
        return Ok(Some(Quantity::Time(time)));
    }
    Ok(fields.number_or_zero(raw)?.map(Quantity::Raw))
}

fn counter(fields: &mut Fields) -> Result<Counter, MessageError> {
    Ok(Counter {
        name: fields.text("name")?.unwrap_or_default(),
        value: fields.long("value")?.unwrap_or(0),
    })
}

fn user_defined(fields: &mut Fields) -> Result<UserDefinedOutput, MessageError> {
    Ok(UserDefinedOutput {
        plugin_name: fields.text("plugin_name")?.unwrap_or_default(),
        typed_output: fields.raw("typed_output"),
        error_message: fields.text("error_message")?,
    })
}

fn options_of(fields: &mut Fields) -> Result<CommandLineOptions, MessageError> {
    let unchanged = |value: Value, _: &str| Ok(value);
    let shape = shape_of(fields)?;
    Ok(CommandLineOptions {
        verbosity: choice(fields, "verbosity")?,
        output_format: choice(fields, "output_format")?,
        request_options: fields.message("request_options", request_options)?,
        request_source: fields.message("request_source", request_source)?,
        uri: fields.text("uri")?,
        multi_target: fields.message("multi_target", multi_target)?,
        trace: fields.text("trace")?,
        termination_predicates: fields.thresholds("termination_predicates")?,
        failure_predicates: fields.thresholds("failure_predicates")?,
        no_default_failure_predicates: fields.boolean("no_default_failure_predicates")?,
        nighthawk_service: fields.text("nighthawk_service")?,
        labels: fields.list("labels", label)?,
        simple_warmup: fields.boolean("simple_warmup")?,
        stats_sinks: fields.list("stats_sinks", unchanged)?,
        stats_flush_interval: fields.short("stats_flush_interval")?,
        stats_flush_interval_duration: fields.duration("stats_flush_interval_duration")?,
        latency_response_header_name: fields.text("latency_response_header_name")?,
        scheduled_start: fields.timestamp("scheduled_start")?,
        execution_id: fields.text("execution_id")?,
        user_defined_plugin_configs: fields.list("user_defined_plugin_configs", unchanged)?,
        raw_fields: fields.rest(),
        ..shape
    })
}

/// Reads rate, connections and duration.
fn shape_of(fields: &mut Fields) -> Result<CommandLineOptions, MessageError> {
    Ok(CommandLineOptions {
        requests_per_second: fields.short("requests_per_second")?,
        connections: fields.short("connections")?,
        duration: fields.duration("duration")?,
        no_duration: fields.boolean("no_duration")?,
        timeout: fields.duration("timeout")?,
        h2: fields.boolean("h2")?,
        protocol: choice(fields, "protocol")?,
        concurrency: fields.text("concurrency")?,
        prefetch_connections: fields.boolean("prefetch_connections")?,
        burst_size: fields.short("burst_size")?,
        address_family: choice(fields, "address_family")?,
        max_pending_requests: fields.short("max_pending_requests")?,
        max_active_requests: fields.short("max_active_requests")?,
        max_requests_per_connection: fields.short("max_requests_per_connection")?,
        sequencer_idle_strategy: choice(fields, "sequencer_idle_strategy")?,
        experimental_h1_connection_reuse_strategy: choice(
            fields,
            "experimental_h1_connection_reuse_strategy",
        )?,
        open_loop: fields.boolean("open_loop")?,
        jitter_uniform: fields.duration("jitter_uniform")?,
        experimental_h2_use_multiple_connections: fields
            .boolean("experimental_h2_use_multiple_connections")?,
        max_concurrent_streams: fields.short("max_concurrent_streams")?,
        ..CommandLineOptions::default()
    })
}

fn label(value: Value, path: &str) -> Result<String, MessageError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(MessageError::Shape {
            path: path.to_owned(),
            expected: "a text",
        }),
    }
}

/// Nighthawk wraps its enumerations in messages with one field, `value`; without
/// it the first one is meant.
fn choice<T: Enumeration>(fields: &mut Fields, name: &str) -> Result<Option<T>, MessageError> {
    let value = fields.message(name, |fields| fields.one_of("value"))?;
    Ok(value.and_then(|value: Option<T>| value.or_else(|| T::by_number(0))))
}

fn request_source(fields: &mut Fields) -> Result<String, MessageError> {
    Ok(fields.text("uri")?.unwrap_or_default())
}

fn request_options(fields: &mut Fields) -> Result<RequestOptions, MessageError> {
    let options = RequestOptions {
        request_method: fields.one_of("request_method")?,
        request_headers: fields.messages("request_headers", header)?,
        request_body_size: fields.short("request_body_size")?,
        json_body: fields.text("json_body")?.unwrap_or_default(),
    };
    // Newer versions have more of them.
    fields.rest();
    Ok(options)
}

fn header(fields: &mut Fields) -> Result<(String, String), MessageError> {
    let header = fields.message("header", |fields| {
        let key = fields.text("key")?.unwrap_or_default();
        let value = fields.text("value")?.unwrap_or_default();
        fields.rest();
        Ok((key, value))
    });
    // The action for a header that exists already is Envoy's choice.
    fields.rest();
    Ok(header?.unwrap_or_default())
}

fn multi_target(fields: &mut Fields) -> Result<MultiTarget, MessageError> {
    Ok(MultiTarget {
        use_https: fields.boolean("use_https")?,
        endpoints: fields.messages("endpoints", endpoint)?,
        path: fields.text("path")?,
    })
}

fn endpoint(fields: &mut Fields) -> Result<Endpoint, MessageError> {
    Ok(Endpoint {
        address: fields.text("address")?,
        port: fields.short("port")?,
    })
}
