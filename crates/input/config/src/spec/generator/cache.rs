//! Blocks that are built before a run.

use stillwell_text::{Node, Value};
use stillwell_units::ByteSize;

use crate::element::{Element, SIZE, Shape, optional};
use crate::spec::ReadContext;

pub(super) const CACHE: Element = Element::new(
    "cache",
    "Payload that is built before the run.",
    &[
        optional("size", SIZE, "Size of this payload; 64 MiB by default."),
        optional(
            "repeat",
            Shape::Boolean,
            "`true`: its blocks are sent again and again, and no new ones are built during the run.",
        ),
    ],
);

const SIZE_DEFAULT: ByteSize = ByteSize::mib(64);

/// Returns the size of the payload that is built, and true if its blocks are sent again and again.
pub(super) fn read(context: &ReadContext<'_>, node: Option<&Node>) -> Option<(ByteSize, bool)> {
    let reader = context.reader;
    let Some(node) = node else {
        return Some((SIZE_DEFAULT, false));
    };
    if matches!(node.value, Value::Scalar { .. }) {
        return Some((reader.parsed(node)?, false));
    }
    let map = reader.map(node, &CACHE.keys())?;
    let size = map.read_or("size", SIZE_DEFAULT, |node| reader.parsed(node));
    let repeats = map.read_or("repeat", false, |node| reader.boolean(node));
    Some((size?, repeats?))
}
