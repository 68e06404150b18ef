//! Arguments as a request: the same as a message becomes.

use stillwell_nighthawk::Protocol;
use stillwell_nighthawk::request::{
    LogLevel, NighthawkContent, NighthawkLoad, NighthawkOutput, NighthawkRequest, NighthawkTarget,
    SequencerIdle,
};
use stillwell_units::Nanos;

use super::{
    NighthawkClientArguments, NighthawkIdle, NighthawkOutputArguments, NighthawkProtocol,
    NighthawkRequestArguments, NighthawkShapeArguments, NighthawkTargetArguments,
    NighthawkVerbosity,
};

impl From<NighthawkClientArguments> for NighthawkRequest {
    fn from(arguments: NighthawkClientArguments) -> Self {
        Self {
            uri: arguments.uri,
            target: arguments.target.into(),
            load: arguments.shape.into(),
            content: arguments.request.into(),
            output: arguments.output.into(),
        }
    }
}

impl From<NighthawkTargetArguments> for NighthawkTarget {
    fn from(arguments: NighthawkTargetArguments) -> Self {
        Self {
            multi_target_endpoint: arguments.multi_target_endpoint,
            multi_target_path: arguments.multi_target_path,
            multi_target_use_https: arguments.multi_target_use_https,
            protocol: arguments.protocol.map(Protocol::from),
            h2: arguments.h2,
            http3_protocol_options: arguments.http3_protocol_options,
            address_family: arguments.address_family.into(),
            upstream_bind_config: arguments.upstream_bind_config,
            tls_context: arguments.tls_context,
            transport_socket: arguments.transport_socket,
            tunnel_protocol: arguments.tunnel_protocol.map(Protocol::from),
            tunnel_uri: arguments.tunnel_uri,
            tunnel_tls_context: arguments.tunnel_tls_context,
        }
    }
}

impl From<NighthawkShapeArguments> for NighthawkLoad {
    fn from(arguments: NighthawkShapeArguments) -> Self {
        Self {
            rps: arguments.rps,
            connections: arguments.connections,
            duration: arguments.duration,
            no_duration: arguments.no_duration,
            timeout: arguments.timeout,
            concurrency: arguments.concurrency,
            open_loop: arguments.open_loop,
            burst_size: arguments.burst_size,
            jitter_uniform: arguments
                .jitter_uniform
                .or_else(|| arguments.uniform_distributed_jitter_range.map(Nanos::new)),
            rate_limiter_plugin_config: arguments.rate_limiter_plugin_config,
            max_pending_requests: arguments.max_pending_requests,
            max_active_requests: arguments.max_active_requests,
            max_requests_per_connection: arguments.max_requests_per_connection,
            max_concurrent_streams: arguments.max_concurrent_streams,
            experimental_h2_use_multiple_connections: arguments
                .experimental_h2_use_multiple_connections,
            experimental_h1_connection_reuse_strategy: arguments
                .experimental_h1_connection_reuse_strategy
                .into(),
            prefetch_connections: arguments.prefetch_connections,
            simple_warmup: arguments.simple_warmup,
            sequencer_idle_strategy: arguments.sequencer_idle_strategy.into(),
            termination_predicate: arguments.termination_predicate,
            failure_predicate: arguments.failure_predicate,
            no_default_failure_predicates: arguments.no_default_failure_predicates,
        }
    }
}

impl From<NighthawkRequestArguments> for NighthawkContent {
    fn from(arguments: NighthawkRequestArguments) -> Self {
        Self {
            request_method: arguments.request_method,
            request_header: arguments.request_header,
            request_body_size: arguments.request_body_size,
            request_body_file: arguments.request_body_file,
            makes_calls: arguments.grpc_mode.is_some(),
            request_source: arguments.request_source,
            request_source_plugin_config: arguments.request_source_plugin_config,
        }
    }
}

impl From<NighthawkOutputArguments> for NighthawkOutput {
    fn from(arguments: NighthawkOutputArguments) -> Self {
        Self {
            verbosity: arguments.verbosity.into(),
            output_format: arguments.output_format,
            label: arguments.label,
            trace: arguments.trace,
            stats_sinks: arguments.stats_sinks,
            stats_sink_address: arguments.stats_sink_address,
            stats_flush_interval: arguments.stats_flush_interval,
            stats_flush_interval_duration: arguments.stats_flush_interval_duration,
            latency_response_header_name: arguments.latency_response_header_name,
            user_defined_plugin_config: arguments.user_defined_plugin_config,
            nighthawk_service: arguments.nighthawk_service,
        }
    }
}

impl_from!(NighthawkProtocol => Protocol { Http1, Http2, Http3 });
impl_from!(NighthawkIdle => SequencerIdle { Spin, Poll, Sleep });
impl_from!(NighthawkVerbosity => LogLevel { Trace, Debug, Info, Warn, Error, Critical });
