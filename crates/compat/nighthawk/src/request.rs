//! A load with all options of `nighthawk_client`: a command line and a message both
//! become a [`NighthawkRequest`], which is checked and planned here.
//!
//! * `TryFrom<&CommandLineOptions>`: reads a message, as it arrives over gRPC;
//! * [`NighthawkRequest::check`]: refuses options that contradict each other;
//! * [`NighthawkRequest::options`]: the same load as a message, for results and services;
//! * [`NighthawkRequest::plan`]: the plan of the load;
//! * [`values`]: parsers and ranges of single options.

mod check;
mod endpoints;
mod error;
mod message;
mod options;
mod plan;
mod tunnel;
pub mod values;

use std::path::PathBuf;

use stillwell_plan::load::{PredicatePlan, Reuse};
use stillwell_run::AddressFamily;
use stillwell_units::Nanos;

use crate::Protocol;
use crate::format::LoadFormat;
use crate::multiplexing::ACTIVE_REQUESTS_DEFAULT;
use stillwell_config::requests::{Concurrency, Header};

pub use error::{RequestError, value_refusal};
pub use plan::current_zipkin_uri;

/// A load with all of Nighthawk's options. Quantities are those of each worker.
/// Messages of Envoy are text: JSON or YAML in one line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NighthawkRequest {
    /// URL of the target; http if it has no scheme.
    pub uri: Option<String>,
    /// Targets and protocols.
    pub target: NighthawkTarget,
    /// Amount of load.
    pub load: NighthawkLoad,
    /// Method, headers and body of requests.
    pub content: NighthawkContent,
    /// Log, result and exporters.
    pub output: NighthawkOutput,
}

/// Targets and protocols.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NighthawkTarget {
    /// Addresses that requests go to in turn, each `HOST:PORT`.
    pub multi_target_endpoint: Vec<String>,
    /// Path on all of these addresses.
    pub multi_target_path: Option<String>,
    /// TLS with all of these addresses.
    pub multi_target_use_https: bool,
    /// Protocol of connections; `None` for HTTP/1.
    pub protocol: Option<Protocol>,
    /// HTTP/2, by the older flag.
    pub h2: bool,
    /// `envoy.config.core.v3.Http3ProtocolOptions`.
    pub http3_protocol_options: Option<String>,
    /// Addresses of a name that are used.
    pub address_family: AddressFamily,
    /// Envoy's `BindConfig`.
    pub upstream_bind_config: Option<String>,
    /// Envoy's `UpstreamTlsContext`.
    pub tls_context: Option<String>,
    /// Envoy's `TransportSocket`.
    pub transport_socket: Option<String>,
    /// Protocol between client and proxy.
    pub tunnel_protocol: Option<Protocol>,
    /// URL of the proxy.
    pub tunnel_uri: Option<String>,
    /// Envoy's `UpstreamTlsContext` for the proxy.
    pub tunnel_tls_context: Option<String>,
}

/// Amount of load: rate, connections and end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NighthawkLoad {
    /// Requests per second.
    pub rps: u32,
    /// Maximum number of connections.
    pub connections: u32,
    /// Duration of sending; `None` for 5 s.
    pub duration: Option<Nanos>,
    /// No limit of time.
    pub no_duration: bool,
    /// Timeout of connecting.
    pub timeout: Nanos,
    /// Number of workers.
    pub concurrency: Concurrency,
    /// Requests that find no free connection are dropped.
    pub open_loop: bool,
    /// Requests that are sent at once; 0 for no bursts.
    pub burst_size: u32,
    /// Maximum random delay of each request.
    pub jitter_uniform: Option<Nanos>,
    /// Nighthawk's plugin for a rate that grows.
    pub rate_limiter_plugin_config: Option<String>,
    /// Maximum number of requests that wait.
    pub max_pending_requests: u32,
    /// Maximum number of requests in flight, for HTTP/2.
    pub max_active_requests: u32,
    /// Maximum number of requests over one connection.
    pub max_requests_per_connection: u32,
    /// Maximum number of requests in flight on one connection of HTTP/2.
    pub max_concurrent_streams: Option<u32>,
    /// One request at a time on each of several connections of HTTP/2.
    pub experimental_h2_use_multiple_connections: bool,
    /// Idle connection that is used next.
    pub experimental_h1_connection_reuse_strategy: Reuse,
    /// All connections open before the start.
    pub prefetch_connections: bool,
    /// One request of each worker before the start.
    pub simple_warmup: bool,
    /// Method of waiting for the next request.
    pub sequencer_idle_strategy: SequencerIdle,
    /// Predicates that end the load with success.
    pub termination_predicate: Vec<NighthawkPredicate>,
    /// Predicates that end the load with failure.
    pub failure_predicate: Vec<NighthawkPredicate>,
    /// No failure predicates by default.
    pub no_default_failure_predicates: bool,
}

