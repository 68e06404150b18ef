//! Messages out of JSON and YAML.

use serde_json::Value;

use super::fields::{Fields, MessageError};
use super::{
    AddressFamily, CommandLineOptions, ConnectionReuse, Counter, Endpoint, IdleStrategy,
    MultiTarget, Output, OutputFormat, Percentile, Protocol, Quantity, RequestMethod,
    RequestOptions, Statistic, UserDefinedOutput, Verbosity, WorkerResult, yaml,
};

/// The `Output` that `text` says in JSON.
///
/// # Errors
/// [`MessageError`] names the first field that is not one of the message, or that
/// holds something else. Fields of the options that are not known are kept.
pub fn read_json(text: &str) -> Result<Output, MessageError> {
    let value = serde_json::from_str(text).map_err(|error| MessageError::Json {
        problem: error.to_string(),
    })?;
    output(value)
}

/// The `Output` that `text` says in YAML.
///
/// # Errors
/// As [`read_json`].
pub fn read_yaml(text: &str) -> Result<Output, MessageError> {
    output(yaml::read(text)?)
}

fn output(value: Value) -> Result<Output, MessageError> {
    let mut fields = Fields::of(value, "")?;
    let options = fields.message("options")?;
    let results = fields.list("results")?.into_iter();
    let output = Output {
        options: options.map_or_else(|| Ok(CommandLineOptions::default()), options_of)?,
        results: results
            .map(|(value, path)| result(value, &path))
            .collect::<Result<_, _>>()?,
        timestamp: fields.timestamp("timestamp")?,
        version: fields.raw("version"),
    };
    fields.finish()?;
    Ok(output)
}

fn result(value: Value, path: &str) -> Result<WorkerResult, MessageError> {
    let mut fields = Fields::of(value, path)?;
    let statistics = fields.list("statistics")?.into_iter();
    let counters = fields.list("counters")?.into_iter();
    let outputs = fields.list("user_defined_outputs")?.into_iter();
    let result = WorkerResult {
        name: fields.text("name")?.unwrap_or_default(),
        statistics: statistics
            .map(|(value, path)| statistic(value, &path))
            .collect::<Result<_, _>>()?,
        counters: counters
            .map(|(value, path)| counter(value, &path))
            .collect::<Result<_, _>>()?,
        execution_duration: fields.duration("execution_duration")?,
        execution_start: fields.timestamp("execution_start")?,
        user_defined_outputs: outputs
            .map(|(value, path)| user_defined(value, &path))
            .collect::<Result<_, _>>()?,
    };
    fields.finish()?;
    Ok(result)
}

fn statistic(value: Value, path: &str) -> Result<Statistic, MessageError> {
    let mut fields = Fields::of(value, path)?;
    let percentiles = fields.list("percentiles")?.into_iter();
    let statistic = Statistic {
        count: fields.long("count")?.unwrap_or(0),
        id: fields.text("id")?.unwrap_or_default(),
        percentiles: percentiles
            .map(|(value, path)| percentile(value, &path))
            .collect::<Result<_, _>>()?,
        mean: quantity(&mut fields, "mean", "raw_mean")?,
        pstdev: quantity(&mut fields, "pstdev", "raw_pstdev")?,
        min: quantity(&mut fields, "min", "raw_min")?,
        max: quantity(&mut fields, "max", "raw_max")?,
    };
    fields.finish()?;
    Ok(statistic)
}

fn percentile(value: Value, path: &str) -> Result<Percentile, MessageError> {
    let mut fields = Fields::of(value, path)?;
    let percentile = Percentile {
        percentile: fields.number("percentile")?.unwrap_or(0.0),
        count: fields.long("count")?.unwrap_or(0),
        value: quantity(&mut fields, "duration", "raw_value")?,
    };
    fields.finish()?;
    Ok(percentile)
}

fn quantity(fields: &mut Fields, time: &str, raw: &str) -> Result<Option<Quantity>, MessageError> {
    if let Some(time) = fields.duration(time)? {
        return Ok(Some(Quantity::Time(time)));
    }
    Ok(fields.number(raw)?.map(Quantity::Raw))
}

fn counter(value: Value, path: &str) -> Result<Counter, MessageError> {
    let mut fields = Fields::of(value, path)?;
    let counter = Counter {
        name: fields.text("name")?.unwrap_or_default(),
        value: fields.long("value")?.unwrap_or(0),
    };
    fields.finish()?;
    Ok(counter)
}

fn user_defined(value: Value, path: &str) -> Result<UserDefinedOutput, MessageError> {
    let mut fields = Fields::of(value, path)?;
    let output = UserDefinedOutput {
        plugin_name: fields.text("plugin_name")?.unwrap_or_default(),
        typed_output: fields.raw("typed_output"),
        error_message: fields.text("error_message")?,
    };
    fields.finish()?;
    Ok(output)
}

/// The options that `value` says.
pub(super) fn options(value: Value) -> Result<CommandLineOptions, MessageError> {
    options_of(Fields::of(value, "options")?)
}

