//! lading's blackholes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use stillwell_plan::{SinkBody, SinkPlan, SinkProtocol};
use stillwell_units::Nanos;

use super::generator::given_id;
use crate::code;
use crate::node::{Node, Value};
use crate::reader::{Keys, MapReader, Reader};
use crate::rules::{Ids, Placed};

const KINDS: [&str; 5] = ["http", "tcp", "udp", "unix_stream", "unix_datagram"];

const KNOWN: &[&str] = &[
    "datadog",
    "datadog_stateful_logs",
    "otlp",
    "splunk_hec",
    "sqs",
    "tcp_rr",
];

pub(super) fn read_all(reader: &Reader, nodes: &[&Node]) -> Vec<Placed<SinkPlan>> {
    let mut ids = Ids::new(reader, "blackhole");
    let found: Vec<_> = nodes
        .iter()
        .map(|node| (given_id(reader, node), read(reader, node)))
        .collect();
    ids.reserve(
        found
            .iter()
            .filter_map(|(id, _)| id.as_ref().map(|(id, span)| (*id, *span))),
    );
    found
        .into_iter()
        .filter_map(|(id, sink)| {
            let sink = sink?;
            let id = match id {
                Some((id, _)) => id.to_owned(),
                None => ids.free(sink.value.name()),
            };
            let value = SinkPlan {
                id,
                protocol: sink.value,
                workers: 1,
            };
            Some(Placed {
                value,
                span: sink.span,
            })
        })
        .collect()
}

fn read(reader: &Reader, node: &Node) -> Option<Placed<SinkProtocol>> {
    let accepted = ["http", "tcp", "udp", "unix_stream", "unix_datagram", "id"];
    let map = reader.map(node, &Keys::new("blackhole", &accepted).known(KNOWN))?;
    map.ignore("id");
    let (kind, body) = map.one_of(&KINDS)?;
    if kind == "http" {
        return read_http(reader, body);
    }
    if kind.starts_with("unix") {
        let map = reader.map(body, &Keys::new("unix blackhole", &["path"]))?;
        let node = map.required("path")?;
        let path = reader.text(node)?.into();
        let value = if kind == "unix_stream" {
            SinkProtocol::UnixStream { path }
        } else {
            SinkProtocol::UnixDatagram { path }
        };
        return Some(Placed {
            value,
            span: node.span,
        });
    }
    let map = reader.map(body, &Keys::new("socket blackhole", &["binding_addr"]))?;
    let address = read_binding(reader, &map)?;
    let value = if kind == "tcp" {
        SinkProtocol::Tcp {
            address: address.value,
        }
    } else {
        SinkProtocol::Udp {
            address: address.value,
        }
    };
    Some(Placed {
        value,
        span: address.span,
    })
}

/// Where a sink listens: never on every interface, unless asked otherwise than
/// by an ancestor's file. In a network namespace of its own the subject reaches
/// loopback all the same.
fn read_binding(reader: &Reader, map: &MapReader<'_, '_>) -> Option<Placed<SocketAddr>> {
    let node = map.required("binding_addr")?;
    let text = reader.text(node)?;
    let Ok(mut address) = text
        .replacen("localhost:", "127.0.0.1:", 1)
        .parse::<SocketAddr>()
    else {
        let message = format!("`{text}` is not an address to listen at");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write an IP address and a port, such as `127.0.0.1:8080`"));
        return None;
    };
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            IpAddr::V6(Ipv6Addr::LOCALHOST)
        });
        let message = format!("listens at {address}, not on every interface");
        let note = reader.note(code::LOOPBACK, node.span, message);
        reader.report(note.label("the subject reaches it on loopback"));
    }
    Some(Placed {
        value: address,
        span: node.span,
    })
}

fn read_http(reader: &Reader, node: &Node) -> Option<Placed<SinkProtocol>> {
    let accepted = [
        "binding_addr",
        "concurrent_requests_max",
        "body_variant",
        "headers",
        "status",
        "raw_bytes",
        "response_delay_millis",
    ];
    let map = reader.map(node, &Keys::new("http blackhole", &accepted))?;
    let address = read_binding(reader, &map);
    let connections_max = match map.take("concurrent_requests_max") {
        Some(node) => reader.whole(node, 1, u32::MAX),
        None => Some(100),
    };
    let headers = match map.take("headers") {
        Some(node) => reader.headers(node),
        None => vec![("content-type".to_owned(), "application/json".to_owned())],
    };
    let status = match map.take("status") {
        Some(node) => reader.whole(node, 200, 599),
        None => Some(200),
    };
    let delay = match map.take("response_delay_millis") {
        Some(node) => reader.whole(node, 0, 3_600_000_u64).map(Nanos::from_millis),
        None => Some(Nanos::ZERO),
    };
    let body = read_body(reader, &map);
    let address = address?;
    Some(Placed {
        value: SinkProtocol::Http {
            address: address.value,
            status: status?,
            headers,
            body: body?,
            delay: delay?,
            connections_max: connections_max?,
        },
        span: address.span,
    })
}

fn read_body(reader: &Reader, map: &MapReader<'_, '_>) -> Option<SinkBody> {
    const WORDS: [&str; 3] = ["nothing", "raw_bytes", "static"];
    const KNOWN: &[&str] = &["aws_kinesis", "openmetrics"];
    let raw = map.take("raw_bytes").map(|node| read_raw(reader, node));
    let Some(node) = map.take("body_variant") else {
        return Some(SinkBody::Empty);
    };
    let Value::Scalar { text, .. } = &node.value else {
        let map = reader.map(node, &Keys::new("body", &WORDS).known(KNOWN))?;
        return match map.one_of(&WORDS)? {
            ("static", text) => Some(SinkBody::Static(reader.text(text)?.into())),
            ("raw_bytes", _) => Some(SinkBody::Static(raw??)),
            _ => Some(SinkBody::Empty),
        };
    };
    match text.as_str() {
        "nothing" => Some(SinkBody::Empty),
        "raw_bytes" => match raw {
            Some(bytes) => Some(SinkBody::Static(bytes?)),
            None => Some(SinkBody::Empty),
        },
        text if KNOWN.contains(&text) => {
            reader.not_built(node.span, "body", text, None);
            None
        }
        text => {
            reader.unknown_word(node.span, "body", text, WORDS.into_iter());
            None
        }
    }
}

fn read_raw(reader: &Reader, node: &Node) -> Option<Vec<u8>> {
    let items = reader.list(node)?;
    items
        .iter()
        .map(|item| reader.whole(item, 0, u8::MAX))
        .collect()
}
