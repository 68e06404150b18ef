//! Nighthawk's test server: the part of Envoy's configuration that it needs.
//!
//! Listeners, HTTP filters, TLS and admin are read, in today's shape and in that
//! of version 2 (`config` for `typed_config`, `tls_context` for
//! `transport_socket`). Keys of Envoy that do not change what a test server sends are
//! accepted with a warning. Any other key is an error.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::Path;

use stillwell_config::Diagnostics;
use stillwell_config::files::{Disk, Files, read_source};
use stillwell_plan::ServePlan;
use stillwell_plan::serve::{
    AnswerPlan, ChainClients, FaultsPlan, FilterSet, ResponseOptions, ServeAdminPlan,
    ServeChainPlan, ServeHeaders, ServeListenerPlan, ServeProtocols,
};
use stillwell_text::{Keys, Node, Reader, Value, code};
use stillwell_units::Seed;

use super::common::{check_type, named, only, read_address, warn_unused};
use super::{filters, tls};

/// Maximum number of connections of one worker.
const CONNECTIONS_MAX: u32 = 10_000;

/// Keys of Envoy that do not change what a test server sends: those of a router, of a proxy's clients, and of Envoy itself. What
/// would change it and is not built is not among them, such as `via`, `local_reply_config` and `dynamic_resources`.
const UNUSED_OF_ROOT: &[&str] = &[
    "application_log_config",
    "bootstrap_extensions",
    "cluster_manager",
    "default_regex_engine",
    "default_socket_interface",
    "dns_resolution_config",
    "enable_dispatcher_stats",
    "fatal_actions",
    "flags_path",
    "hds_config",
    "inline_headers",
    "layered_runtime",
    "memory_allocator_manager",
    "node",
    "overload_manager",
    "perf_tracing_file_path",
    "stats_config",
    "stats_flush_interval",
    "stats_flush_on_admin",
    "stats_server_version_override",
    "tracing",
    "typed_dns_resolver_config",
    "use_tcp_for_dns_lookups",
    "watchdog",
    "watchdogs",
];
const UNUSED_OF_RESOURCES: &[&str] = &["clusters", "secrets"];
const UNUSED_OF_LISTENER: &[&str] = &[
    "access_log",
    "connection_balance_config",
    "continue_on_listener_filters_timeout",
    "drain_type",
    "enable_mptcp",
    "enable_reuse_port",
    "freebind",
    "ignore_global_conn_limit",
    "listener_filters_timeout",
    "max_connections_to_accept_per_socket_event",
    "metadata",
    "per_connection_buffer_limit_bytes",
    "reuse_port",
    "socket_options",
    "stat_prefix",
    "tcp_backlog_size",
    "tcp_fast_open_queue_length",
    "traffic_direction",
    "transparent",
];
const UNUSED_OF_MANAGER: &[&str] = &[
    "access_log",
    "access_log_options",
    "add_user_agent",
    "delayed_close_timeout",
    "drain_timeout",
    "early_header_mutation_extensions",
    "forward_client_cert_details",
    "http2_protocol_options",
    "http3_protocol_options",
    "http_protocol_options",
    "internal_address_config",
    "max_request_headers_kb",
    "merge_slashes",
    "normalize_path",
    "original_ip_detection_extensions",
    "path_normalization_options",
    "path_with_escaped_slashes_action",
    "preserve_external_request_id",
    "request_headers_timeout",
    "request_timeout",
    "scheme_header_transformation",
    "server_header_transformation",
    "set_current_client_cert_details",
    "skip_xff_append",
    "stream_error_on_invalid_http_message",
    "stream_idle_timeout",
    "strip_any_host_port",
    "strip_matching_host_port",
    "strip_trailing_host_dot",
    "tracing",
    "use_remote_address",
    "xff_num_trusted_hops",
];

/// The same of `common_http_protocol_options`. Its limits of a connection would close it.
const UNUSED_OF_HTTP_OPTIONS: &[&str] = &[
    "headers_with_underscores_action",
    "idle_timeout",
    "max_headers_count",
    "max_response_headers_kb",
];

