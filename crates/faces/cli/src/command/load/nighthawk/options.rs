//! What was asked for, as Nighthawk's message, which its results carry.

use serde_json::json;
use stillwell_nighthawk::envoy::EnvoyMessage;
use stillwell_nighthawk::format::LoadFormat;
use stillwell_nighthawk::{
    AddressFamily, CommandLineOptions, ConnectionReuse, Endpoint, IdleStrategy, MultiTarget,
    OutputFormat, Protocol, RequestMethod, RequestOptions, Verbosity,
};

use super::plan::{DURATION, FAILURES, thresholds};
use crate::arguments::{
    Concurrency, FamilyName, NighthawkClientArguments, NighthawkIdle, NighthawkProtocol,
    NighthawkShape, NighthawkTelling, NighthawkVerbosity, ReuseName,
};

/// All of it, defaults too.
pub(super) fn of(arguments: &NighthawkClientArguments) -> anyhow::Result<CommandLineOptions> {
    let NighthawkClientArguments {
        uri,
        target,
        request,
        telling,
        ..
    } = arguments;
    let mut options = shape(&arguments.shape);
    tell(telling, &mut options);
    options.uri.clone_from(uri);
    options.multi_target = uri.is_none().then(|| MultiTarget {
        use_https: Some(target.multi_target_use_https),
        endpoints: target
            .multi_target_endpoint
            .iter()
            .map(|it| endpoint(it))
            .collect(),
        path: target.multi_target_path.clone(),
    });
    options.h2 = target.h2.then_some(true);
    options.protocol = (!target.h2).then_some(match target.protocol {
        None | Some(NighthawkProtocol::Http1) => Protocol::Http1,
        Some(NighthawkProtocol::Http2) => Protocol::Http2,
        Some(NighthawkProtocol::Http3) => Protocol::Http3,
    });
    options.address_family = Some(match target.address_family {
        FamilyName::Auto => AddressFamily::Auto,
        FamilyName::V4 => AddressFamily::V4,
        FamilyName::V6 => AddressFamily::V6,
    });
    options.request_source.clone_from(&request.request_source);
    // One of the three says what is sent.
    if request.request_source_plugin_config.is_none() && request.request_source.is_none() {
        let headers = request.request_header.iter();
        options.request_options = Some(RequestOptions {
            request_method: RequestMethod::from_name(&request.request_method),
            request_headers: headers.map(|it| (it.0.clone(), it.1.clone())).collect(),
            request_body_size: Some(request.request_body_size),
            json_body: String::new(),
        });
    }
    messages(arguments, &mut options)?;
    Ok(options)
}

/// Messages of Envoy, as they stand.
fn messages(
    arguments: &NighthawkClientArguments,
    options: &mut CommandLineOptions,
) -> anyhow::Result<()> {
    let NighthawkClientArguments {
        target,
        request,
        telling,
        ..
    } = arguments;
    for (field, flag, value) in [
        ("tls_context", "--tls-context", &target.tls_context),
        (
            "transport_socket",
            "--transport-socket",
            &target.transport_socket,
        ),
        (
            "upstream_bind_config",
            "--upstream-bind-config",
            &target.upstream_bind_config,
        ),
        (
            "request_source_plugin_config",
            "--request-source-plugin-config",
            &request.request_source_plugin_config,
        ),
        (
            "http3_protocol_options",
            "--http3-protocol-options",
            &target.http3_protocol_options,
        ),
        (
            "rate_limiter_plugin_config",
            "--rate-limiter-plugin-config",
            &arguments.shape.rate_limiter_plugin_config,
        ),
    ] {
        if let Some(text) = value {
            let message = EnvoyMessage::parse(flag, text)?;
            options.other.insert(field.to_owned(), message.json());
        }
    }
    if let (Some(uri), Some(protocol)) = (&target.tunnel_uri, target.tunnel_protocol) {
        let name = match protocol {
            NighthawkProtocol::Http1 => "HTTP1",
            NighthawkProtocol::Http2 => "HTTP2",
            NighthawkProtocol::Http3 => "HTTP3",
        };
        let mut tunnel = json!({ "tunnel_uri": uri, "tunnel_protocol": { "value": name } });
        if let Some(text) = &target.tunnel_tls_context {
            let message = EnvoyMessage::parse("--tunnel-tls-context", text)?;
            tunnel["tunnel_tls_context"] = message.json();
        }
        options.other.insert("tunnel_options".to_owned(), tunnel);
    }
    for text in &telling.stats_sinks {
        let message = EnvoyMessage::parse("--stats-sinks", text)?;
        options.stats_sinks.push(message.json());
    }
    for text in &telling.user_defined_plugin_config {
        let message = EnvoyMessage::parse("--user-defined-plugin-config", text)?;
        options.user_defined_plugin_configs.push(message.json());
    }
    Ok(())
}