/// Method, headers and body of requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NighthawkContent {
    /// Method in upper case.
    pub request_method: String,
    /// Headers in order.
    pub request_header: Vec<Header>,
    /// Bytes of the body.
    pub request_body_size: u32,
    /// File with the body.
    pub request_body_file: Option<PathBuf>,
    /// Requests are gRPC calls with one message, over HTTP/2.
    pub makes_calls: bool,
    /// URI of a gRPC service that hands out requests.
    pub request_source: Option<String>,
    /// Nighthawk's plugin with a list of requests.
    pub request_source_plugin_config: Option<String>,
}

/// Log, result and exporters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NighthawkOutput {
    /// Least severe level that is logged.
    pub verbosity: LogLevel,
    /// Format of the result.
    pub output_format: LoadFormat,
    /// Labels of the result.
    pub label: Vec<String>,
    /// URI that spans are exported to.
    pub trace: Option<String>,
    /// Envoy's `StatsSink` messages.
    pub stats_sinks: Vec<String>,
    /// Address, as `HOST:PORT`, of a stats sink with `tcp_cluster_name`.
    pub stats_sink_address: Option<String>,
    /// Seconds between two exports to stats sinks; `None` for 5.
    pub stats_flush_interval: Option<u32>,
    /// The same as a time.
    pub stats_flush_interval_duration: Option<Nanos>,
    /// Response header with a number of nanoseconds to record; empty for none.
    pub latency_response_header_name: String,
    /// `nighthawk.log_response_headers_plugin` messages.
    pub user_defined_plugin_config: Vec<String>,
    /// URI of a gRPC service that executes the load.
    pub nighthawk_service: Option<String>,
}

/// A counter with its threshold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NighthawkPredicate {
    /// Name of the counter as typed.
    pub name: String,
    /// Counter and threshold.
    pub plan: PredicatePlan,
}

/// Method of waiting for the next request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SequencerIdle {
    /// Spins at the end.
    #[default]
    Spin,
    /// Sleeps.
    Poll,
    /// Sleeps.
    Sleep,
}

/// Level of a log, the least severe first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LogLevel {
    /// Answers and their connections.
    Trace,
    /// Progress once per second.
    Debug,
    /// Actions.
    Info,
    /// Possible mistakes.
    Warn,
    /// Failures.
    Error,
    /// As error.
    Critical,
}

impl NighthawkLoad {
    /// Nighthawk's defaults.
    pub const DEFAULT: Self = Self {
        rps: 5,
        connections: 100,
        duration: None,
        no_duration: false,
        timeout: Nanos::from_secs(30),
        concurrency: Concurrency::Workers(1),
        open_loop: false,
        burst_size: 0,
        jitter_uniform: None,
        rate_limiter_plugin_config: None,
        max_pending_requests: 0,
        max_active_requests: ACTIVE_REQUESTS_DEFAULT,
        max_requests_per_connection: values::COUNT_MAX,
        max_concurrent_streams: None,
        experimental_h2_use_multiple_connections: false,
        experimental_h1_connection_reuse_strategy: Reuse::Mru,
        prefetch_connections: false,
        simple_warmup: false,
        sequencer_idle_strategy: SequencerIdle::Spin,
        termination_predicate: Vec::new(),
        failure_predicate: Vec::new(),
        no_default_failure_predicates: false,
    };
}

impl Default for NighthawkLoad {
    fn default() -> Self {
        Self::DEFAULT
    }
}
