//! HTTP POST of blocks.

use stillwell_plan::TransportPlan;
use stillwell_plan::generator::ExchangePlan;
use stillwell_plan::load::{LoadProtocol, Reuse};
use stillwell_plan::tls::Verification;
use stillwell_text::{MapReader, Node, code};
use stillwell_units::Nanos;

use super::{ReadContext, is_short};
use crate::element::{DURATION, Element, Field, Shape, TEXT_MAP, concat, optional, required};

const PROTOCOLS: [(&str, LoadProtocol); 2] = [
    ("http1", LoadProtocol::Http1),
    ("http2", LoadProtocol::Http2),
];
const REUSES: [(&str, Reuse); 2] = [("lru", Reuse::Lru), ("mru", Reuse::Mru)];
const STREAMS_MAX: u32 = 1000;

const SPECIFIC_FIELDS: [Field; 3] = [
    required("url", Shape::Like("http://127.0.0.1:8080/"), "Target URL."),
    optional(
        "headers",
        TEXT_MAP,
        "Headers besides Host and Content-Length.",
    ),
    optional(
        "protocol",
        Shape::Words(&["http1", "http2"]),
        "Protocol of the connections; HTTP/1.1 by default.",
    ),
];

/// Keys of connections and their limits.
pub(super) const EXCHANGE: [Field; 7] = [
    optional(
        "streams",
        Shape::Whole,
        "Requests at once on each connection; 1 by default. HTTP/1.1 accepts only 1.",
    ),
    optional(
        "timeout",
        DURATION,
        "Timeout of a response; 30s by default.",
    ),
    optional(
        "connect_timeout",
        DURATION,
        "Timeout of a connection attempt with TLS; 10s by default.",
    ),
    optional(
        "reuse",
        Shape::Words(&["lru", "mru"]),
        "Choice among idle connections: the least or the most recently used one.",
    ),
    optional(
        "requests_per_connection",
        Shape::Whole,
        "Maximum number of requests on one connection.",
    ),
    optional(
        "insecure",
        Shape::Boolean,
        "`true`: certificates of https URLs are not checked.",
    ),
    optional(
        "ca",
        Shape::Text,
        "PEM file of an additional authority, or `system`: the certificates of the host.",
    ),
];

const FIELDS: [Field; SPECIFIC_FIELDS.len() + EXCHANGE.len()] = concat(&SPECIFIC_FIELDS, &EXCHANGE);

pub(super) const HTTP: Element = Element::new(
    "http generator",
    "HTTP POST requests, one block per request.",
    &FIELDS,
);

pub(super) fn read(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    if is_short(node) {
        return Some(TransportPlan::Http {
            url: context.any_url(node)?,
            headers: Vec::new(),
            exchange: Box::default(),
        });
    }
    let map = context.reader.map(node, &HTTP.keys())?;
    let headers = map.take("headers").map(|node| context.reader.headers(node));
    let url = map.required("url").and_then(|node| context.any_url(node));
    let exchange = read_exchange(context, &map, &PROTOCOLS, LoadProtocol::Http1);
    Some(TransportPlan::Http {
        url: url?,
        headers: headers.unwrap_or_default(),
        exchange: Box::new(exchange?),
    })
}

/// Reads the exchange of requests and answers, over the protocol `default` unless `map` has one
/// of `protocols`.
pub(super) fn read_exchange(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    protocols: &[(&str, LoadProtocol)],
    default: LoadProtocol,
) -> Option<ExchangePlan> {
    let reader = context.reader;
    let mut plan = ExchangePlan {
        protocol: default,
        ..ExchangePlan::default()
    };
    let mut is_whole = true;
    let mut set = |is_read: Option<()>| is_whole &= is_read.is_some();
    if let Some(node) = map.take("protocol") {
        let word = reader.word(node, "protocol", protocols);
        set(word.map(|value| plan.protocol = value));
    }
    if let Some(node) = map.take("streams") {
        set(reader
            .whole(node, 1, STREAMS_MAX)
            .map(|value| plan.streams = value));
        if plan.protocol == LoadProtocol::Http1 && plan.streams > 1 {
            let message = "HTTP/1.1 carries one request at a time on a connection";
            let error = reader.error(code::OUT_OF_RANGE, node.span, message);
            reader.report(error.label("write `protocol: http2` beside it, or more connections"));
            set(None);
        }
    }
    if let Some(node) = map.take("reuse") {
        set(reader
            .word(node, "reuse", &REUSES)
            .map(|value| plan.reuse = value));
    }
    if let Some(node) = map.take("requests_per_connection") {
        let most = reader.whole(node, 1, u64::MAX);
        set(most.map(|value| plan.requests_max = Some(value)));
    }
    set(read_limits(context, map, &mut plan));
    is_whole.then_some(plan)
}

/// Reads the time limits of requests and connections, and the check of certificates.
pub(super) fn read_limits(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    plan: &mut ExchangePlan,
) -> Option<()> {
    let reader = context.reader;
    let mut is_whole = true;
    let mut set = |is_read: Option<()>| is_whole &= is_read.is_some();
    for (key, room) in [
        ("timeout", &mut plan.timeout),
        ("connect_timeout", &mut plan.connect_timeout),
    ] {
        if let Some(node) = map.take(key) {
            set(read_length(context, node).map(|length| *room = length));
        }
    }
    let insecure = map.take("insecure").and_then(|node| reader.boolean(node));
    let ca = map.take("ca");
    if insecure == Some(true) {
        plan.tls.verification = Verification::None;
        if let Some(node) = ca {
            let message = "`ca` checks certificates, and `insecure` turns the check off";
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("leave out one of them"));
            set(None);
        }
    } else if let Some(node) = ca {
        set(context.roots(node).map(|source| {
            plan.tls.verification = Verification::Roots {
                extra: vec![source],
                public: true,
            };
        }));
    }
    is_whole.then_some(())
}

/// A length of time above zero.
pub(super) fn read_length(context: &ReadContext<'_>, node: &Node) -> Option<Nanos> {
    let length: Nanos = context.reader.parsed(node)?;
    if length > Nanos::ZERO {
        return Some(length);
    }
    let message = "a length of zero";
    let error = context.reader.error(code::OUT_OF_RANGE, node.span, message);
    context
        .reader
        .report(error.label("write a length above zero"));
    None
}
