//! Arguments of `nighthawk_client`: Nighthawk's flags, with its defaults.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use stillwell_nighthawk::format::LoadFormat;
use stillwell_nighthawk::request::values::{
    self, concurrency, endpoint, failure, header, output_format, termination,
};
use stillwell_nighthawk::request::{NighthawkLoad, NighthawkPredicate};
use stillwell_units::Nanos;

use super::{Concurrency, FamilyName, Header, ReuseName};

mod request;

/// A load under Nighthawk's name: quantities are those of each worker.
#[derive(Debug, Parser)]
#[command(
    name = "nighthawk_client",
    version,
    disable_help_subcommand = true,
    args_override_self = false,
    after_help = "Exit codes: 0, or 1 for any failure."
)]
pub(crate) struct NighthawkClientArguments {
    /// URL of the target; http if it has no scheme
    #[arg(value_name = "URI")]
    pub(crate) uri: Option<String>,
    #[command(flatten)]
    pub(crate) target: NighthawkTargetArguments,
    #[command(flatten)]
    pub(crate) shape: NighthawkShapeArguments,
    #[command(flatten)]
    pub(crate) request: NighthawkRequestArguments,
    #[command(flatten)]
    pub(crate) output: NighthawkOutputArguments,
}

/// Targets and protocols.
#[derive(Args, Debug)]
#[command(next_help_heading = "Target and protocol")]
pub(crate) struct NighthawkTargetArguments {
    /// Target address with its port; repeatable: requests go to all of them in turn
    #[arg(long, value_name = "HOST:PORT", value_parser = endpoint)]
    pub(crate) multi_target_endpoint: Vec<String>,
    /// Request path for all targets of --multi-target-endpoint
    #[arg(long, value_name = "PATH")]
    pub(crate) multi_target_path: Option<String>,
    /// Use TLS with all targets of --multi-target-endpoint
    #[arg(long)]
    pub(crate) multi_target_use_https: bool,
    /// Protocol of connections [default: http1]
    #[arg(short, long, value_enum)]
    pub(crate) protocol: Option<NighthawkProtocol>,
    /// The same as --protocol http2
    #[arg(long)]
    pub(crate) h2: bool,
    /// No effect: messages of version 2 are read
    #[arg(long)]
    allow_envoy_deprecated_v2_api: bool,
    /// Options of HTTP/3, as JSON of envoy.config.core.v3.Http3ProtocolOptions; only
    /// the maximum number of streams has an effect
    #[arg(long, value_name = "JSON")]
    pub(crate) http3_protocol_options: Option<String>,
    /// Address family of resolved names
    #[arg(long, value_enum, default_value_t = FamilyName::Auto)]
    pub(crate) address_family: FamilyName,
    /// The local address of connections: Envoy's BindConfig as JSON or YAML in
    /// one line
    #[arg(long, value_name = "JSON")]
    pub(crate) upstream_bind_config: Option<String>,
    /// TLS: Envoy's UpstreamTlsContext as JSON or YAML in one line
    #[arg(long, value_name = "JSON")]
    pub(crate) tls_context: Option<String>,
    /// TLS: Envoy's TransportSocket as JSON or YAML in one line
    #[arg(long, value_name = "JSON")]
    pub(crate) transport_socket: Option<String>,
    /// Protocol to the proxy of --tunnel-uri: http1, http2 or http3
    #[arg(long, value_enum)]
    pub(crate) tunnel_protocol: Option<NighthawkProtocol>,
    /// URL of a proxy; requests go through its CONNECT tunnels
    #[arg(long, value_name = "URI")]
    pub(crate) tunnel_uri: Option<String>,
    /// TLS to the proxy: Envoy's UpstreamTlsContext as JSON or YAML in one
    /// line [default: TLS for a URI with https]
    #[arg(long, value_name = "JSON")]
    pub(crate) tunnel_tls_context: Option<String>,
}

