//! A load as it is read from a message.

use serde_json::Value;
use stillwell_config::requests::{Concurrency, Header};
use stillwell_plan::load::Reuse;
use stillwell_run::AddressFamily as UsedFamily;

use super::error::RequestError;
use super::values::{self, CountRange, PredicateKind};
use super::{
    LogLevel, NighthawkContent, NighthawkLoad, NighthawkOutput, NighthawkPredicate,
    NighthawkRequest, NighthawkTarget, SequencerIdle,
};
use crate::format::{GRPC_MODE, LoadFormat, NighthawkFormat};
use crate::{
    AddressFamily, CommandLineOptions, ConnectionReuse, IdleStrategy, MultiTarget, OutputFormat,
    Protocol, RequestMethod, Verbosity,
};

/// Messages of Envoy and Nighthawk that have a flag each.
const MESSAGES: [&str; 6] = [
    "tls_context",
    "transport_socket",
    "upstream_bind_config",
    "http3_protocol_options",
    "request_source_plugin_config",
    "rate_limiter_plugin_config",
];

/// Field of Nighthawk's clients of 2020, which always send it. It has no effect, because both
/// versions are read.
const DEPRECATED_API: &str = "allow_envoy_deprecated_v2_api";

impl TryFrom<&CommandLineOptions> for NighthawkRequest {
    type Error = RequestError;

    /// Reads a message. Absent options have the command line's defaults, except that
    /// only warnings are logged and results are JSON. `nighthawk_service`,
    /// `scheduled_start` and `execution_id` are left to the caller.
    ///
    /// # Errors
    /// The first option that is unknown or outside of its range.
    fn try_from(options: &CommandLineOptions) -> Result<Self, RequestError> {
        let request_header = headers(options)?;
        if let Some(name) = options.raw_fields.keys().find(|name| !is_known(name)) {
            return Err(RequestError::Unknown { name: name.clone() });
        }
        Ok(Self {
            load: load(options)?,
            output: output(options)?,
            content: content(options, request_header)?,
            target: target(options)?,
            uri: options.uri.clone(),
        })
    }
}

fn is_known(name: &str) -> bool {
    MESSAGES.contains(&name) || ["tunnel_options", GRPC_MODE, DEPRECATED_API].contains(&name)
}

fn headers(options: &CommandLineOptions) -> Result<Vec<Header>, RequestError> {
    let Some(options) = &options.request_options else {
        return Ok(Vec::new());
    };
    let header = |(name, value): &(String, String)| {
        // A pseudo-header begins with a colon.
        if name.get(1..).is_none_or(|rest| rest.contains(':')) {
            return Err(RequestError::HeaderName { name: name.clone() });
        }
        Ok(Header(name.trim().to_owned(), value.trim().to_owned()))
    };
    let headers = options.request_headers.iter().map(header);
    let headers = headers.collect::<Result<_, _>>()?;
    if !options.json_body.is_empty() {
        return Err(RequestError::JsonBody);
    }
    Ok(headers)
}

/// Names the option that refuses its value.
fn refused(flag: &'static str) -> impl Fn(String) -> RequestError {
    move |problem| RequestError::Value { flag, problem }
}

fn count(
    flag: &'static str,
    range: CountRange,
    number: Option<u32>,
) -> Result<Option<u32>, RequestError> {
    let number = number.map(|number| range.check(number));
    number.transpose().map_err(refused(flag))
}

