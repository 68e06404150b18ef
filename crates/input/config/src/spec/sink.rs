//! `workload.sinks`.

use std::net::SocketAddr;
use std::num::NonZeroU16;

use stillwell_plan::sink::{LinesPlan, SinkBody};
use stillwell_plan::{SinkPlan, SinkProtocol};
use stillwell_text::{Node, Value, code};
use stillwell_units::Nanos;

use super::ReadContext;
use crate::element::{DURATION, Element, Field, SIZE, Shape, TEXT_MAP, TEXTS, optional, required};
use crate::rules::{Ids, Placed};

mod intake;

pub(super) use intake::read_length;

const ADDRESS: Shape = Shape::Like("127.0.0.1:9200");

const DELAY: Field = optional("delay", DURATION, "Time between request and response.");

const CONNECTIONS: Field = optional(
    "connections_max",
    Shape::Whole,
    "Connections served at once.",
);

const SOCKET: Element = Element::new(
    "socket sink",
    "Reads and counts.",
    &[required("address", ADDRESS, "Address to listen on.")],
);

const UNIX: Element = Element::new(
    "unix sink",
    "Reads and counts.",
    &[required(
        "path",
        Shape::Text,
        "Path of the socket; a stale socket is replaced.",
    )],
);

const HTTP: Element = Element::new(
    "http sink",
    "Answers every request, over HTTP/1.1 and HTTP/2, and every call of gRPC.",
    &[
        required("address", ADDRESS, "Address to listen on."),
        optional("status", Shape::Whole, "Status of every response."),
        optional("headers", TEXT_MAP, "Headers of every response."),
        optional("body", Shape::Text, "Body of every response."),
        DELAY,
        CONNECTIONS,
    ],
);

const INTAKE: Element = Element::new(
    "intake sink",
    "Responses of the service that this sink imitates.",
    &[
        required("address", ADDRESS, "Address to listen on."),
        DELAY,
        CONNECTIONS,
    ],
);

const DATADOG: Element = Element::new(
    "datadog sink",
    "Datadog's intake of metrics and logs.",
    &[
        required("address", ADDRESS, "Address to listen on."),
        DELAY,
        CONNECTIONS,
        optional(
            "record",
            Shape::Any(&[Shape::Words(&["all", "none"]), TEXTS]),
            "Received series that the capture records.",
        ),
    ],
);

const OPENMETRICS: Element = Element::new(
    "openmetrics sink",
    "A page of metrics, for targets that scrape.",
    &[
        required("address", ADDRESS, "Address to listen on."),
        DELAY,
        CONNECTIONS,
        optional("counters", Shape::Whole, "Counters on the page."),
        optional("gauges", Shape::Whole, "Gauges on the page."),
        optional("histograms", Shape::Whole, "Histograms on the page."),
        optional("summaries", Shape::Whole, "Summaries on the page."),
    ],
);

const ROUND_TRIP: Element = Element::new(
    "tcp_rr sink",
    "Answers each request of fixed length.",
    &[
        required("address", ADDRESS, "Address to listen on."),
        optional("request", SIZE, "Length of a request."),
        optional("response", SIZE, "Length of a response."),
    ],
);

const LINES: Element = Element::new(
    "lines",
    "Lines whose stamps count as arrived; all by default.",
    &[
        optional("begins", Shape::Text, "Text at the beginning of the line."),
        optional("ends", Shape::Text, "Text at the end of the line."),
        optional("holds", TEXTS, "Texts that the line must contain."),
    ],
);

const INTAKE_SHAPE: Shape = Shape::Any(&[ADDRESS, Shape::Element(&INTAKE)]);

const KINDS: &[&str] = &[
    "tcp",
    "udp",
    "unix_stream",
    "unix_datagram",
    "http",
    "splunk_hec",
    "datadog",
    "datadog_stateful_logs",
    "otlp",
    "sqs",
    "elasticsearch",
    "loki",
    "s3",
    "openmetrics",
    "tcp_rr",
    "file",
];

