//! `nighthawk.client.CommandLineOptions`.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use stillwell_units::Nanos;

use super::{
    AddressFamily, ConnectionReuse, IdleStrategy, OutputFormat, Protocol, RequestMethod, Tree,
    Verbosity,
};

/// `nighthawk.client.CommandLineOptions`. Options that were not given are `None`; quantities
/// are for each worker. Messages of Envoy are kept unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandLineOptions {
    /// Requests a second, for each worker.
    pub requests_per_second: Option<u32>,
    /// Connections of each worker.
    pub connections: Option<u32>,
    /// Duration of sending.
    pub duration: Option<Nanos>,
    /// No end.
    pub no_duration: Option<bool>,
    /// Timeout of connecting.
    pub timeout: Option<Nanos>,
    /// HTTP/2, in the old way of saying it.
    pub h2: Option<bool>,
    /// The protocol.
    pub protocol: Option<Protocol>,
    /// A number of workers, or `auto`.
    pub concurrency: Option<String>,
    /// Level of the log.
    pub verbosity: Option<Verbosity>,
    /// Format of the result.
    pub output_format: Option<OutputFormat>,
    /// True to open all connections before the start.
    pub prefetch_connections: Option<bool>,
    /// Requests released together.
    pub burst_size: Option<u32>,
    /// Addresses that a name may resolve to.
    pub address_family: Option<AddressFamily>,
    /// Method, headers and body.
    pub request_options: Option<RequestOptions>,
    /// URI of a service that hands out requests.
    pub request_source: Option<String>,
    /// Requests that wait beyond those at work.
    pub max_pending_requests: Option<u32>,
    /// Requests at once.
    pub max_active_requests: Option<u32>,
    /// Requests after which a connection is closed.
    pub max_requests_per_connection: Option<u32>,
    /// Method of waiting for the next request.
    pub sequencer_idle_strategy: Option<IdleStrategy>,
    /// URL of the target.
    pub uri: Option<String>,
    /// Or several of them.
    pub multi_target: Option<MultiTarget>,
    /// URI that spans are exported to.
    pub trace: Option<String>,
    /// Choice of the idle connection for the next request.
    pub experimental_h1_connection_reuse_strategy: Option<ConnectionReuse>,
    /// Counters beyond whose threshold a worker ends.
    pub termination_predicates: BTreeMap<String, u64>,
    /// Counters beyond whose threshold a worker fails.
    pub failure_predicates: BTreeMap<String, u64>,
    /// No failure predicates but those that are given.
    pub no_default_failure_predicates: Option<bool>,
    /// True to keep the schedule although the target is slow.
    pub open_loop: Option<bool>,
    /// The most that is randomly added to each release.
    pub jitter_uniform: Option<Nanos>,
    /// URI of a service that makes the load.
    pub nighthawk_service: Option<String>,
    /// Several HTTP/2 connections, in the old way of saying it.
    pub experimental_h2_use_multiple_connections: Option<bool>,
    /// Streams at once on each connection.
    pub max_concurrent_streams: Option<u32>,
    /// Labels of the load.
    pub labels: Vec<String>,
    /// One request before the load.
    pub simple_warmup: Option<bool>,
    /// Receivers of statistics: Envoy's `StatsSink` messages.
    pub stats_sinks: Vec<Value>,
    /// Seconds between two of those.
    pub stats_flush_interval: Option<u32>,
    /// The same as a time.
    pub stats_flush_interval_duration: Option<Nanos>,
    /// The response header that holds a latency.
    pub latency_response_header_name: Option<String>,
    /// When to begin, since the Unix epoch.
    pub scheduled_start: Option<Nanos>,
    /// Identifier of the execution.
    pub execution_id: Option<String>,
    /// Plugins that look at answers: Envoy's messages.
    pub user_defined_plugin_configs: Vec<Value>,
    /// Every other field by its name, unchanged: `tls_context`, `transport_socket`,
    /// `upstream_bind_config`, `http3_protocol_options`, `request_source_plugin_config`,
    /// `rate_limiter_plugin_config`, `tunnel_options`, and fields of newer versions.
    pub raw_fields: Map<String, Value>,
}

/// `nighthawk.client.RequestOptions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestOptions {
    /// The method.
    pub request_method: Option<RequestMethod>,
    /// Names and values, in order.
    pub request_headers: Vec<(String, String)>,
    /// Bytes of the body.
    pub request_body_size: Option<u32>,
    /// A body in JSON; empty for none.
    pub json_body: String,
}

/// `nighthawk.client.MultiTarget`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MultiTarget {
    /// True for TLS.
    pub use_https: Option<bool>,
    /// Addresses that requests go to in turn.
    pub endpoints: Vec<Endpoint>,
    /// The path on all of them.
    pub path: Option<String>,
}

/// `nighthawk.client.MultiTarget.Endpoint`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Endpoint {
    /// A name or an address.
    pub address: Option<String>,
    /// From 1 to 65535.
    pub port: Option<u32>,
}

impl CommandLineOptions {
    /// The JSON form.
    #[must_use]
    pub fn to_tree(&self) -> Tree {
        super::write::options(self)
    }

    /// Returns the URLs of the targets; none if the options name no target.
    #[must_use]
    pub fn targets(&self) -> Vec<String> {
        match (&self.uri, &self.multi_target) {
            (Some(uri), _) => vec![uri.clone()],
            (None, Some(target)) => target.urls(),
            (None, None) => Vec::new(),
        }
    }
}

impl MultiTarget {
    /// Returns the URL of each endpoint.
    fn urls(&self) -> Vec<String> {
        let scheme = match self.use_https {
            Some(true) => "https",
            Some(false) | None => "http",
        };
        let path = self.path.as_deref().unwrap_or("/");
        let endpoints = self.endpoints.iter();
        endpoints
            .map(|endpoint| format!("{scheme}://{}{path}", endpoint.authority()))
            .collect()
    }
}

impl Endpoint {
    /// Reads `host:port`. A port that is no number is absent.
    pub(crate) fn of_authority(text: &str) -> Self {
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        Self {
            address: Some(host.trim_matches(['[', ']']).to_owned()),
            port: port.parse().ok(),
        }
    }

    /// Returns `host:port`, with brackets around an IPv6 address.
    pub(crate) fn authority(&self) -> String {
        let host = self.address.as_deref().unwrap_or_default();
        let port = self.port.unwrap_or(0);
        let is_bare = host.contains(':') && !host.starts_with('[');
        match is_bare {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        }
    }
}

impl Serialize for CommandLineOptions {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Value::from(self.to_tree()).serialize(to)
    }
}

impl<'de> Deserialize<'de> for CommandLineOptions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        super::read::options(value).map_err(D::Error::custom)
    }
}