fn load(options: &CommandLineOptions) -> Result<NighthawkLoad, RequestError> {
    let usual = NighthawkLoad::DEFAULT;
    let concurrency = options.concurrency.as_deref();
    let is_set = |value: Option<bool>| value == Some(true);
    Ok(NighthawkLoad {
        rps: count("--rps", values::RPS, options.requests_per_second)?.unwrap_or(usual.rps),
        connections: count("--connections", values::CONNECTIONS, options.connections)?
            .unwrap_or(usual.connections),
        duration: options.duration,
        no_duration: is_set(options.no_duration),
        timeout: options.timeout.unwrap_or(usual.timeout),
        concurrency: concurrency
            .map_or(Ok(Concurrency::Workers(1)), values::concurrency)
            .map_err(refused("--concurrency"))?,
        prefetch_connections: is_set(options.prefetch_connections),
        burst_size: count("--burst-size", values::BURST_SIZE, options.burst_size)?
            .unwrap_or(usual.burst_size),
        max_pending_requests: count(
            "--max-pending-requests",
            values::PENDING_REQUESTS,
            options.max_pending_requests,
        )?
        .unwrap_or(usual.max_pending_requests),
        max_active_requests: count(
            "--max-active-requests",
            values::ACTIVE_REQUESTS,
            options.max_active_requests,
        )?
        .unwrap_or(usual.max_active_requests),
        max_requests_per_connection: count(
            "--max-requests-per-connection",
            values::REQUESTS_PER_CONNECTION,
            options.max_requests_per_connection,
        )?
        .unwrap_or(usual.max_requests_per_connection),
        max_concurrent_streams: count(
            "--max-concurrent-streams",
            values::CONCURRENT_STREAMS,
            options.max_concurrent_streams,
        )?
        // Clients always send a number.
        .filter(|streams| *streams != values::UNLIMITED_STREAMS),
        sequencer_idle_strategy: idle(options.sequencer_idle_strategy),
        experimental_h1_connection_reuse_strategy: reuse(
            options.experimental_h1_connection_reuse_strategy,
        ),
        experimental_h2_use_multiple_connections: is_set(
            options.experimental_h2_use_multiple_connections,
        ),
        open_loop: is_set(options.open_loop),
        jitter_uniform: options.jitter_uniform,
        simple_warmup: is_set(options.simple_warmup),
        rate_limiter_plugin_config: message(options, "rate_limiter_plugin_config"),
        termination_predicate: predicates(
            PredicateKind::Termination,
            "--termination-predicate",
            options.termination_predicates.iter(),
        )?,
        failure_predicate: predicates(
            PredicateKind::Failure,
            "--failure-predicate",
            options.failure_predicates.iter(),
        )?,
        no_default_failure_predicates: is_set(options.no_default_failure_predicates),
    })
}

fn predicates<'t>(
    kind: PredicateKind,
    flag: &'static str,
    thresholds: impl Iterator<Item = (&'t String, &'t u64)>,
) -> Result<Vec<NighthawkPredicate>, RequestError> {
    let predicates = thresholds.map(|(name, threshold)| kind.named(name, *threshold));
    predicates.collect::<Result<_, _>>().map_err(refused(flag))
}

const fn idle(strategy: Option<IdleStrategy>) -> SequencerIdle {
    match strategy {
        None | Some(IdleStrategy::Default | IdleStrategy::Spin) => SequencerIdle::Spin,
        Some(IdleStrategy::Poll) => SequencerIdle::Poll,
        Some(IdleStrategy::Sleep) => SequencerIdle::Sleep,
    }
}

const fn reuse(strategy: Option<ConnectionReuse>) -> Reuse {
    match strategy {
        None | Some(ConnectionReuse::Default | ConnectionReuse::Mru) => Reuse::Mru,
        Some(ConnectionReuse::Lru) => Reuse::Lru,
    }
}

fn output(options: &CommandLineOptions) -> Result<NighthawkOutput, RequestError> {
    let messages = |values: &[Value]| values.iter().map(Value::to_string).collect();
    // Clients always send an interval, also without sinks, where it has no effect.
    let has_sinks = !options.stats_sinks.is_empty();
    let interval = options.stats_flush_interval;
    let interval = count("--stats-flush-interval", values::FLUSH_INTERVAL, interval)?;
    let header = &options.latency_response_header_name;
    Ok(NighthawkOutput {
        verbosity: match options.verbosity {
            Some(Verbosity::Trace) => LogLevel::Trace,
            Some(Verbosity::Debug) => LogLevel::Debug,
            Some(Verbosity::Info) => LogLevel::Info,
            None | Some(Verbosity::Default | Verbosity::Warn) => LogLevel::Warn,
            Some(Verbosity::Error) => LogLevel::Error,
            Some(Verbosity::Critical) => LogLevel::Critical,
        },
        output_format: match options.output_format {
            Some(OutputFormat::Human) => LoadFormat::HUMAN,
            other => LoadFormat::Nighthawk(nighthawk_format(other)),
        },
        label: options.labels.clone(),
        trace: options.trace.clone().filter(|uri| !uri.is_empty()),
        stats_sinks: messages(&options.stats_sinks),
        stats_sink_address: None,
        stats_flush_interval: interval.filter(|_| has_sinks),
        stats_flush_interval_duration: options.stats_flush_interval_duration.filter(|_| has_sinks),
        latency_response_header_name: header.clone().unwrap_or_default(),
        user_defined_plugin_config: messages(&options.user_defined_plugin_configs),
        nighthawk_service: None,
    })
}