pub(super) const SINK: Element = Element::new(
    "sink",
    "Receives what the target forwards.",
    &[
        optional(
            "tcp",
            Shape::Any(&[ADDRESS, Shape::Element(&SOCKET)]),
            "A TCP listener.",
        ),
        optional(
            "udp",
            Shape::Any(&[ADDRESS, Shape::Element(&SOCKET)]),
            "A UDP socket.",
        ),
        optional(
            "unix_stream",
            Shape::Any(&[Shape::Text, Shape::Element(&UNIX)]),
            "A Unix stream listener.",
        ),
        optional(
            "unix_datagram",
            Shape::Any(&[Shape::Text, Shape::Element(&UNIX)]),
            "A Unix datagram socket.",
        ),
        optional(
            "http",
            Shape::Any(&[ADDRESS, Shape::Element(&HTTP)]),
            "An HTTP server.",
        ),
        optional("splunk_hec", INTAKE_SHAPE, "Splunk's HTTP event collector."),
        optional(
            "datadog",
            Shape::Any(&[ADDRESS, Shape::Element(&DATADOG)]),
            "Datadog's intake of metrics and logs.",
        ),
        optional(
            "datadog_stateful_logs",
            INTAKE_SHAPE,
            "Datadog's stateful logs over gRPC.",
        ),
        optional("otlp", INTAKE_SHAPE, "OpenTelemetry over gRPC and HTTP."),
        optional(
            "sqs",
            INTAKE_SHAPE,
            "Amazon SQS: a queue that never runs out of messages.",
        ),
        optional("elasticsearch", INTAKE_SHAPE, "Elasticsearch's bulk API."),
        optional("loki", INTAKE_SHAPE, "Loki's push API."),
        optional("s3", INTAKE_SHAPE, "S3: accepts uploads of objects."),
        optional(
            "openmetrics",
            Shape::Any(&[ADDRESS, Shape::Element(&OPENMETRICS)]),
            "A page of metrics that the target scrapes.",
        ),
        optional(
            "tcp_rr",
            Shape::Any(&[ADDRESS, Shape::Element(&ROUND_TRIP)]),
            "Answers requests of fixed length.",
        ),
        optional(
            "file",
            Shape::Text,
            "A file that the target writes; the sink reads what is appended.",
        ),
        optional("id", Shape::Text, "Name; that of its protocol by default."),
        optional(
            "workers",
            Shape::Whole,
            "Number of threads; a `file` sink has one.",
        ),
        optional(
            "limit",
            Shape::Like("5 MiB/s"),
            "Maximum rate at which it reads, over all connections, to simulate a slow receiver.",
        ),
        optional(
            "lines",
            Shape::Element(&LINES),
            "Lines whose stamps count as arrived; all by default.",
        ),
        optional(
            "prefix",
            super::stamp::FRAMINGS,
            "Framing of events that have a time in eight bytes before them; none by default.",
        ),
    ],
)
.one_of(KINDS);

pub(super) fn read_sinks(context: &ReadContext<'_>, node: &Node) -> Vec<Placed<SinkPlan>> {
    let items = context.reader.list(node).unwrap_or_default();
    let mut ids = Ids::new(context.reader, "sink");
    let sinks: Vec<_> = items
        .iter()
        .map(|item| (read_sink(context, item), item.entry("id")))
        .collect();
    ids.reserve(sinks.iter().filter_map(|(_, id)| {
        let id = id.as_ref()?;
        Some((context.reader.text(id)?, id.span))
    }));
    sinks
        .into_iter()
        .filter_map(|(sink, id)| {
            let mut sink = sink?;
            if id.is_none() {
                sink.value.id = ids.free(sink.value.protocol.name());
            }
            Some(sink)
        })
        .collect()
}

fn read_sink(context: &ReadContext<'_>, node: &Node) -> Option<Placed<SinkPlan>> {
    let map = context.reader.map(node, &SINK.keys())?;
    let id = map.take("id").and_then(|node| context.filled(node));
    let workers = map.read_or("workers", NonZeroU16::MIN, |node| {
        NonZeroU16::new(context.reader.whole(node, 1, 1024)?)
    });
    let limit_node = map.take("limit");
    let limit = limit_node.and_then(|node| context.reader.parsed(node));
    let (kind, body) = map.one_of(KINDS)?;
    if let (Some(node), "file") = (node.entry("workers"), kind)
        && workers.is_some_and(|workers| workers > NonZeroU16::MIN)
    {
        let message = "a `file` sink has one worker";
        let error = context.reader.error(code::BAD_VALUE, node.span, message);
        context.reader.report(error.label("leave it out"));
    }
    if let (Some(node), "udp" | "unix_datagram" | "file") = (limit_node, kind) {
        let message = format!("a `{kind}` sink that reads slowly does not slow the sender");
        let error = context.reader.error(code::BAD_VALUE, node.span, message);
        context
            .reader
            .report(error.label("only streams have a `limit`"));
    }
    let lines_node = map.take("lines");
    if let Some(node) = lines_node
        && !matches!(kind, "tcp" | "unix_stream" | "http" | "file")
    {
        let message = format!("a `{kind}` sink does not support `lines`");
        let error = context.reader.error(code::BAD_VALUE, node.span, message);
        context
            .reader
            .report(error.label("only `tcp`, `unix_stream`, `http` and `file` do"));
    }
    let lines = lines_node.and_then(|node| read_lines(context, node));
    let prefix_node = map.take("prefix");
    if let Some(node) = prefix_node
        && !matches!(kind, "tcp" | "udp" | "unix_stream" | "unix_datagram")
    {
        let message = format!("events of a `{kind}` sink cannot have a time prefix");
        let error = context.reader.error(code::BAD_VALUE, node.span, message);
        context
            .reader
            .report(error.label("`tcp`, `udp`, `unix_stream` and `unix_datagram` have `prefix`"));
    }
    let prefix = prefix_node.and_then(|node| super::stamp::read_framing(context, node));
    let protocol = read_protocol(context, kind, body)?;
    let value = SinkPlan {
        id: id.unwrap_or_default().to_owned(),
        protocol: protocol.value,
        workers: workers?,
        limit,
        lines,
        prefix,
    };
    Some(Placed {
        value,
        span: protocol.span,
    })
}

