//! lading's blackholes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;

use stillwell_plan::sink::{IntakeService, OpenmetricsPlan, SinkBody};
use stillwell_plan::{SinkPlan, SinkProtocol};
use stillwell_units::Nanos;

use super::generator::given_id;
use stillwell_config::rules::{Ids, Placed};
use stillwell_text::{Keys, MapReader, Node, Reader, Span, Value, code};

mod intake;
mod openmetrics;

const KINDS: &[&str] = &[
    "http",
    "tcp",
    "udp",
    "unix_stream",
    "unix_datagram",
    "splunk_hec",
    "datadog",
    "datadog_stateful_logs",
    "otlp",
    "sqs",
    "tcp_rr",
];

pub(super) fn read_all(reader: &Reader, nodes: &[&Node]) -> Vec<Placed<SinkPlan>> {
    let mut ids = Ids::new(reader, "blackhole");
    let placed: Vec<_> = nodes
        .iter()
        .map(|node| (given_id(reader, node), read(reader, node)))
        .collect();
    ids.reserve(
        placed
            .iter()
            .filter_map(|(id, _)| id.as_ref().map(|(id, span)| (*id, *span))),
    );
    let mut sinks = Vec::new();
    for (id, several) in placed {
        for (index, sink) in several.into_iter().enumerate() {
            let id = match id {
                Some((id, _)) if index == 0 => id.to_owned(),
                Some((id, span)) => {
                    let further = ids.free(id);
                    remark_further_id(reader, id, span, &further);
                    further
                }
                None => ids.free(sink.value.name()),
            };
            let value = SinkPlan {
                id,
                protocol: sink.value,
                workers: NonZeroU16::MIN,
                limit: None,
                lines: None,
                prefix: None,
            };
            sinks.push(Placed {
                value,
                span: sink.span,
            });
        }
    }
    sinks
}

/// Warns that the second address of a blackhole has an id of its own, which names its series.
fn remark_further_id(reader: &Reader, id: &str, span: Span, further: &str) {
    let message = format!("series of `http_addr` have the id `{further}`, not `{id}`");
    let warning = reader.warning(code::MEANING, span, message);
    reader.report(
        warning
            .label("the id of `grpc_addr`")
            .help("in lading, series of both addresses have this id: add the two together"),
    );
}

/// Returns the sinks of a blackhole, usually one.
fn read(reader: &Reader, node: &Node) -> Vec<Placed<SinkProtocol>> {
    let mut accepted = KINDS.to_vec();
    accepted.push("id");
    let Some(map) = reader.map(node, &Keys::new("blackhole", &accepted)) else {
        return Vec::new();
    };
    map.ignore("id");
    let Some((kind, body)) = map.one_of(KINDS) else {
        return Vec::new();
    };
    match kind {
        "http" => read_http(reader, body).into_iter().collect(),
        "otlp" => intake::read_otlp(reader, body),
        "unix_stream" | "unix_datagram" => read_unix(reader, kind, body).into_iter().collect(),
        "tcp" | "udp" => read_socket(reader, kind, body).into_iter().collect(),
        "tcp_rr" => intake::read_round_trip(reader, body).into_iter().collect(),
        _ => intake::read(reader, kind, body).into_iter().collect(),
    }
}

fn read_unix(reader: &Reader, kind: &str, body: &Node) -> Option<Placed<SinkProtocol>> {
    let map = reader.map(body, &Keys::new("unix blackhole", &["path"]))?;
    let node = map.required("path")?;
    let path = reader.text(node)?.into();
    let value = if kind == "unix_stream" {
        SinkProtocol::UnixStream { path }
    } else {
        SinkProtocol::UnixDatagram { path }
    };
    Some(Placed {
        value,
        span: node.span,
    })
}

fn read_socket(reader: &Reader, kind: &str, body: &Node) -> Option<Placed<SinkProtocol>> {
    let map = reader.map(body, &Keys::new("socket blackhole", &["binding_addr"]))?;
    let Placed {
        value: address,
        span,
    } = read_binding(reader, &map)?;
    let value = if kind == "tcp" {
        SinkProtocol::Tcp { address }
    } else {
        SinkProtocol::Udp { address }
    };
    Some(Placed { value, span })
}

/// Reads the address of a sink. lading's default, all interfaces, becomes loopback; in a separate network
/// namespace the target reaches loopback too.
fn read_binding(reader: &Reader, map: &MapReader<'_, '_>) -> Option<Placed<SocketAddr>> {
    read_listening(reader, map.required("binding_addr")?)
}

/// Reads an address under another key.
fn read_listening(reader: &Reader, node: &Node) -> Option<Placed<SocketAddr>> {
    let text = reader.text(node)?;
    let address = text
        .replacen("localhost:", "127.0.0.1:", 1)
        .parse::<SocketAddr>();
    let Some(mut address) = address.ok().filter(|_| !text.contains('%')) else {
        let message = format!("`{text}` is not an address to listen on");
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
        reader.report(note.label("the target reaches it on loopback"));
    }
    Some(Placed {
        value: address,
        span: node.span,
    })
}

fn read_connections_max(reader: &Reader, map: &MapReader<'_, '_>) -> Option<u32> {
    map.read_or("concurrent_requests_max", 100, |node| {
        reader.whole(node, 1, u32::MAX)
    })
}

