//! `workload.generators`.

use std::path::PathBuf;

use stillwell_legacy::{Ids, MapReader, Node, Placed, Reader, Value, code};
use stillwell_plan::{BlockShape, GeneratorPlan, PayloadPlan, RatePlan, TransportPlan};
use stillwell_units::{ByteSize, Seed};

use super::{Door, payload, rate};
use crate::schema::{Element, SIZE, Shape, TEXT_MAP, optional, required};

const ADDRESS: Shape = Shape::Like("127.0.0.1:9100");

const TCP: Element = Element {
    name: "tcp generator",
    about: "A TCP stream.",
    fields: &[required("address", ADDRESS, "The target's `host:port`.")],
    one_of: &[],
};

const UDP: Element = Element {
    name: "udp generator",
    about: "UDP datagrams.",
    fields: &[
        required("address", ADDRESS, "The target's `host:port`."),
        optional("bind", ADDRESS, "The local `host:port` to send from."),
    ],
    one_of: &[],
};

const UNIX: Element = Element {
    name: "unix generator",
    about: "A Unix socket.",
    fields: &[required("path", Shape::Text, "The target's socket.")],
    one_of: &[],
};

const HTTP: Element = Element {
    name: "http generator",
    about: "HTTP/1.1 POST requests, one in flight a connection.",
    fields: &[
        required("url", Shape::Like("http://127.0.0.1:8080/"), "Where to."),
        optional(
            "headers",
            TEXT_MAP,
            "Headers besides Host and Content-Length.",
        ),
    ],
    one_of: &[],
};

const BLOCK: Element = Element {
    name: "block",
    about: "How events are gathered into blocks.",
    fields: &[
        optional("events", Shape::Whole, "Events in each block."),
        optional("maximum", SIZE, "No block is larger."),
    ],
    one_of: &[],
};

const KINDS: &[&str] = &["tcp", "udp", "unix_stream", "unix_datagram", "http"];

pub(super) const GENERATOR: Element = Element {
    name: "generator",
    about: "One source of load.",
    fields: &[
        optional(
            "tcp",
            Shape::Any(&[ADDRESS, Shape::Element(&TCP)]),
            "A TCP stream.",
        ),
        optional(
            "udp",
            Shape::Any(&[ADDRESS, Shape::Element(&UDP)]),
            "UDP datagrams.",
        ),
        optional(
            "unix_stream",
            Shape::Any(&[Shape::Text, Shape::Element(&UNIX)]),
            "A Unix stream.",
        ),
        optional(
            "unix_datagram",
            Shape::Any(&[Shape::Text, Shape::Element(&UNIX)]),
            "Unix datagrams.",
        ),
        optional(
            "http",
            Shape::Any(&[Shape::Text, Shape::Element(&HTTP)]),
            "HTTP requests.",
        ),
        required("payload", payload::SHAPE, "The format of events."),
        optional(
            "rate",
            rate::SHAPE,
            "Of all connections together; else from a probe.",
        ),
        optional("connections", Shape::Whole, "Connections in all."),
        optional(
            "workers",
            Shape::Whole,
            "Threads over which connections are spread.",
        ),
        optional("id", Shape::Text, "Its name; else that of its transport."),
        optional(
            "block",
            Shape::Any(&[SIZE, Shape::Element(&BLOCK)]),
            "What leaves in one write.",
        ),
        optional("cache", SIZE, "Bytes built before the run."),
    ],
    one_of: KINDS,
};

/// A generator, and whether its rate was stated.
#[derive(Debug)]
pub(crate) struct GeneratorSpec {
    pub(crate) plan: Placed<GeneratorPlan>,
    pub(crate) has_rate: bool,
}