fn read_lines(context: &ReadContext<'_>, node: &Node) -> Option<LinesPlan> {
    let map = context.reader.map(node, &LINES.keys())?;
    let text = |key| map.take(key).and_then(|node| context.reader.text(node));
    let (begins, ends) = (text("begins"), text("ends"));
    let holds = map.take("holds").and_then(|node| context.reader.list(node));
    let holds = holds.unwrap_or_default().iter();
    let holds = holds.filter_map(|node| context.filled(node).map(str::to_owned));
    Some(LinesPlan {
        holds: holds.collect(),
        begins: begins.unwrap_or_default().to_owned(),
        ends: ends.unwrap_or_default().to_owned(),
    })
}

fn read_protocol(
    context: &ReadContext<'_>,
    kind: &str,
    node: &Node,
) -> Option<Placed<SinkProtocol>> {
    let is_short = matches!(node.value, Value::Scalar { .. });
    if kind == "http" && !is_short {
        return read_http(context, node);
    }
    if kind == "file" {
        return Some(Placed {
            value: SinkProtocol::File {
                path: context.placed(node)?,
            },
            span: node.span,
        });
    }
    if !matches!(
        kind,
        "tcp" | "udp" | "unix_stream" | "unix_datagram" | "http"
    ) {
        return intake::read(context, kind, node);
    }
    let (element, key) = if kind.starts_with("unix") {
        (&UNIX, "path")
    } else {
        (&SOCKET, "address")
    };
    let place = if is_short {
        node
    } else {
        context.reader.map(node, &element.keys())?.required(key)?
    };
    let value = match kind {
        "tcp" => SinkProtocol::Tcp {
            address: read_address(context, place)?,
        },
        "udp" => SinkProtocol::Udp {
            address: read_address(context, place)?,
        },
        "unix_stream" => SinkProtocol::UnixStream {
            path: context.socket(place)?,
        },
        "unix_datagram" => SinkProtocol::UnixDatagram {
            path: context.socket(place)?,
        },
        _ => http(read_address(context, place)?),
    };
    Some(Placed {
        value,
        span: place.span,
    })
}

const CONNECTIONS_MAX: u32 = 1024;

/// An HTTP sink with everything left out.
const fn http(address: SocketAddr) -> SinkProtocol {
    SinkProtocol::Http {
        address,
        status: 200,
        headers: Vec::new(),
        body: SinkBody::Empty,
        delay: Nanos::ZERO,
        connections_max: CONNECTIONS_MAX,
    }
}

fn read_http(context: &ReadContext<'_>, node: &Node) -> Option<Placed<SinkProtocol>> {
    let reader = context.reader;
    let map = reader.map(node, &HTTP.keys())?;
    let place = map.required("address");
    let address = place.and_then(|node| read_address(context, node));
    let status = map.read_or("status", 200, |node| reader.whole(node, 200, 599));
    let headers = map.take("headers").map(|node| reader.headers(node));
    let body = map.read_or("body", SinkBody::Empty, |node| {
        reader.text(node).map(|text| SinkBody::Static(text.into()))
    });
    let delay = map.read_or("delay", Nanos::ZERO, |node| reader.parsed(node));
    let connections_max = map.read_or("connections_max", CONNECTIONS_MAX, |node| {
        reader.whole(node, 1, 1_000_000)
    });
    Some(Placed {
        value: SinkProtocol::Http {
            address: address?,
            status: status?,
            headers: headers.unwrap_or_default(),
            body: body?,
            delay: delay?,
            connections_max: connections_max?,
        },
        span: place?.span,
    })
}

/// Address at which a sink listens; `localhost` is 127.0.0.1.
fn read_address(context: &ReadContext<'_>, node: &Node) -> Option<SocketAddr> {
    let text = context.reader.text(node)?;
    let address = text.replacen("localhost:", "127.0.0.1:", 1);
    match address.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => Some(address),
        Ok(_) => {
            let message = "the target cannot connect to port 0";
            let error = context.reader.error(code::OUT_OF_RANGE, node.span, message);
            context.reader.report(error.label("a port from 1 to 65535"));
            None
        }
        Err(_) => {
            let message = format!("`{text}` is not an address to listen on");
            let error = context.reader.error(code::BAD_VALUE, node.span, message);
            context
                .reader
                .report(error.label("write an IP address and a port, such as `127.0.0.1:9200`"));
            None
        }
    }
}
