//! The same load as a message, which results and services carry.

use serde_json::json;
use stillwell_config::requests::Concurrency;
use stillwell_plan::load::Reuse;
use stillwell_run::AddressFamily as UsedFamily;

use super::error::RequestError;
use super::plan::{DURATION, FAILURES, thresholds};
use super::values::UNLIMITED_STREAMS;
use super::{LogLevel, NighthawkLoad, NighthawkOutput, NighthawkRequest, SequencerIdle};
use crate::envoy::EnvoyMessage;
use crate::format::{GRPC_MODE, LoadFormat, NighthawkFormat};
use crate::{
    AddressFamily, CommandLineOptions, ConnectionReuse, Endpoint, IdleStrategy, MultiTarget,
    OutputFormat, Protocol, RequestMethod, RequestOptions, Verbosity,
};

impl NighthawkRequest {
    /// Returns the load as a message, defaults included.
    ///
    /// # Errors
    /// A message of Envoy that is neither JSON nor YAML.
    pub fn options(&self) -> Result<CommandLineOptions, RequestError> {
        let Self {
            uri,
            target,
            content,
            output,
            ..
        } = self;
        let mut options = load_options(&self.load);
        set_output(output, &mut options);
        options.uri.clone_from(uri);
        options.multi_target = uri.is_none().then(|| MultiTarget {
            use_https: Some(target.multi_target_use_https),
            endpoints: target
                .multi_target_endpoint
                .iter()
                .map(|address| Endpoint::of_authority(address))
                .collect(),
            path: target.multi_target_path.clone(),
        });
        options.h2 = target.h2.then_some(true);
        options.protocol = (!target.h2).then_some(target.protocol.unwrap_or(Protocol::Http1));
        options.address_family = Some(match target.address_family {
            UsedFamily::Any => AddressFamily::Auto,
            UsedFamily::V4 => AddressFamily::V4,
            UsedFamily::V6 => AddressFamily::V6,
        });
        options.request_source.clone_from(&content.request_source);
        // A source replaces the request of the flags.
        if content.request_source_plugin_config.is_none() && content.request_source.is_none() {
            let headers = content.request_header.iter();
            options.request_options = Some(RequestOptions {
                request_method: RequestMethod::from_name(&content.request_method),
                request_headers: headers
                    .map(|header| (header.0.clone(), header.1.clone()))
                    .collect(),
                request_body_size: Some(content.request_body_size),
                json_body: String::new(),
            });
        }
        set_messages(self, &mut options)?;
        Ok(options)
    }
}

/// Adds messages of Envoy unchanged.
fn set_messages(
    request: &NighthawkRequest,
    options: &mut CommandLineOptions,
) -> Result<(), RequestError> {
    let NighthawkRequest {
        target,
        load,
        content,
        output,
        ..
    } = request;
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
            &content.request_source_plugin_config,
        ),
        (
            "http3_protocol_options",
            "--http3-protocol-options",
            &target.http3_protocol_options,
        ),
        (
            "rate_limiter_plugin_config",
            "--rate-limiter-plugin-config",
            &load.rate_limiter_plugin_config,
        ),
    ] {
        if let Some(text) = value {
            let message = EnvoyMessage::parse(flag, text)?;
            options.raw_fields.insert(field.to_owned(), message.json());
        }
    }
    if let (Some(uri), Some(protocol)) = (&target.tunnel_uri, target.tunnel_protocol) {
        let name = protocol.name();
        let mut tunnel = json!({ "tunnel_uri": uri, "tunnel_protocol": { "value": name } });
        if let Some(text) = &target.tunnel_tls_context {
            let message = EnvoyMessage::parse("--tunnel-tls-context", text)?;
            tunnel["tunnel_tls_context"] = message.json();
        }
        options
            .raw_fields
            .insert("tunnel_options".to_owned(), tunnel);
    }
    if content.makes_calls {
        options
            .raw_fields
            .insert(GRPC_MODE.to_owned(), "UNARY".into());
    }
    for text in &output.stats_sinks {
        let message = EnvoyMessage::parse("--stats-sinks", text)?;
        options.stats_sinks.push(message.json());
    }
    for text in &output.user_defined_plugin_config {
        let message = EnvoyMessage::parse("--user-defined-plugin-config", text)?;
        options.user_defined_plugin_configs.push(message.json());
    }
    Ok(())
}

