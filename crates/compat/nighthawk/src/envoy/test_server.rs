//! Nighthawk's test server: the part of Envoy's configuration that it needs.
//!
//! Listeners, HTTP filters, TLS and admin are read, in today's shape and in that
//! of version 2 (`config` for `typed_config`, `tls_context` for
//! `transport_socket`). Any other key is an error: a server that ignores a part of its
//! configuration would be another server.

use std::net::SocketAddr;
use std::path::Path;

use stillwell_config::Diagnostics;
use stillwell_config::files::{Disk, Files, read_source};
use stillwell_plan::{
    AnswerPlan, FaultsPlan, FilterSet, ResponseOptions, ServeAdminPlan, ServeHeaders,
    ServeListenerPlan, ServePlan, ServeProtocols,
};
use stillwell_text::{Keys, Node, Reader, code};
use stillwell_units::Seed;

use super::common::{check_type, named, only, read_address};
use super::{filters, tls};

/// Maximum number of connections of one worker.
const CONNECTIONS_MAX: u32 = 10_000;

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
pub fn load_test_server(path: &Path, workers: u16) -> Result<TestServer, Diagnostics> {
    load_test_server_from(&Disk, path, workers)
}

pub(crate) fn load_test_server_from(
    files: &dyn Files,
    path: &Path,
    workers: u16,
) -> Result<TestServer, Diagnostics> {
    let source = read_source(files, path).map_err(|error| {
        let diagnostics: Diagnostics = std::iter::once(*error).collect();
        diagnostics
    })?;
    let reader = Reader::new(source);
    let read = reader.parse().and_then(|root| read_root(&reader, &root));
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
    let map = reader.map(
        root,
        &Keys::new("test server", &["admin", "static_resources"]),
    )?;
    let admin = map.take("admin").and_then(|node| read_admin(reader, node));
    let resources = map.required("static_resources")?;
    let resources = reader.map(resources, &Keys::new("static resources", &["listeners"]))?;
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
    let map = reader.map(
        node,
        &Keys::new("listener", &["name", "address", "filter_chains"]),
    )?;
    map.ignore("name");
    let address = map
        .required("address")
        .and_then(|node| read_address(reader, node, "TCP"));
    let chain = map
        .required("filter_chains")
        .and_then(|node| only(reader, node, "filter chain"))?;
    let keys = ["name", "filters", "transport_socket", "tls_context"];
    let chain = reader.map(chain, &Keys::new("filter chain", &keys))?;
    chain.ignore("name");
    let tls = match (chain.take("transport_socket"), chain.take("tls_context")) {
        (Some(node), None) => Some(tls::read_transport_socket(reader, node)?),
        (None, Some(node)) => Some(tls::read_context(reader, node)?),
        (None, None) => None,
        (Some(_), Some(node)) => {
            let message = "`transport_socket` and `tls_context` say the same thing";
            reader.report(reader.error(code::ONE_OF_KEYS, node.span, message));
            return None;
        }
    };
    let filter = chain
        .required("filters")
        .and_then(|node| only(reader, node, "filter"))?;
    let manager = read_manager(reader, filter)?;
    let plan = ServeListenerPlan {
        address: address?,
        tls,
        protocols: manager.protocols,
        answer: AnswerPlan {
            filters: manager.filters,
            options: manager.options,
            headers: headers(),
        },
        faults: FaultsPlan::default(),
        connections_max: CONNECTIONS_MAX,
    };
    Some((manager.stat_prefix, plan))
}

/// Configuration of a connection manager.
struct Manager {
    protocols: ServeProtocols,
    stat_prefix: String,
    filters: FilterSet,
    options: ResponseOptions,
}

fn read_manager(reader: &Reader, node: &Node) -> Option<Manager> {
    let (_, config) = named(reader, node, "filter", MANAGER)?;
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
    ];
    let map = reader.map(config, &Keys::new("connection manager", &keys))?;
    check_type(reader, &map, &["HttpConnectionManager"]);
    map.ignore("generate_request_id");
    map.ignore("route_config");
    let stat_prefix = match map.take("stat_prefix") {
        Some(node) => reader.text(node)?,
        None => STAT_PREFIX,
    };
    let codecs = [
        ("AUTO", ServeProtocols::Auto),
        ("auto", ServeProtocols::Auto),
        ("HTTP1", ServeProtocols::Http1),
        ("http1", ServeProtocols::Http1),
        ("HTTP2", ServeProtocols::Http2),
        ("http2", ServeProtocols::Http2),
    ];
    let protocols = match map.take("codec_type") {
        Some(node) => reader.word(node, "codec type", &codecs)?,
        None => ServeProtocols::Auto,
    };
    let (filters, options) = filters::read(reader, map.required("http_filters")?)?;
    Some(Manager {
        protocols,
        stat_prefix: stat_prefix.to_owned(),
        filters,
        options,
    })
}

#[cfg(test)]
mod tests;
