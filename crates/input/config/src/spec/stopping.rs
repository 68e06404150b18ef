//! `pairs`.

use stillwell_plan::StoppingPlan;
use stillwell_plan::stopping::PAIRS_MIN;
use stillwell_text::{Node, Value};

use super::ReadContext;
use crate::element::{Element, Shape, optional};

/// A plan of looks beyond this has no practical limit and counts as open.
pub(crate) const LOOKS_PAIRS_MAX: u32 = 1_000;
/// Beyond this a number of pairs is a slip.
pub(crate) const PAIRS_MAX: u32 = 10_000;

const PAIRS: Element = Element::new(
    "number of pairs",
    "Rule for the number of pairs of runs.",
    &[
        optional(
            "max",
            Shape::Whole,
            "Checks after 4, 6, 8 … pairs, up to this number; 20 by default.",
        ),
        optional(
            "fixed",
            Shape::Whole,
            "One check, after this number of pairs.",
        ),
        optional(
            "open",
            Shape::Whole,
            "Checks after every pair, up to this number.",
        ),
    ],
)
.one_of(&["max", "fixed", "open"]);

/// A number, which is fixed, or what ends it.
pub(super) const SHAPE: Shape = Shape::Any(&[Shape::Whole, Shape::Element(&PAIRS)]);

pub(super) fn read_stopping(context: &ReadContext<'_>, node: &Node) -> Option<StoppingPlan> {
    let reader = context.reader;
    if matches!(node.value, Value::Scalar { .. }) {
        let pairs = reader.whole(node, 1, PAIRS_MAX)?;
        return Some(StoppingPlan::Fixed { pairs });
    }
    let map = reader.map(node, &PAIRS.keys())?;
    Some(match map.one_of(PAIRS.one_of)? {
        ("max", node) => StoppingPlan::Sequential {
            max_pairs: reader.whole(node, PAIRS_MIN, LOOKS_PAIRS_MAX)?,
        },
        ("fixed", node) => StoppingPlan::Fixed {
            pairs: reader.whole(node, 1, PAIRS_MAX)?,
        },
        (_, node) => StoppingPlan::Open {
            max_pairs: reader.whole(node, PAIRS_MIN, PAIRS_MAX)?,
        },
    })
}