pub(super) fn read_generators(door: &Door<'_>, node: &Node, seed: &Seed) -> Vec<GeneratorSpec> {
    let reader = door.reader;
    let items = reader.list(node).unwrap_or_default();
    let mut ids = Ids::new(reader, "generator");
    let found: Vec<_> = items
        .iter()
        .map(|item| (read_generator(door, item), item.entry("id"), item.span))
        .collect();
    ids.reserve(found.iter().filter_map(|(_, id, _)| {
        let id = id.as_ref()?;
        Some((reader.text(id)?, id.span))
    }));
    let mut generators = Vec::new();
    for (index, (spec, id, span)) in (0..).zip(found) {
        let Some(mut spec) = spec else {
            continue;
        };
        let plan = &mut spec.plan.value;
        if id.is_none() {
            plan.id = ids.free(plan.transport.name());
        }
        plan.seed = seed.derive("payload", index);
        spec.plan.span = span;
        generators.push(spec);
    }
    generators
}

fn read_generator(door: &Door<'_>, node: &Node) -> Option<GeneratorSpec> {
    let reader = door.reader;
    let map = reader.map(node, &GENERATOR.keys())?;
    let transport = map
        .one_of(KINDS)
        .and_then(|(kind, node)| read_transport(door, kind, node));
    let id = map.take("id").and_then(|node| door.filled(node));
    let format = map
        .required("payload")
        .and_then(|node| payload::read_payload(door, node));
    let rate_node = map.take("rate");
    let rate = match rate_node {
        Some(node) => rate::read_rate(door, node),
        None => Some(RatePlan::MAX),
    };
    let (connections, workers) = read_threads(reader, &map);
    let block = map.take("block");
    let cache_node = map.take("cache");
    let cache = match cache_node {
        Some(node) => reader.parsed(node),
        None => Some(ByteSize::mib(64)),
    };
    let transport = transport?;
    // One mistake must not hide another.
    let blocks = read_blocks(door, block, &transport, &rate.unwrap_or(RatePlan::MAX));
    let (blocks, cache) = (blocks?, cache?);
    if let Some(node) = cache_node
        && cache < blocks.maximum()
    {
        let message = format!("a cache of {cache} does not hold one block");
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        reader.report(error.label(format!("at least {}, the largest block", blocks.maximum())));
    }
    let plan = GeneratorPlan {
        id: id.unwrap_or_default().to_owned(),
        transport,
        payload: PayloadPlan {
            format: format?,
            blocks,
            cache,
        },
        rate: rate?,
        connections: connections?,
        workers: workers?,
        seed: Seed::from_number(0),
    };
    Some(GeneratorSpec {
        plan: Placed {
            value: plan,
            span: node.span,
        },
        has_rate: rate_node.is_some(),
    })
}

fn read_threads(reader: &Reader, map: &MapReader<'_, '_>) -> (Option<u16>, Option<u16>) {
    let read = |key| match map.take(key) {
        Some(node) => reader.whole(node, 1, u16::MAX),
        None => Some(1),
    };
    let (connections, workers) = (read("connections"), read("workers"));
    if let (Some(connections), Some(workers), Some(node)) =
        (connections, workers, map.take("workers"))
        && workers > connections
    {
        let message = format!("{workers} workers cannot share {connections} connections");
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        reader.report(error.label("at most as many as `connections`"));
    }
    (connections, workers)
}

fn read_transport(door: &Door<'_>, kind: &str, node: &Node) -> Option<TransportPlan> {
    let is_short = matches!(node.value, Value::Scalar { .. });
    match kind {
        "tcp" => {
            let address = inner(door, node, is_short, &TCP, "address")?;
            let address = door.address(address)?;
            Some(TransportPlan::Tcp { address })
        }
        "udp" if is_short => Some(TransportPlan::Udp {
            address: door.address(node)?,
            bind: BIND_DEFAULT.to_owned(),
        }),
        "udp" => {
            let map = door.reader.map(node, &UDP.keys())?;
            let bind = match map.take("bind") {
                Some(node) => door.bind_address(node),
                None => Some(BIND_DEFAULT.to_owned()),
            };
            let address = map.required("address").and_then(|node| door.address(node));
            Some(TransportPlan::Udp {
                address: address?,
                bind: bind?,
            })
        }
        "unix_stream" => Some(TransportPlan::UnixStream {
            path: socket(door, node, is_short)?,
        }),
        "unix_datagram" => Some(TransportPlan::UnixDatagram {
            path: socket(door, node, is_short)?,
        }),
        _ if is_short => Some(TransportPlan::Http {
            url: door.url(node)?,
            headers: Vec::new(),
        }),
        _ => {
            let map = door.reader.map(node, &HTTP.keys())?;
            let headers = map.take("headers").map(|node| door.reader.headers(node));
            let url = map.required("url").and_then(|node| door.url(node));
            Some(TransportPlan::Http {
                url: url?,
                headers: headers.unwrap_or_default(),
            })
        }
    }
}

