//! lading's generators.

use stillwell_plan::generator::Concurrency;
use stillwell_plan::{GeneratorPlan, PayloadPlan, TransportPlan};
use stillwell_units::{ByteSize, Seed};

use super::{payload, throttle};
use stillwell_config::rules::{Ids, Placed};
use stillwell_text::{
    Keys, MapReader, Node, Reader, Span, Value, check_address, check_any_url, check_url, code,
};

mod files;
mod kubernetes;
mod requests;
mod system;

const KINDS: &[&str] = &[
    "http",
    "tcp",
    "udp",
    "unix_stream",
    "unix_datagram",
    "splunk_hec",
    "grpc",
    "trace_agent",
    "file_gen",
    "passthru_file",
    "file_tree",
    "tcp_rr",
    "process_tree",
    "proc_fs",
    "container",
    "kubernetes",
];

const KNOWN: &[&str] = &["dogstatsd_http", "kafka", "tcp_crr"];

pub(super) fn read_all(reader: &Reader, nodes: &[&Node]) -> Vec<Placed<GeneratorPlan>> {
    let mut ids = Ids::new(reader, "generator");
    let placed: Vec<_> = nodes
        .iter()
        .map(|node| (given_id(reader, node), read(reader, node), node.span))
        .collect();
    ids.reserve(
        placed
            .iter()
            .filter_map(|(id, ..)| id.as_ref().map(|(id, span)| (*id, *span))),
    );
    placed
        .into_iter()
        .filter_map(|(id, plan, span)| {
            let mut value = plan?;
            value.id = match id {
                Some((id, _)) => id.to_owned(),
                None => ids.free(value.transport.name()),
            };
            Some(Placed { value, span })
        })
        .collect()
}

/// The id beside the kind.
pub(super) fn given_id<'n>(reader: &Reader, node: &'n Node) -> Option<(&'n str, Span)> {
    let id = node
        .entry("id")
        .filter(|id| !matches!(id.value, Value::Null))?;
    Some((reader.text(id)?, id.span))
}

fn read(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let mut accepted = KINDS.to_vec();
    accepted.push("id");
    let map = reader.map(node, &Keys::new("generator", &accepted).known(KNOWN))?;
    map.ignore("id");
    let (kind, body) = map.one_of(KINDS)?;
    match kind {
        "http" | "splunk_hec" | "grpc" | "trace_agent" => requests::read(reader, kind, body),
        "file_gen" | "passthru_file" | "file_tree" => files::read(reader, kind, body),
        "tcp_rr" => files::read_round_trip(reader, body),
        "process_tree" | "proc_fs" | "container" => system::read(reader, kind, body),
        "kubernetes" => kubernetes::read(reader, body),
        _ => read_socket(reader, kind, body),
    }
}