fn options_of(mut fields: Fields) -> Result<CommandLineOptions, MessageError> {
    let request_options = fields.message("request_options")?;
    let multi_target = fields.message("multi_target")?;
    let request_source = fields.message("request_source")?;
    let labels = fields.list("labels")?.into_iter();
    let sinks = fields.list("stats_sinks")?.into_iter();
    let plugins = fields.list("user_defined_plugin_configs")?.into_iter();
    let shape = shape_of(&mut fields)?;
    Ok(CommandLineOptions {
        verbosity: choice(
            &mut fields,
            "verbosity",
            Verbosity::from_name,
            Verbosity::from_number,
        )?,
        output_format: choice(
            &mut fields,
            "output_format",
            OutputFormat::from_name,
            OutputFormat::from_number,
        )?,
        request_options: request_options.map(request_options_of).transpose()?,
        request_source: request_source.map(request_source_of).transpose()?,
        uri: fields.text("uri")?,
        multi_target: multi_target.map(multi_target_of).transpose()?,
        trace: fields.text("trace")?,
        termination_predicates: fields.thresholds("termination_predicates")?,
        failure_predicates: fields.thresholds("failure_predicates")?,
        no_default_failure_predicates: fields.boolean("no_default_failure_predicates")?,
        nighthawk_service: fields.text("nighthawk_service")?,
        labels: labels.map(label).collect::<Result<_, _>>()?,
        simple_warmup: fields.boolean("simple_warmup")?,
        stats_sinks: sinks.map(|(value, _)| value).collect(),
        stats_flush_interval: fields.short("stats_flush_interval")?,
        stats_flush_interval_duration: fields.duration("stats_flush_interval_duration")?,
        latency_response_header_name: fields.text("latency_response_header_name")?,
        scheduled_start: fields.timestamp("scheduled_start")?,
        execution_id: fields.text("execution_id")?,
        user_defined_plugin_configs: plugins.map(|(value, _)| value).collect(),
        other: fields.rest(),
        ..shape
    })
}

/// How much load goes over how many connections.
fn shape_of(fields: &mut Fields) -> Result<CommandLineOptions, MessageError> {
    Ok(CommandLineOptions {
        requests_per_second: fields.short("requests_per_second")?,
        connections: fields.short("connections")?,
        duration: fields.duration("duration")?,
        no_duration: fields.boolean("no_duration")?,
        timeout: fields.duration("timeout")?,
        h2: fields.boolean("h2")?,
        protocol: choice(
            fields,
            "protocol",
            Protocol::from_name,
            Protocol::from_number,
        )?,
        concurrency: fields.text("concurrency")?,
        prefetch_connections: fields.boolean("prefetch_connections")?,
        burst_size: fields.short("burst_size")?,
        address_family: choice(
            fields,
            "address_family",
            AddressFamily::from_name,
            AddressFamily::from_number,
        )?,
        max_pending_requests: fields.short("max_pending_requests")?,
        max_active_requests: fields.short("max_active_requests")?,
        max_requests_per_connection: fields.short("max_requests_per_connection")?,
        sequencer_idle_strategy: choice(
            fields,
            "sequencer_idle_strategy",
            IdleStrategy::from_name,
            IdleStrategy::from_number,
        )?,
        experimental_h1_connection_reuse_strategy: choice(
            fields,
            "experimental_h1_connection_reuse_strategy",
            ConnectionReuse::from_name,
            ConnectionReuse::from_number,
        )?,
        open_loop: fields.boolean("open_loop")?,
        jitter_uniform: fields.duration("jitter_uniform")?,
        experimental_h2_use_multiple_connections: fields
            .boolean("experimental_h2_use_multiple_connections")?,
        max_concurrent_streams: fields.short("max_concurrent_streams")?,
        ..CommandLineOptions::default()
    })
}

fn label((value, path): (Value, String)) -> Result<String, MessageError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(MessageError::Shape {
            path,
            expected: "a text",
        }),
    }
}

/// Nighthawk wraps its enumerations in messages with one field, `value`.
fn choice<T>(
    fields: &mut Fields,
    name: &str,
    by_name: fn(&str) -> Option<T>,
    by_number: fn(u64) -> Option<T>,
) -> Result<Option<T>, MessageError> {
    let Some(mut wrapper) = fields.message(name)? else {
        return Ok(None);
    };
    let value = wrapper.one_of("value", by_name, by_number)?;
    wrapper.finish()?;
    Ok(value.or_else(|| by_number(0)))
}

fn request_source_of(mut fields: Fields) -> Result<String, MessageError> {
    let uri = fields.text("uri")?.unwrap_or_default();
    fields.finish()?;
    Ok(uri)
}

fn request_options_of(mut fields: Fields) -> Result<RequestOptions, MessageError> {
    let headers = fields.list("request_headers")?.into_iter();
    Ok(RequestOptions {
        request_method: fields.one_of(
            "request_method",
            RequestMethod::from_name,
            RequestMethod::from_number,
        )?,
        request_headers: headers
            .map(|(value, path)| header(value, &path))
            .collect::<Result<_, _>>()?,
        request_body_size: fields.short("request_body_size")?,
        json_body: fields.text("json_body")?.unwrap_or_default(),
    })
}

/// What to do where the header is there already is Envoy's matter.
fn header(value: Value, path: &str) -> Result<(String, String), MessageError> {
    let mut fields = Fields::of(value, path)?;
    let header = fields.message("header")?;
    let Some(mut header) = header else {
        return Ok(Default::default());
    };
    let key = header.text("key")?.unwrap_or_default();
    let value = header.text("value")?.unwrap_or_default();
    Ok((key, value))
}

fn multi_target_of(mut fields: Fields) -> Result<MultiTarget, MessageError> {
    let endpoints = fields.list("endpoints")?.into_iter();
    let target = MultiTarget {
        use_https: fields.boolean("use_https")?,
        endpoints: endpoints
            .map(|(value, path)| endpoint(value, &path))
            .collect::<Result<_, _>>()?,
        path: fields.text("path")?,
    };
    fields.finish()?;
    Ok(target)
}

fn endpoint(value: Value, path: &str) -> Result<Endpoint, MessageError> {
    let mut fields = Fields::of(value, path)?;
    let endpoint = Endpoint {
        address: fields.text("address")?,
        port: fields.short("port")?,
    };
    fields.finish()?;
    Ok(endpoint)
}