fn content(
    options: &CommandLineOptions,
    request_header: Vec<Header>,
) -> Result<NighthawkContent, RequestError> {
    let request = options.request_options.as_ref();
    let method = request
        .and_then(|request| request.request_method)
        .filter(|method| *method != RequestMethod::Unspecified)
        .unwrap_or(RequestMethod::Get);
    let size = request.and_then(|request| request.request_body_size);
    Ok(NighthawkContent {
        request_method: method.name().to_owned(),
        request_header,
        request_body_size: count("--request-body-size", values::BODY_SIZE, size)?.unwrap_or(0),
        request_body_file: None,
        makes_calls: options.raw_fields.contains_key(GRPC_MODE),
        request_source: options.request_source.clone(),
        request_source_plugin_config: message(options, "request_source_plugin_config"),
    })
}

fn target(options: &CommandLineOptions) -> Result<NighthawkTarget, RequestError> {
    let tunnel = options.raw_fields.get("tunnel_options");
    let target = NighthawkTarget {
        protocol: options.protocol,
        h2: options.h2 == Some(true),
        http3_protocol_options: message(options, "http3_protocol_options"),
        address_family: match options.address_family {
            None | Some(AddressFamily::Auto) => UsedFamily::Any,
            Some(AddressFamily::V4) => UsedFamily::V4,
            Some(AddressFamily::V6) => UsedFamily::V6,
        },
        upstream_bind_config: message(options, "upstream_bind_config"),
        tls_context: message(options, "tls_context"),
        transport_socket: message(options, "transport_socket"),
        tunnel_protocol: tunnel.map(tunnel_protocol).transpose()?.flatten(),
        tunnel_uri: tunnel
            .and_then(|tunnel| tunnel.get("tunnel_uri")?.as_str())
            .filter(|uri| !uri.is_empty())
            .map(str::to_owned),
        tunnel_tls_context: tunnel
            .and_then(|tunnel| Some(tunnel.get("tunnel_tls_context")?.to_string())),
        ..NighthawkTarget::default()
    };
    let Some(MultiTarget {
        use_https,
        endpoints,
        path,
    }) = &options.multi_target
    else {
        return Ok(target);
    };
    let endpoint = |endpoint: &crate::Endpoint| values::endpoint(&endpoint.authority());
    let endpoints = endpoints.iter().map(endpoint).collect::<Result<_, _>>();
    Ok(NighthawkTarget {
        multi_target_endpoint: endpoints.map_err(refused("--multi-target-endpoint"))?,
        multi_target_path: path.clone(),
        multi_target_use_https: *use_https == Some(true),
        ..target
    })
}

/// Reads the protocol to a proxy: the first one if its message is empty.
fn tunnel_protocol(tunnel: &Value) -> Result<Option<Protocol>, RequestError> {
    let Some(protocol) = tunnel.get("tunnel_protocol") else {
        return Ok(None);
    };
    let name = protocol.get("value").and_then(Value::as_str);
    match name.unwrap_or("HTTP1") {
        "DEFAULT" => Ok(None),
        name => match Protocol::from_name(name) {
            Some(protocol) => Ok(Some(protocol)),
            None => Err(RequestError::Value {
                flag: "--tunnel-protocol",
                problem: format!("`{name}` is none of HTTP1, HTTP2 and HTTP3"),
            }),
        },
    }
}

/// Returns the text of a message.
fn message(options: &CommandLineOptions, name: &str) -> Option<String> {
    options.raw_fields.get(name).map(Value::to_string)
}