const BIND_DEFAULT: &str = "127.0.0.1:0";

fn socket(door: &Door<'_>, node: &Node, is_short: bool) -> Option<PathBuf> {
    door.socket(inner(door, node, is_short, &UNIX, "path")?)
}

/// The only key of `element`, or `node` itself where it is written short.
fn inner<'n>(
    door: &Door<'_>,
    node: &'n Node,
    is_short: bool,
    element: &Element,
    key: &'static str,
) -> Option<&'n Node> {
    if is_short {
        return Some(node);
    }
    door.reader.map(node, &element.keys())?.required(key)
}

/// Up to this rate each event leaves by itself on a stream, so that the schedule
/// is kept event by event; above, one write each would be the load.
const SINGLE_EVENTS_MAX: f64 = 100_000.0;

fn read_blocks(
    door: &Door<'_>,
    node: Option<&Node>,
    transport: &TransportPlan,
    rate: &RatePlan,
) -> Option<BlockShape> {
    let limit = transport.block_limit();
    let default = match transport {
        // What fits in one Ethernet frame, with room for a tunnel.
        TransportPlan::Udp { .. } => ByteSize::new(1432),
        TransportPlan::UnixDatagram { .. } => ByteSize::kib(8),
        _ => ByteSize::kib(64),
    };
    let Some(node) = node else {
        return Some(default_blocks(transport, rate, default));
    };
    if matches!(node.value, Value::Scalar { .. }) {
        let maximum = read_maximum(door, node, limit)?;
        return Some(BlockShape::UpTo { maximum });
    }
    let map = door.reader.map(node, &BLOCK.keys())?;
    let maximum = match map.take("maximum") {
        Some(node) => read_maximum(door, node, limit),
        None => Some(default),
    };
    let count = map
        .take("events")
        .map(|node| door.reader.whole(node, 1, u32::MAX));
    let maximum = maximum?;
    match count {
        Some(count) => Some(BlockShape::Events {
            count: count?,
            maximum,
        }),
        None => Some(BlockShape::UpTo { maximum }),
    }
}

fn default_blocks(transport: &TransportPlan, rate: &RatePlan, maximum: ByteSize) -> BlockShape {
    let count = match (rate::event_rate_max(rate), transport) {
        (None, _) => None,
        (Some(_), TransportPlan::Http { .. }) => Some(100),
        (Some(_), TransportPlan::Udp { .. } | TransportPlan::UnixDatagram { .. }) => Some(1),
        (Some(rate), TransportPlan::Tcp { .. } | TransportPlan::UnixStream { .. }) => {
            (rate <= SINGLE_EVENTS_MAX).then_some(1)
        }
    };
    match count {
        Some(count) => BlockShape::Events { count, maximum },
        None => BlockShape::UpTo { maximum },
    }
}

fn read_maximum(door: &Door<'_>, node: &Node, limit: Option<ByteSize>) -> Option<ByteSize> {
    let reader = door.reader;
    let size: ByteSize = reader.parsed(node)?;
    if size.bytes() == 0 {
        reader.report(reader.error(code::OUT_OF_RANGE, node.span, "a block of nothing"));
        return None;
    }
    if let Some(limit) = limit
        && size > limit
    {
        let message = format!("a block of {size} does not fit in one datagram");
        let error = reader.error(code::BLOCK_TOO_LARGE, node.span, message);
        reader.report(error.label(format!("at most {} B", limit.bytes())));
        return None;
    }
    Some(size)
}