fn load_options(load: &NighthawkLoad) -> CommandLineOptions {
    let failure_predicates =
        if load.failure_predicate.is_empty() && !load.no_default_failure_predicates {
            FAILURES.map(|name| (name.to_owned(), 0)).into()
        } else {
            thresholds(&load.failure_predicate)
        };
    CommandLineOptions {
        requests_per_second: Some(load.rps),
        connections: Some(load.connections),
        duration: (!load.no_duration).then(|| load.duration.unwrap_or(DURATION)),
        no_duration: load.no_duration.then_some(true),
        timeout: Some(load.timeout),
        concurrency: Some(match load.concurrency {
            Concurrency::Auto => "auto".to_owned(),
            Concurrency::Workers(workers) => workers.to_string(),
        }),
        prefetch_connections: Some(load.prefetch_connections),
        burst_size: Some(load.burst_size),
        max_pending_requests: Some(load.max_pending_requests),
        max_active_requests: Some(load.max_active_requests),
        max_requests_per_connection: Some(load.max_requests_per_connection),
        sequencer_idle_strategy: Some(match load.sequencer_idle_strategy {
            SequencerIdle::Spin => IdleStrategy::Spin,
            SequencerIdle::Poll => IdleStrategy::Poll,
            SequencerIdle::Sleep => IdleStrategy::Sleep,
        }),
        experimental_h1_connection_reuse_strategy: Some(
            match load.experimental_h1_connection_reuse_strategy {
                Reuse::Mru => ConnectionReuse::Mru,
                Reuse::Lru => ConnectionReuse::Lru,
            },
        ),
        termination_predicates: thresholds(&load.termination_predicate),
        failure_predicates,
        no_default_failure_predicates: Some(load.no_default_failure_predicates),
        open_loop: Some(load.open_loop),
        jitter_uniform: load.jitter_uniform,
        experimental_h2_use_multiple_connections: Some(
            load.experimental_h2_use_multiple_connections,
        ),
        max_concurrent_streams: Some(load.max_concurrent_streams.unwrap_or(UNLIMITED_STREAMS)),
        simple_warmup: Some(load.simple_warmup),
        ..CommandLineOptions::default()
    }
}

fn set_output(output: &NighthawkOutput, options: &mut CommandLineOptions) {
    options.verbosity = Some(match output.verbosity {
        LogLevel::Trace => Verbosity::Trace,
        LogLevel::Debug => Verbosity::Debug,
        LogLevel::Info => Verbosity::Info,
        LogLevel::Warn => Verbosity::Warn,
        LogLevel::Error => Verbosity::Error,
        LogLevel::Critical => Verbosity::Critical,
    });
    options.output_format = Some(match output.output_format {
        LoadFormat::HUMAN => OutputFormat::Human,
        // Nighthawk has no name for these.
        LoadFormat::Native(_) => OutputFormat::Default,
        LoadFormat::Nighthawk(format) => match format {
            NighthawkFormat::Human | NighthawkFormat::Human2020 => OutputFormat::Human,
            NighthawkFormat::Json => OutputFormat::Json,
            NighthawkFormat::Yaml => OutputFormat::Yaml,
            NighthawkFormat::Dotted => OutputFormat::Dotted,
            NighthawkFormat::Csv => OutputFormat::Csv,
            NighthawkFormat::Prometheus => OutputFormat::Prometheus,
            NighthawkFormat::Fortio | NighthawkFormat::Fortio2020 => OutputFormat::Fortio,
            NighthawkFormat::FortioPedantic => OutputFormat::ExperimentalFortioPedantic,
        },
    });
    options.labels.clone_from(&output.label);
    options.trace.clone_from(&output.trace);
    options.stats_flush_interval = output.stats_flush_interval;
    options.stats_flush_interval_duration = output.stats_flush_interval_duration;
    let header = &output.latency_response_header_name;
    options.latency_response_header_name = Some(header.clone());
}