/// Reads a generator that writes blocks to a socket.
fn read_socket(reader: &Reader, kind: &str, body: &Node) -> Option<GeneratorPlan> {
    let (what, generator_keys): (_, &[&'static str]) = match kind {
        "tcp" => ("tcp generator", &["addr"]),
        "udp" => ("udp generator", &["addr", "bind_addr"]),
        "unix_stream" => ("unix_stream generator", &["path"]),
        _ => ("unix_datagram generator", &["path"]),
    };
    let keys = keys_with(what, generator_keys, payload::KEYS);
    let map = reader.map(body, &keys)?;
    let transport = match kind {
        "tcp" => read_target(reader, &map).map(|address| TransportPlan::Tcp { address }),
        "udp" => read_udp(reader, &map),
        "unix_stream" => path(reader, &map).map(|path| TransportPlan::UnixStream { path }),
        _ => path(reader, &map).map(|path| TransportPlan::UnixDatagram { path }),
    };
    let (default, limit) = match kind {
        "udp" => (ByteSize::new(65_507), Some(ByteSize::new(65_507))),
        "unix_datagram" => (ByteSize::new(8192), Some(ByteSize::kib(128))),
        _ => (ByteSize::mib(1), None),
    };
    let maximum = payload::read_maximum(reader, &map, default, limit);
    let payload = payload::read(reader, &map, maximum);
    let mut plan = read_common(reader, &map, transport, payload)?;
    if kind.starts_with("unix") && plan.concurrency.connections() > 1 && !plan.rate.is_max() {
        plan.rate = throttle::times(plan.rate, plan.concurrency.connections());
        let message = format!(
            "the rate applies to each of the {} connections, as in lading",
            plan.concurrency.connections()
        );
        let span = map
            .key_span("parallel_connections")
            .unwrap_or_else(|| map.span());
        reader.report(reader.note(code::MEANING, span, message));
    }
    Some(plan)
}

fn keys_with(
    what: &'static str,
    generator_keys: &[&'static str],
    payload_keys: &[&'static str],
) -> Keys {
    let mut keys = Keys::new(what, &["seed", "parallel_connections"]);
    for more in [
        generator_keys,
        payload_keys,
        payload::BLOCK_KEYS,
        throttle::KEYS,
    ] {
        keys.accepted.extend(more);
    }
    keys
}

/// Reads the keys that all generators have.
fn read_common(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    transport: Option<TransportPlan>,
    payload: Option<PayloadPlan>,
) -> Option<GeneratorPlan> {
    let seed = map
        .required("seed")
        .and_then(|node| read_seed(reader, node));
    let rate = throttle::read(reader, map);
    let connections = map.read_or("parallel_connections", 1, |node| {
        reader.whole(node, 1, u16::MAX)
    });
    let payload = payload?;
    payload::check_block(reader, map, &payload);
    Some(GeneratorPlan {
        id: String::new(),
        transport: transport?,
        payload,
        rate: rate?,
        concurrency: Concurrency::ONE.with_connections(connections?),
        seed: seed?,
        stamps: None,
    })
}

fn read_udp(reader: &Reader, map: &MapReader<'_, '_>) -> Option<TransportPlan> {
    let bind = map.read_or("bind_addr", "127.0.0.1:0".to_owned(), |node| {
        read_address(reader, node)
    });
    Some(TransportPlan::Udp {
        address: read_target(reader, map)?,
        bind: bind?,
    })
}

fn read_target(reader: &Reader, map: &MapReader<'_, '_>) -> Option<String> {
    let node = map.required("addr")?;
    let address = read_address(reader, node)?;
    if address.ends_with(":0") {
        let error = reader.error(
            code::OUT_OF_RANGE,
            node.span,
            "port 0 is not a valid target",
        );
        reader.report(error.label("a port from 1 to 65535"));
    }
    Some(reachable(&address))
}

fn read_address(reader: &Reader, node: &Node) -> Option<String> {
    let text = reader.text(node)?;
    if let Err(reason) = check_address(text) {
        let message = format!("`{text}` is not an address");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(reason));
        return None;
    }
    Some(text.to_owned())
}

/// Returns an address that reaches a listener on all interfaces.
fn reachable(address: &str) -> String {
    match address.strip_prefix("0.0.0.0:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => address.replacen("[::]:", "[::1]:", 1),
    }
}

pub(super) fn read_url(reader: &Reader, node: &Node) -> Option<String> {
    read_checked_url(reader, node, check_url)
}

/// The same, or `https://…`.
pub(super) fn read_scrape_url(reader: &Reader, node: &Node) -> Option<String> {
    read_checked_url(reader, node, check_any_url)
}

fn read_checked_url(
    reader: &Reader,
    node: &Node,
    check: fn(&str) -> Result<String, &'static str>,
) -> Option<String> {
    let text = reader.text(node)?;
    if let Err(reason) = check(text) {
        let message = format!("`{text}` is not an address to connect to");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(reason));
        return None;
    }
    match text.strip_prefix("http://") {
        Some(rest) => Some(format!("http://{}", reachable(rest))),
        None => Some(text.to_owned()),
    }
}

fn path(reader: &Reader, map: &MapReader<'_, '_>) -> Option<std::path::PathBuf> {
    let node = map.required("path")?;
    Some(reader.text(node)?.into())
}

fn read_seed(reader: &Reader, node: &Node) -> Option<Seed> {
    let items = reader.list(node)?;
    let bytes: Vec<u8> = items
        .iter()
        .filter_map(|item| reader.whole(item, 0, u8::MAX))
        .collect();
    if bytes.len() != items.len() {
        return None;
    }
    match <[u8; 32]>::try_from(bytes) {
        Ok(bytes) => Some(Seed::from_bytes(bytes)),
        Err(bytes) => {
            let message = format!("a seed has 32 numbers, this one has {}", bytes.len());
            let error = reader.error(code::OUT_OF_RANGE, node.span, message);
            reader.report(error.label("expected 32 numbers from 0 to 255"));
            None
        }
    }
}

#[cfg(test)]
mod tests;