const MANAGER: &[&str] = &[
    "envoy.filters.network.http_connection_manager",
    "envoy.http_connection_manager",
];

/// A test server that may be run, and warnings about its file.
#[derive(Clone, Debug)]
pub struct TestServer {
    /// The plan.
    pub plan: ServePlan,
    /// Warnings and notes, in the order of the file.
    pub warnings: Diagnostics,
}

/// Reads a test server from `path`, the file that Nighthawk's takes by
/// `--config-path`; it gets `workers` threads.
///
/// # Errors
/// Every mistake in the file, with its place; or that it cannot be read.
pub fn load_test_server(path: &Path, workers: NonZeroU16) -> Result<TestServer, Diagnostics> {
    load_test_server_from(&Disk, path, workers)
}

pub(crate) fn load_test_server_from(
    files: &dyn Files,
    path: &Path,
    workers: NonZeroU16,
) -> Result<TestServer, Diagnostics> {
    let source = read_source(files, path).map_err(|error| {
        let diagnostics: Diagnostics = std::iter::once(*error).collect();
        diagnostics
    })?;
    let reader = Reader::new(source);
    let read = reader
        .parse_repeated()
        .and_then(|root| read_root(&reader, &root));
    let warnings = reader.finish();
    match read {
        Some((admin, listeners)) if !warnings.has_errors() => Ok(TestServer {
            plan: ServePlan {
                seed: Seed::from_number(1),
                workers,
                listeners,
                admin,
            },
            warnings,
        }),
        _ => Err(warnings),
    }
}

/// Envoy's default prefix of request counts.
const STAT_PREFIX: &str = "ingress_http";

/// Envoy's prefix of Prometheus names.
const PROMETHEUS_PREFIX: &str = "envoy";

/// Headers of Nighthawk's test server. With `server`, responses have the length of its own.
#[must_use]
pub fn headers() -> ServeHeaders {
    ServeHeaders {
        options: Some("x-nighthawk-test-server-config".to_owned()),
        delay: Some("x-envoy-fault-delay-request".to_owned()),
        server: Some("envoy".to_owned()),
    }
}

/// An admin interface with Envoy's names and default prefix.
#[must_use]
pub fn admin(address: SocketAddr) -> ServeAdminPlan {
    ServeAdminPlan {
        address,
        stat_prefix: STAT_PREFIX.to_owned(),
        prometheus_prefix: PROMETHEUS_PREFIX.to_owned(),
    }
}

fn read_root(
    reader: &Reader,
    root: &Node,
) -> Option<(Option<ServeAdminPlan>, Vec<ServeListenerPlan>)> {
    let keys = [&["admin", "static_resources"], UNUSED_OF_ROOT].concat();
    let map = reader.map(root, &Keys::new("test server", &keys))?;
    warn_unused(reader, &map, UNUSED_OF_ROOT);
    let admin = map.take("admin").and_then(|node| read_admin(reader, node));
    let resources = map.required("static_resources")?;
    let keys = [&["listeners"], UNUSED_OF_RESOURCES].concat();
    let resources = reader.map(resources, &Keys::new("static resources", &keys))?;
    warn_unused(reader, &resources, UNUSED_OF_RESOURCES);
    let listeners = reader.list(resources.required("listeners")?)?;
    if listeners.is_empty() {
        let message = "there are no listeners";
        reader.report(reader.error(code::NOTHING_FOUND, resources.span(), message));
    }
    let read: Vec<_> = listeners
        .iter()
        .map(|node| read_listener(reader, node))
        .collect();
    let read: Vec<(String, ServeListenerPlan)> = read.into_iter().collect::<Option<_>>()?;
    let stat_prefix = read.first().map(|(prefix, _)| prefix.clone());
    let admin_plan = admin.map(|address| ServeAdminPlan {
        stat_prefix: stat_prefix.unwrap_or_default(),
        ..self::admin(address)
    });
    Some((admin_plan, read.into_iter().map(|(_, plan)| plan).collect()))
}