fn endpoint(text: &str) -> Endpoint {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    Endpoint {
        address: Some(host.trim_matches(['[', ']']).to_owned()),
        port: port.parse().ok(),
    }
}

fn shape(shape: &NighthawkShape) -> CommandLineOptions {
    let failure_predicates =
        if shape.failure_predicate.is_empty() && !shape.no_default_failure_predicates {
            FAILURES.map(|name| (name.to_owned(), 0)).into()
        } else {
            thresholds(&shape.failure_predicate)
        };
    CommandLineOptions {
        requests_per_second: Some(shape.rps),
        connections: Some(shape.connections),
        duration: (!shape.no_duration).then(|| shape.duration.unwrap_or(DURATION)),
        no_duration: shape.no_duration.then_some(true),
        timeout: Some(shape.timeout),
        concurrency: Some(match shape.concurrency {
            Concurrency::Auto => "auto".to_owned(),
            Concurrency::Workers(workers) => workers.to_string(),
        }),
        prefetch_connections: Some(shape.prefetch_connections),
        burst_size: Some(shape.burst_size),
        max_pending_requests: Some(shape.max_pending_requests),
        max_active_requests: Some(shape.max_active_requests),
        max_requests_per_connection: Some(shape.max_requests_per_connection),
        sequencer_idle_strategy: Some(match shape.sequencer_idle_strategy {
            NighthawkIdle::Spin => IdleStrategy::Spin,
            NighthawkIdle::Poll => IdleStrategy::Poll,
            NighthawkIdle::Sleep => IdleStrategy::Sleep,
        }),
        experimental_h1_connection_reuse_strategy: Some(
            match shape.experimental_h1_connection_reuse_strategy {
                ReuseName::Mru => ConnectionReuse::Mru,
                ReuseName::Lru => ConnectionReuse::Lru,
            },
        ),
        termination_predicates: thresholds(&shape.termination_predicate),
        failure_predicates,
        no_default_failure_predicates: Some(shape.no_default_failure_predicates),
        open_loop: Some(shape.open_loop),
        jitter_uniform: shape.jitter_uniform,
        experimental_h2_use_multiple_connections: Some(
            shape.experimental_h2_use_multiple_connections,
        ),
        max_concurrent_streams: Some(shape.max_concurrent_streams.unwrap_or(2_147_483_647)),
        simple_warmup: Some(shape.simple_warmup),
        ..CommandLineOptions::default()
    }
}

fn tell(telling: &NighthawkTelling, options: &mut CommandLineOptions) {
    options.verbosity = Some(match telling.verbosity {
        NighthawkVerbosity::Trace => Verbosity::Trace,
        NighthawkVerbosity::Debug => Verbosity::Debug,
        NighthawkVerbosity::Info => Verbosity::Info,
        NighthawkVerbosity::Warn => Verbosity::Warn,
        NighthawkVerbosity::Error => Verbosity::Error,
        NighthawkVerbosity::Critical => Verbosity::Critical,
    });
    options.output_format = Some(match telling.output_format {
        LoadFormat::Human | LoadFormat::NighthawkHuman => OutputFormat::Human,
        LoadFormat::Json => OutputFormat::Json,
        LoadFormat::Yaml => OutputFormat::Yaml,
        LoadFormat::Dotted => OutputFormat::Dotted,
        LoadFormat::Csv => OutputFormat::Csv,
        LoadFormat::Prometheus => OutputFormat::Prometheus,
        LoadFormat::Fortio => OutputFormat::Fortio,
        LoadFormat::FortioPedantic => OutputFormat::ExperimentalFortioPedantic,
        // Nighthawk has no name for ours.
        LoadFormat::Hgrm | LoadFormat::Hlog | LoadFormat::Stillwell => OutputFormat::Default,
    });
    options.labels.clone_from(&telling.label);
    options.trace.clone_from(&telling.trace);
    options.stats_flush_interval = telling.stats_flush_interval;
    options.stats_flush_interval_duration = telling.stats_flush_interval_duration;
    let header = &telling.latency_response_header_name;
    options.latency_response_header_name = Some(header.clone());
}