/// Rate, connections and duration of the load.
#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
pub(crate) struct NighthawkShapeArguments {
    /// Requests per second of each worker
    #[arg(
        long, value_name = "N", default_value_t = NighthawkLoad::DEFAULT.rps,
        allow_negative_numbers = true, value_parser = values::RPS.reader()
    )]
    pub(crate) rps: u32,
    /// Maximum number of connections of each worker
    #[arg(
        long, value_name = "N", default_value_t = NighthawkLoad::DEFAULT.connections,
        allow_negative_numbers = true, value_parser = values::CONNECTIONS.reader()
    )]
    pub(crate) connections: u32,
    /// Duration of sending: seconds, or a time such as 500ms [default: 5]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::seconds)]
    pub(crate) duration: Option<Nanos>,
    /// Send until a predicate or a signal ends it
    #[arg(long)]
    pub(crate) no_duration: bool,
    /// Timeout of connecting: seconds, or a time
    #[arg(long, value_name = "TIME", default_value = "30", allow_negative_numbers = true, value_parser = values::seconds)]
    pub(crate) timeout: Nanos,
    /// Workers: a number, or auto for one on each CPU
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = concurrency)]
    pub(crate) concurrency: Concurrency,
    /// Drop requests that find no free connection instead of delaying them
    #[arg(long)]
    pub(crate) open_loop: bool,
    /// Send requests in bursts of N
    #[arg(
        long, value_name = "N", default_value_t = NighthawkLoad::DEFAULT.burst_size,
        allow_negative_numbers = true, value_parser = values::BURST_SIZE.reader()
    )]
    pub(crate) burst_size: u32,
    /// Delay each request by a random time up to TIME, such as .00001s
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::length)]
    pub(crate) jitter_uniform: Option<Nanos>,
    /// The same in nanoseconds
    #[arg(long, value_name = "N", conflicts_with = "jitter_uniform")]
    pub(crate) uniform_distributed_jitter_range: Option<u64>,
    /// Ramp of the rate: nighthawk.linear-ramping-rate-limiter-plugin as JSON or
    /// YAML in one line
    #[arg(long, value_name = "JSON")]
    pub(crate) rate_limiter_plugin_config: Option<String>,
    /// Maximum number of waiting requests of each worker
    #[arg(
        long, value_name = "N", default_value_t = NighthawkLoad::DEFAULT.max_pending_requests,
        allow_negative_numbers = true, value_parser = values::PENDING_REQUESTS.reader()
    )]
    pub(crate) max_pending_requests: u32,
    /// Maximum number of requests in flight of each worker, for HTTP/2
    #[arg(
        long, value_name = "N", default_value_t = NighthawkLoad::DEFAULT.max_active_requests,
        allow_negative_numbers = true, value_parser = values::ACTIVE_REQUESTS.reader()
    )]
    pub(crate) max_active_requests: u32,
    /// Maximum number of requests on each connection
    #[arg(
        long, value_name = "N", default_value_t = NighthawkLoad::DEFAULT.max_requests_per_connection,
        allow_negative_numbers = true, value_parser = values::REQUESTS_PER_CONNECTION.reader()
    )]
    pub(crate) max_requests_per_connection: u32,
    /// Maximum number of requests in flight on one HTTP/2 connection
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::CONCURRENT_STREAMS.reader())]
    pub(crate) max_concurrent_streams: Option<u32>,
    /// Use several HTTP/2 connections, with one request at a time on each
    #[arg(long)]
    pub(crate) experimental_h2_use_multiple_connections: bool,
    /// Order of reuse of idle connections
    #[arg(long, value_enum, default_value_t = ReuseName::Mru)]
    pub(crate) experimental_h1_connection_reuse_strategy: ReuseName,
    /// Open all connections before the start
    #[arg(long)]
    pub(crate) prefetch_connections: bool,
    /// Send one request of each worker before the start
    #[arg(long)]
    pub(crate) simple_warmup: bool,
    /// Method of waiting for the next request
    #[arg(long, value_enum, default_value_t = NighthawkIdle::Spin)]
    pub(crate) sequencer_idle_strategy: NighthawkIdle,
    /// Stop with success when a counter exceeds a threshold; repeatable
    #[arg(long, value_name = "COUNTER:N", value_parser = termination)]
    pub(crate) termination_predicate: Vec<NighthawkPredicate>,
    /// Stop with failure when a counter exceeds a threshold; repeatable
    #[arg(long, value_name = "COUNTER:N", value_parser = failure)]
    pub(crate) failure_predicate: Vec<NighthawkPredicate>,
    /// Do not fail because of error statuses, lost connections or resets
    #[arg(long)]
    pub(crate) no_default_failure_predicates: bool,
}