/// Returns the address of the admin server, if it has one.
fn read_admin(reader: &Reader, node: &Node) -> Option<SocketAddr> {
    let keys = ["access_log_path", "access_log", "profile_path", "address"];
    let map = reader.map(node, &Keys::new("admin", &keys))?;
    for key in ["access_log_path", "access_log", "profile_path"] {
        map.ignore(key);
    }
    read_address(reader, map.take("address")?, "TCP")
}

/// Reads a listener and the prefix of its counts.
fn read_listener(reader: &Reader, node: &Node) -> Option<(String, ServeListenerPlan)> {
    let keys = [
        "name",
        "address",
        "filter_chains",
        "listener_filters",
        "udp_listener_config",
    ];
    let keys = [&keys, UNUSED_OF_LISTENER].concat();
    let map = reader.map(node, &Keys::new("listener", &keys))?;
    map.ignore("name");
    // The start of a connection is read wherever a chain depends on it.
    map.ignore("listener_filters");
    warn_unused(reader, &map, UNUSED_OF_LISTENER);
    let is_quic = map.take("udp_listener_config").is_some();
    let protocol = if is_quic { "UDP" } else { "TCP" };
    let address = map
        .required("address")
        .and_then(|node| read_address(reader, node, protocol));
    let node = map.required("filter_chains")?;
    let chains = reader.list(node)?;
    let chains: Vec<_> = chains
        .iter()
        .map(|node| read_chain(reader, node, is_quic))
        .collect();
    let chains: Vec<(String, ServeChainPlan)> = chains.into_iter().collect::<Option<_>>()?;
    let Some((stat_prefix, first)) = chains.first().cloned() else {
        let message = "there are no filter chains";
        reader.report(reader.error(code::NOTHING_FOUND, node.span, message));
        return None;
    };
    let is_chosen = chains.len() > 1 || first.clients != ChainClients::default();
    if is_chosen && is_quic {
        let message = "over QUIC one filter chain serves all clients";
        reader.report(reader.error(code::WRONG_SHAPE, node.span, message));
        return None;
    }
    let chains = chains.into_iter().map(|(_, chain)| chain);
    let plan = ServeListenerPlan {
        address: address?,
        tls: first.tls,
        protocols: first.protocols,
        answer: first.answer,
        faults: FaultsPlan::default(),
        connections_max: CONNECTIONS_MAX,
        chains: chains.filter(|_| is_chosen).collect(),
    };
    Some((stat_prefix, plan))
}

/// Reads a filter chain and the prefix of its counts.
fn read_chain(reader: &Reader, node: &Node, is_quic: bool) -> Option<(String, ServeChainPlan)> {
    let keys = [
        "name",
        "filters",
        "filter_chain_match",
        "transport_socket",
        "tls_context",
    ];
    let chain = reader.map(node, &Keys::new("filter chain", &keys))?;
    chain.ignore("name");
    let clients = chain.read_or("filter_chain_match", ChainClients::default(), |node| {
        read_clients(reader, node)
    })?;
    let tls = match (chain.take("transport_socket"), chain.take("tls_context")) {
        (Some(node), None) => Some(tls::read_transport_socket(reader, node, is_quic)?),
        (None, Some(node)) => Some(tls::read_context(reader, node)?),
        (None, None) => None,
        (Some(_), Some(node)) => {
            let message = "`transport_socket` and `tls_context` cannot both be set";
            reader.report(reader.error(code::ONE_OF_KEYS, node.span, message));
            return None;
        }
    };
    let filter = chain
        .required("filters")
        .and_then(|node| only(reader, node, "filter"))?;
    let manager = read_manager(reader, filter)?;
    let is_http3 = manager.protocols == ServeProtocols::Http3;
    if is_http3 != is_quic || is_http3 && tls.is_none() {
        let message =
            "HTTP/3 needs `udp_listener_config`, a `transport_socket` and `codec_type: HTTP3`";
        reader.report(reader.error(code::MISSING_KEY, filter.span, message));
        return None;
    }
    let plan = ServeChainPlan {
        clients,
        tls,
        protocols: manager.protocols,
        answer: AnswerPlan {
            filters: manager.filters,
            options: manager.options,
            headers: headers(),
        },
    };
    Some((manager.stat_prefix, plan))
}

