//! TLS of streams.

use stillwell_plan::tls::{ClientTlsPlan, Verification};
use stillwell_text::{Node, code};

use super::ReadContext;
use crate::element::{Element, Shape, optional};

pub(super) const TLS: Element = Element::new(
    "tls",
    "TLS over the stream; `{}` checks the certificate against public roots.",
    &[
        optional(
            "ca",
            Shape::Text,
            "PEM file of additional roots, or `system`: the certificates of the host.",
        ),
        optional(
            "insecure",
            Shape::Boolean,
            "`true`: the certificate is not checked.",
        ),
        optional(
            "name",
            Shape::Text,
            "The name that the certificate must have; by default the host of the address, or `localhost` without one.",
        ),
    ],
);

pub(super) fn read(context: &ReadContext<'_>, node: &Node) -> Option<Box<ClientTlsPlan>> {
    let reader = context.reader;
    let map = reader.map(node, &TLS.keys())?;
    let mut plan = ClientTlsPlan::default();
    let insecure = map.read_or("insecure", false, |node| reader.boolean(node))?;
    let ca = map.take("ca");
    if let Some(node) = map.take("name") {
        plan.server_name = Some(context.filled(node)?.to_owned());
    }
    match (insecure, ca) {
        (true, Some(node)) => {
            let message = "`ca` checks certificates, and `insecure` turns the check off";
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("leave out one of them"));
            return None;
        }
        (true, None) => plan.verification = Verification::None,
        (false, Some(node)) => {
            plan.verification = Verification::Roots {
                extra: vec![context.roots(node)?],
                public: true,
            };
        }
        (false, None) => {}
    }
    Some(Box::new(plan))
}