fn read_http(reader: &Reader, node: &Node) -> Option<Placed<SinkProtocol>> {
    let accepted = [
        "binding_addr",
        "concurrent_requests_max",
        "body_variant",
        "headers",
        "content_type",
        "status",
        "raw_bytes",
        "response_delay_millis",
    ];
    let map = reader.map(node, &Keys::new("http blackhole", &accepted))?;
    let address = read_binding(reader, &map);
    let connections_max = read_connections_max(reader, &map);
    let headers = read_headers(reader, &map);
    let status = map.read_or("status", 200, |node| reader.whole(node, 200, 599));
    let delay = read_delay(reader, &map);
    let body = read_body(reader, &map);
    let Placed {
        value: address,
        span,
    } = address?;
    let (delay, connections_max) = (delay?, connections_max?);
    let (ResponseHeaders { mut headers, typed }, status) = (headers?, status?);
    let value = match body? {
        ResponseBody::Page(page) => {
            if let Some(span) = typed {
                let message = "a page of `openmetrics` has a content type of its own";
                reader.report(reader.warning(code::NO_EFFECT, span, message));
            }
            headers.retain(|(name, _)| !is_content_type(name));
            let page = OpenmetricsPlan {
                status,
                headers,
                ..*page
            };
            SinkProtocol::Intake {
                service: IntakeService::Openmetrics(Box::new(page)),
                address,
                delay,
                connections_max,
            }
        }
        ResponseBody::Same(body) => SinkProtocol::Http {
            address,
            status,
            headers,
            body,
            delay,
            connections_max,
        },
    };
    Some(Placed { value, span })
}

/// Headers of responses.
struct ResponseHeaders {
    headers: Vec<(String, String)>,
    /// Place of the content type in the file.
    typed: Option<Span>,
}

fn is_content_type(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-type")
}

fn read_headers(reader: &Reader, map: &MapReader<'_, '_>) -> Option<ResponseHeaders> {
    let content_type = |value: &str| ("content-type".to_owned(), value.to_owned());
    let (mut headers, mut typed) = match map.take("headers") {
        Some(node) => {
            let mut entries = node.entries().unwrap_or_default().iter();
            let entry = entries.find(|entry| is_content_type(&entry.key.text));
            (reader.headers(node), entry.map(|entry| entry.key.span))
        }
        None => (vec![content_type("application/json")], None),
    };
    if let Some(node) = map.take("content_type") {
        let text = reader.text(node)?;
        if text.chars().any(char::is_control) {
            let message = "the value of a header cannot hold a control character";
            reader.report(reader.error(code::BAD_VALUE, node.span, message));
        }
        headers.retain(|(name, _)| !is_content_type(name));
        headers.push(content_type(text));
        typed = Some(node.span);
    }
    Some(ResponseHeaders { headers, typed })
}

fn read_delay(reader: &Reader, map: &MapReader<'_, '_>) -> Option<Nanos> {
    map.read_or("response_delay_millis", Nanos::ZERO, |node| {
        reader.whole(node, 0, 3_600_000_u64).map(Nanos::from_millis)
    })
}

/// ResponseBody of responses.
enum ResponseBody {
    /// Always the same.
    Same(SinkBody),
    /// A page of metrics.
    Page(Box<OpenmetricsPlan>),
}

/// lading's response as Kinesis.
const KINESIS: &[u8] = b"{\"encrypted\":null,\"failed_put_count\":0,\
    \"request_responses\":[{\"error_code\":null,\"error_message\":null,\"record_id\":\"foobar\"}]}";

fn read_body(reader: &Reader, map: &MapReader<'_, '_>) -> Option<ResponseBody> {
    const WORDS: [&str; 5] = [
        "nothing",
        "raw_bytes",
        "static",
        "aws_kinesis",
        "openmetrics",
    ];
    let raw = map.take("raw_bytes").map(|node| read_raw(reader, node));
    let Some(node) = map.take("body_variant") else {
        return Some(ResponseBody::Same(SinkBody::Empty));
    };
    let (word, options) = match &node.value {
        Value::Scalar { text, .. } => {
            let Some(word) = WORDS.iter().find(|word| *word == text) else {
                reader.unknown_word(node.span, "body", text, WORDS.into_iter());
                return None;
            };
            (*word, None)
        }
        _ => {
            let map = reader.map(node, &Keys::new("body", &WORDS))?;
            let (word, options) = map.one_of(&WORDS)?;
            (word, Some(options))
        }
    };
    Some(match (word, options) {
        ("static", Some(text)) => ResponseBody::Same(SinkBody::Static(reader.text(text)?.into())),
        ("static", None) => {
            let message = "a static body needs its text: write `{static: \"…\"}`";
            reader.report(reader.error(code::BAD_VALUE, node.span, message));
            return None;
        }
        ("raw_bytes", _) => match raw {
            Some(bytes) => ResponseBody::Same(SinkBody::Static(bytes?)),
            None => ResponseBody::Same(SinkBody::Empty),
        },
        ("aws_kinesis", _) => ResponseBody::Same(SinkBody::Static(KINESIS.to_vec())),
        ("openmetrics", options) => {
            ResponseBody::Page(Box::new(openmetrics::read(reader, options)?))
        }
        _ => ResponseBody::Same(SinkBody::Empty),
    })
}

fn read_raw(reader: &Reader, node: &Node) -> Option<Vec<u8>> {
    let items = reader.list(node)?;
    items
        .iter()
        .map(|item| reader.whole(item, 0, u8::MAX))
        .collect()
}

#[cfg(test)]
mod tests;