/// Method, headers and body of requests.
#[derive(Args, Debug)]
#[command(next_help_heading = "Requests")]
pub(crate) struct NighthawkRequestArguments {
    /// Method of requests
    #[arg(long, value_name = "METHOD", default_value = "GET", value_parser = METHODS)]
    pub(crate) request_method: String,
    /// A header, as `name: value`; repeatable
    #[arg(long, value_name = "HEADER", value_parser = header)]
    pub(crate) request_header: Vec<Header>,
    /// Length of the body of requests
    #[arg(long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true, value_parser = values::BODY_SIZE.reader())]
    pub(crate) request_body_size: u32,
    /// The body of requests
    #[arg(long, value_name = "FILE")]
    pub(crate) request_body_file: Option<PathBuf>,
    /// Make gRPC calls over HTTP/2, each with the body as its only message
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) grpc_mode: Option<NighthawkGrpcMode>,
    /// gRPC service that supplies requests during the load, such as
    /// grpc://localhost:8443; it gets the token of STILLWELL_SERVICE_TOKEN, if set
    #[arg(long, value_name = "URI")]
    pub(crate) request_source: Option<String>,
    /// Requests from a list: nighthawk.file-based-request-source-plugin or
    /// nighthawk.in-line-options-list-request-source-plugin as JSON or YAML in one
    /// line
    #[arg(long, value_name = "JSON")]
    pub(crate) request_source_plugin_config: Option<String>,
}

/// Log, result and exporters.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct NighthawkOutputArguments {
    /// Level of the log on standard error
    #[arg(short, long, value_name = "LEVEL", default_value = "info", value_enum)]
    pub(crate) verbosity: NighthawkVerbosity,
    /// Format of the result on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = output_format)]
    pub(crate) output_format: LoadFormat,
    /// Label in the result; repeatable
    #[arg(long)]
    pub(crate) label: Vec<String>,
    /// URI that spans are exported to, such as zipkin://localhost:9411/api/v2/spans
    #[arg(long, value_name = "URI")]
    pub(crate) trace: Option<String>,
    /// Export counts during the load: Envoy's StatsSink as JSON or YAML in
    /// one line; repeatable
    #[arg(long, value_name = "JSON")]
    pub(crate) stats_sinks: Vec<String>,
    /// Address of a stats sink with `tcp_cluster_name`
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) stats_sink_address: Option<String>,
    /// Seconds between two exports to stats sinks [default: 5]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::FLUSH_INTERVAL.reader())]
    pub(crate) stats_flush_interval: Option<u32>,
    /// Interval of exports to stats sinks as a time, such as 0.5s
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::length)]
    pub(crate) stats_flush_interval_duration: Option<Nanos>,
    /// Response header with a number of nanoseconds to record
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        alias = "response-latency-header-name"
    )]
    pub(crate) latency_response_header_name: String,
    /// Log response headers on standard error:
    /// nighthawk.log_response_headers_plugin as JSON or YAML in one line; repeatable
    #[arg(long, value_name = "JSON")]
    pub(crate) user_defined_plugin_config: Vec<String>,
    /// gRPC service that runs the load, such as grpc://localhost:8443
    #[arg(long, value_name = "URI")]
    pub(crate) nighthawk_service: Option<String>,
}

/// The methods that there are names for.
const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// Protocol of connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum NighthawkProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3, only over TLS.
    Http3,
}

/// Kind of gRPC calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum NighthawkGrpcMode {
    /// One message in each direction.
    Unary,
}

/// Method of waiting for the next request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum NighthawkIdle {
    /// Spins at the end.
    Spin,
    /// Sleeps.
    Poll,
    /// Sleeps.
    Sleep,
}

/// Level of the log on standard error; each level includes those after it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
pub(crate) enum NighthawkVerbosity {
    /// Two lines for each response over HTTP/1.1 as well.
    Trace,
    /// Progress once a second as well.
    Debug,
    /// Actions.
    Info,
    /// Possible problems.
    Warn,
    /// Failures.
    Error,
    /// As error.
    Critical,
}
