//! Streams, datagrams and Unix sockets as transports of a generator.

use stillwell_plan::TransportPlan;
use stillwell_plan::generator::StreamTarget;
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_text::{Node, Value};

use super::{ReadContext, tls};
use crate::element::{Element, Shape, optional, required};

pub(super) const ADDRESS: Shape = Shape::Like("127.0.0.1:9100");

pub(super) const TCP: Element = Element::new(
    "tcp generator",
    "A TCP stream.",
    &[
        required("address", ADDRESS, "The target's `host:port`."),
        optional("tls", Shape::Element(&tls::TLS), "TLS over the stream."),
    ],
);

pub(super) const UDP: Element = Element::new(
    "udp generator",
    "UDP datagrams.",
    &[
        required("address", ADDRESS, "The target's `host:port`."),
        optional("bind", ADDRESS, "The local `host:port` to send from."),
    ],
);

pub(super) const UNIX: Element = Element::new(
    "unix generator",
    "A Unix socket.",
    &[required("path", Shape::Text, "The target's socket.")],
);

pub(super) const UNIX_STREAM: Element = Element::new(
    "unix_stream generator",
    "A Unix stream socket.",
    &[
        required("path", Shape::Text, "The target's socket."),
        optional("tls", Shape::Element(&tls::TLS), "TLS over the stream."),
    ],
);

/// Returns true if `node` is one word in place of a map.
pub(super) const fn is_short(node: &Node) -> bool {
    matches!(node.value, Value::Scalar { .. })
}

pub(super) fn read_tcp(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let (address, tls) = read_stream(context, node, &TCP, "address")?;
    let address = context.address(address)?;
    Some(match tls {
        Some(tls) => TransportPlan::Tls {
            to: StreamTarget::Tcp(address),
            tls,
        },
        None => TransportPlan::Tcp { address },
    })
}

pub(super) fn read_udp(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    if is_short(node) {
        return Some(TransportPlan::Udp {
            address: context.address(node)?,
            bind: BIND_DEFAULT.to_owned(),
        });
    }
    let map = context.reader.map(node, &UDP.keys())?;
    let bind = map.read_or("bind", BIND_DEFAULT.to_owned(), |node| {
        context.bind_address(node)
    });
    let address = map
        .required("address")
        .and_then(|node| context.address(node));
    Some(TransportPlan::Udp {
        address: address?,
        bind: bind?,
    })
}

pub(super) fn read_unix_stream(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let (path, tls) = read_stream(context, node, &UNIX_STREAM, "path")?;
    let path = context.socket(path)?;
    Some(match tls {
        Some(tls) => TransportPlan::Tls {
            to: StreamTarget::Unix(path),
            tls,
        },
        None => TransportPlan::UnixStream { path },
    })
}

pub(super) fn read_unix_datagram(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let path = context.socket(inner(context, node, &UNIX, "path")?)?;
    Some(TransportPlan::UnixDatagram { path })
}

/// Address of a stream, and its TLS if any.
fn read_stream<'n>(
    context: &ReadContext<'_>,
    node: &'n Node,
    element: &Element,
    key: &'static str,
) -> Option<(&'n Node, Option<Box<ClientTlsPlan>>)> {
    if is_short(node) {
        return Some((node, None));
    }
    let map = context.reader.map(node, &element.keys())?;
    let tls = match map.take("tls") {
        Some(node) => Some(tls::read(context, node)?),
        // `tls:` with nothing behind it would be a stream in the clear.
        None if map.key_span("tls").is_some() => {
            map.required("tls")?;
            None
        }
        None => None,
    };
    Some((map.required(key)?, tls))
}

const BIND_DEFAULT: &str = "127.0.0.1:0";

/// The only key of `element`, or `node` itself where it is written short.
pub(super) fn inner<'n>(
    context: &ReadContext<'_>,
    node: &'n Node,
    element: &Element,
    key: &'static str,
) -> Option<&'n Node> {
    if is_short(node) {
        return Some(node);
    }
    context.reader.map(node, &element.keys())?.required(key)
}