/// Returns the format by Nighthawk's name; JSON without one.
const fn nighthawk_format(format: Option<OutputFormat>) -> NighthawkFormat {
    match format {
        None | Some(OutputFormat::Default | OutputFormat::Json) => NighthawkFormat::Json,
        Some(OutputFormat::Human) => NighthawkFormat::Human,
        Some(OutputFormat::Yaml) => NighthawkFormat::Yaml,
        Some(OutputFormat::Dotted) => NighthawkFormat::Dotted,
        Some(OutputFormat::Fortio) => NighthawkFormat::Fortio,
        Some(OutputFormat::ExperimentalFortioPedantic) => NighthawkFormat::FortioPedantic,
        Some(OutputFormat::Csv) => NighthawkFormat::Csv,
        Some(OutputFormat::Prometheus) => NighthawkFormat::Prometheus,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stillwell_units::Nanos;

    use super::*;
    use crate::RequestOptions;
    use crate::wire::{ExecutionRequest, Schema, decode_request};

    fn refusal(options: &CommandLineOptions) -> String {
        NighthawkRequest::try_from(options).unwrap_err().to_string()
    }

    #[test]
    fn what_has_no_words_is_refused() {
        let mut options = CommandLineOptions::default();
        options
            .raw_fields
            .insert("future".to_owned(), Value::from(1));
        assert_eq!(refusal(&options), "options.future is not supported");
        let options = CommandLineOptions {
            request_options: Some(RequestOptions {
                request_headers: vec![("a:b".to_owned(), "c".to_owned())],
                ..RequestOptions::default()
            }),
            ..CommandLineOptions::default()
        };
        assert!(refusal(&options).contains("`a:b` is not a header name"));
    }

    /// Returns `options` as they arrive over gRPC.
    fn received(options: &Value) -> CommandLineOptions {
        let request = json!({ "start_request": { "options": options } });
        let name = "nighthawk.client.ExecutionRequest";
        let bytes = Schema::shared().encode(name, &request).unwrap();
        match decode_request(&bytes).unwrap() {
            ExecutionRequest::Start(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    /// Everything that Nighthawk's client sends if nothing but the URI was typed.
    fn defaults_of_nighthawk() -> Value {
        json!({
            "connections": 100,
            "duration": "5s",
            "requests_per_second": 5,
            "timeout": "30s",
            "uri": "http://a/",
            "concurrency": "1",
            "verbosity": { "value": "INFO" },
            "output_format": { "value": "HUMAN" },
            "prefetch_connections": false,
            "burst_size": 0,
            "address_family": { "value": "AUTO" },
            "request_options": { "request_method": "GET", "request_body_size": 0 },
            "max_pending_requests": 0,
            "max_active_requests": 100,
            "max_requests_per_connection": 4_294_937_295_u32,
            "sequencer_idle_strategy": { "value": "SPIN" },
            "trace": "",
            "experimental_h1_connection_reuse_strategy": { "value": "MRU" },
            "failure_predicates": {
                "benchmark.http_4xx": "0",
                "benchmark.http_5xx": "0",
                "benchmark.pool_connection_failure": "0",
                "requestsource.upstream_rq_5xx": "0",
            },
            "open_loop": false,
            "nighthawk_service": "",
            "experimental_h2_use_multiple_connections": false,
            "simple_warmup": false,
            "stats_flush_interval": 5,
            "latency_response_header_name": "",
        })
    }

    #[test]
    fn the_defaults_that_nighthawks_clients_always_send_are_accepted() {
        let mut of_2020 = defaults_of_nighthawk();
        of_2020["h2"] = json!(false);
        of_2020["allow_envoy_deprecated_v2_api"] = json!(false);
        let mut of_today = defaults_of_nighthawk();
        of_today["protocol"] = json!({ "value": "HTTP1" });
        of_today["max_concurrent_streams"] = json!(2_147_483_647);
        of_today["no_default_failure_predicates"] = json!(false);
        of_today["failure_predicates"]["benchmark.stream_resets"] = json!("0");
        for sent in [of_2020, of_today] {
            let request = NighthawkRequest::try_from(&received(&sent)).unwrap();
            assert!(request.check().is_ok(), "{:?}", request.check());
            assert_eq!(request.load.duration, Some(Nanos::from_secs(5)));
            assert_eq!(request.load.max_concurrent_streams, None);
            assert_eq!(request.output.stats_flush_interval, None);
        }
    }

    #[test]
    fn an_interval_of_stats_sinks_is_read_with_its_sinks() {
        let mut options = CommandLineOptions {
            uri: Some("http://a/".to_owned()),
            stats_flush_interval: Some(7),
            ..CommandLineOptions::default()
        };
        let interval = |options: &CommandLineOptions| {
            let request = NighthawkRequest::try_from(options).unwrap();
            assert!(request.check().is_ok(), "{:?}", request.check());
            request.output.stats_flush_interval
        };
        assert_eq!(interval(&options), None);
        options.stats_sinks = vec![json!({ "name": "envoy.stat_sinks.statsd" })];
        assert_eq!(interval(&options), Some(7));
    }

    #[test]
    fn values_are_refused_with_their_flag() {
        let options = CommandLineOptions {
            requests_per_second: Some(0),
            ..CommandLineOptions::default()
        };
        let expected = "Invalid value for --rps: value must be inside range [1, 1000000]";
        assert_eq!(refusal(&options), expected);
        let options = CommandLineOptions {
            failure_predicates: [("a".to_owned(), 1)].into(),
            ..CommandLineOptions::default()
        };
        let expected = "Failure predicate 'a:1' is badly formatted.";
        assert!(refusal(&options).starts_with(expected));
    }
}
