//! lading's blackholes for service intakes.

use std::net::{IpAddr, SocketAddr};

use stillwell_plan::SinkProtocol;
use stillwell_plan::generator::MessageLength;
use stillwell_plan::sink::{IntakeService, SeriesRecord};
use stillwell_units::Nanos;

use super::{read_binding, read_connections_max, read_delay, read_listening};
use stillwell_config::rules::Placed;
use stillwell_text::{Keys, Node, Reader, Value, code};

/// Connections where lading has no limit.
const CONNECTIONS_MAX: u32 = 4096;

/// The blackhole of `kind`.
pub(super) fn read(reader: &Reader, kind: &str, node: &Node) -> Option<Placed<SinkProtocol>> {
    match kind {
        "splunk_hec" => read_http(
            reader,
            "splunk_hec blackhole",
            IntakeService::SplunkHec,
            node,
        ),
        "sqs" => read_http(reader, "sqs blackhole", IntakeService::Sqs, node),
        "datadog" => read_datadog(reader, node),
        _ => read_stateful_logs(reader, node),
    }
}

fn intake(
    service: IntakeService,
    place: &Placed<SocketAddr>,
    delay: Nanos,
    connections_max: u32,
) -> Placed<SinkProtocol> {
    Placed {
        value: SinkProtocol::Intake {
            service,
            address: place.value,
            delay,
            connections_max,
        },
        span: place.span,
    }
}

fn read_http(
    reader: &Reader,
    what: &'static str,
    service: IntakeService,
    node: &Node,
) -> Option<Placed<SinkProtocol>> {
    let accepted = ["binding_addr", "concurrent_requests_max"];
    let map = reader.map(node, &Keys::new(what, &accepted))?;
    let place = read_binding(reader, &map);
    let connections_max = read_connections_max(reader, &map);
    Some(intake(service, &place?, Nanos::ZERO, connections_max?))
}

fn read_datadog(reader: &Reader, node: &Node) -> Option<Placed<SinkProtocol>> {
    let map = reader.map(node, &Keys::new("datadog blackhole", &["v2", "record"]))?;
    let record = map.read_or("record", SeriesRecord::None, |node| {
        read_record(reader, node)
    });
    let inner = map.required("v2")?;
    let inner = reader.map(inner, &Keys::new("v2", &["binding_addr"]))?;
    let place = read_binding(reader, &inner);
    let service = IntakeService::Datadog { record: record? };
    Some(intake(service, &place?, Nanos::ZERO, CONNECTIONS_MAX))
}

fn read_record(reader: &Reader, node: &Node) -> Option<SeriesRecord> {
    let words = ["all", "disabled", "series_to_keep"];
    if let Value::Scalar { text, .. } = &node.value {
        return match text.as_str() {
            "all" => Some(SeriesRecord::All),
            "disabled" => Some(SeriesRecord::None),
            text => {
                reader.unknown_word(node.span, "record", text, words.into_iter());
                None
            }
        };
    }
    let map = reader.map(node, &Keys::new("record", &words))?;
    Some(match map.one_of(&words)? {
        ("series_to_keep", names) => {
            let items = reader.list(names)?;
            let names = reader.texts(names);
            if names.len() != items.len() {
                return None;
            }
            SeriesRecord::Named(names)
        }
        ("all", _) => SeriesRecord::All,
        _ => SeriesRecord::None,
    })
}

fn read_stateful_logs(reader: &Reader, node: &Node) -> Option<Placed<SinkProtocol>> {
    let accepted = ["grpc_addr", "response_delay_millis"];
    let map = reader.map(
        node,
        &Keys::new("datadog_stateful_logs blackhole", &accepted),
    )?;
    let place = map.required("grpc_addr");
    let place = place.and_then(|node| read_listening(reader, node));
    let delay = read_delay(reader, &map);
    let service = IntakeService::DatadogStatefulLogs;
    Some(intake(service, &place?, delay?, CONNECTIONS_MAX))
}

/// Returns a sink for each address; each accepts both gRPC and HTTP.
pub(super) fn read_otlp(reader: &Reader, node: &Node) -> Vec<Placed<SinkProtocol>> {
    let accepted = [
        "grpc_addr",
        "http_addr",
        "concurrent_requests_max",
        "response_delay_millis",
    ];
    let Some(map) = reader.map(node, &Keys::new("otlp blackhole", &accepted)) else {
        return Vec::new();
    };
    let addresses = [map.take("grpc_addr"), map.take("http_addr")];
    if addresses.iter().all(Option::is_none) {
        let message = "an otlp blackhole needs an address to listen on";
        let error = reader.error(code::MISSING_KEY, map.span(), message);
        reader.report(error.label("`grpc_addr` or `http_addr` is missing"));
    }
    let delay = read_delay(reader, &map);
    let connections_max = read_connections_max(reader, &map);
    let places = addresses.into_iter().flatten();
    let sinks = places.filter_map(|node| {
        let place = read_listening(reader, node)?;
        Some(intake(
            IntakeService::Otlp,
            &place,
            delay?,
            connections_max?,
        ))
    });
    sinks.collect()
}

/// `tcp_rr`: an address without a port, and the port beside it.
pub(super) fn read_round_trip(reader: &Reader, node: &Node) -> Option<Placed<SinkProtocol>> {
    let accepted = [
        "addr",
        "data_port",
        "control_port",
        "threads",
        "request_size",
        "response_size",
        "no_delay",
        "backlog",
    ];
    let map = reader.map(node, &Keys::new("tcp_rr blackhole", &accepted))?;
    for key in ["control_port", "threads", "no_delay", "backlog"] {
        if let Some(node) = map.take(key) {
            let message = format!("`{key}` has no effect");
            reader.report(reader.note(code::NO_EFFECT, node.span, message));
        }
    }
    let number = |key, default: u32, maximum| {
        map.read_or(key, default, |node| reader.whole(node, 1, maximum))
    };
    let port = number("data_port", 12_867, u32::from(u16::MAX));
    let length = |key| MessageLength::try_from(number(key, 1, MessageLength::MAX_BYTES)?).ok();
    let (request_bytes, response_bytes) = (length("request_size"), length("response_size"));
    let node = map.required("addr")?;
    let text = reader.text(node)?;
    let Ok(ip) = text.parse::<IpAddr>() else {
        let message = format!("`{text}` is not an IP address");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write the port under `data_port`"));
        return None;
    };
    let port = u16::try_from(port?).unwrap_or_default();
    let listening = Node {
        span: node.span,
        value: Value::Scalar {
            text: SocketAddr::new(ip, port).to_string(),
            quoted: false,
        },
    };
    let place = read_listening(reader, &listening)?;
    Some(Placed {
        value: SinkProtocol::TcpRr {
            address: place.value,
            request_bytes: request_bytes?,
            response_bytes: response_bytes?,
        },
        span: place.span,
    })
}