/// Reads the clients of a filter chain.
fn read_clients(reader: &Reader, node: &Node) -> Option<ChainClients> {
    let keys = ["server_names", "transport_protocol"];
    let map = reader.map(node, &Keys::new("filter chain match", &keys))?;
    let names = map.take("server_names").map(|node| reader.texts(node));
    let names = names.unwrap_or_default().into_iter();
    let words = [("tls", Some(true)), ("raw_buffer", Some(false)), ("", None)];
    let with_tls = map.read_or("transport_protocol", None, |node| {
        reader.word(node, "transport protocol", &words)
    })?;
    Some(ChainClients {
        server_names: names.map(|name| name.to_ascii_lowercase()).collect(),
        with_tls,
    })
}

/// Configuration of a connection manager.
struct Manager {
    protocols: ServeProtocols,
    stat_prefix: String,
    filters: FilterSet,
    options: ResponseOptions,
}

fn read_manager(reader: &Reader, node: &Node) -> Option<Manager> {
    let (_, config) = named(reader, node, "filter", (MANAGER, &[]))?;
    let Some(config) = config else {
        let message = "a connection manager needs `typed_config`";
        reader.report(reader.error(code::MISSING_KEY, node.span, message));
        return None;
    };
    let keys = [
        "@type",
        "generate_request_id",
        "codec_type",
        "stat_prefix",
        "route_config",
        "http_filters",
        "common_http_protocol_options",
    ];
    let keys = [&keys, UNUSED_OF_MANAGER].concat();
    let map = reader.map(config, &Keys::new("connection manager", &keys))?;
    warn_unused(reader, &map, UNUSED_OF_MANAGER);
    if let Some(node) = map.take("common_http_protocol_options") {
        let map = reader.map(node, &Keys::new("HTTP options", UNUSED_OF_HTTP_OPTIONS))?;
        warn_unused(reader, &map, UNUSED_OF_HTTP_OPTIONS);
    }
    check_type(reader, &map, &["HttpConnectionManager"]);
    map.ignore("generate_request_id");
    let routes = map.take("route_config");
    let stat_prefix = map.read_or("stat_prefix", STAT_PREFIX, |node| reader.text(node))?;
    let codecs = [
        ("AUTO", ServeProtocols::Auto),
        ("auto", ServeProtocols::Auto),
        ("HTTP1", ServeProtocols::Http1),
        ("http1", ServeProtocols::Http1),
        ("HTTP2", ServeProtocols::Http2),
        ("http2", ServeProtocols::Http2),
        ("HTTP3", ServeProtocols::Http3),
        ("http3", ServeProtocols::Http3),
    ];
    let protocols = map.read_or("codec_type", ServeProtocols::Auto, |node| {
        reader.word(node, "codec type", &codecs)
    })?;
    let (filters, options) = filters::read(reader, map.required("http_filters")?)?;
    if !filters.test_server {
        check_routes(reader, routes);
    }
    Some(Manager {
        protocols,
        stat_prefix: stat_prefix.to_owned(),
        filters,
        options,
    })
}

/// Reports routes that a chain without `test-server` would follow, were it a proxy's.
fn check_routes(reader: &Reader, node: Option<&Node>) {
    let list = |node: Option<&'_ Node>| match node.map(|node| &node.value) {
        Some(Value::List(items)) => items.clone(),
        _ => Vec::new(),
    };
    for host in list(node.and_then(|node| node.entry("virtual_hosts"))) {
        let Some(route) = list(host.entry("routes")).into_iter().next() else {
            continue;
        };
        let message =
            "routes have no effect without the filter `test-server`: each request gets 404";
        let error = reader.error(code::BAD_VALUE, route.span, message);
        reader.report(error.label("add `test-server` and its options, or remove the routes"));
    }
}

#[cfg(test)]
mod tests;
