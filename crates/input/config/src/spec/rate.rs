//! `rate` of a generator.

use stillwell_plan::{RatePlan, RateUnit};
use stillwell_text::{Node, Reader, Value, code};
use stillwell_units::Nanos;

use super::ReadContext;
use crate::element::{DURATION, Element, Shape, required};
use crate::rate::{RateError, parse_level, parse_rate, ramp, unit};

const TEXT: Shape = Shape::Like("10 MiB/s");

const RAMP: Element = Element::new(
    "ramp",
    "A rate that changes evenly.",
    &[
        required("from", TEXT, "The rate at the start."),
        required("to", TEXT, "The rate at the end."),
        required("over", DURATION, "Time of the change."),
    ],
);

/// `10 MiB/s`, `5k/s`, `max`, a ramp, or steps.
pub(super) const SHAPE: Shape = Shape::Any(&[TEXT, Shape::Element(&RAMP)]);

pub(super) fn read_rate(context: &ReadContext<'_>, node: &Node) -> Option<RatePlan> {
    let reader = context.reader;
    if matches!(node.value, Value::Scalar { .. }) {
        return read_text(reader, node, parse_rate);
    }
    let map = reader.map(node, &RAMP.keys())?;
    let (from_node, to_node) = (map.required("from"), map.required("to"));
    let from = from_node.and_then(|node| read_text(reader, node, parse_level));
    let to = to_node.and_then(|node| read_text(reader, node, parse_level));
    let over_node = map.required("over");
    let over = over_node.and_then(|node| reader.parsed::<Nanos>(node));
    let (from, to, over) = (from?, to?, over?);
    let (to_span, over_span) = (to_node?.span, over_node?.span);
    let unit = match unit("0/s", &[from, to]) {
        Ok(unit) => unit,
        Err(RateError::Mixed) => {
            let message = "a ramp counts either bytes or events";
            let error = reader.error(code::MIXED_UNITS, to_span, message);
            let from_place = reader.place(from_node?.span);
            reader.report(error.label("another unit").context(from_place, "than this"));
            return None;
        }
        Err(_) => {
            let message = "a ramp from zero to zero sends nothing";
            reader.report(reader.error(code::OUT_OF_RANGE, to_span, message));
            return None;
        }
    };
    if over == Nanos::ZERO {
        let message = "a ramp takes time: `over` must be above zero";
        reader.report(reader.error(code::OUT_OF_RANGE, over_span, message));
        return None;
    }
    Some(RatePlan {
        unit,
        shape: ramp(from, to, over),
    })
}

fn read_text<T>(
    reader: &Reader,
    node: &Node,
    parse: impl Fn(&str) -> Result<T, RateError>,
) -> Option<T> {
    let error = match parse(reader.text(node)?) {
        Ok(rate) => return Some(rate),
        Err(RateError::Unit(hint)) => {
            let message = "a rate needs a unit of time";
            let error = reader.error(code::UNIT_MISSING, node.span, message);
            error.label(hint)
        }
        Err(error @ RateError::Mixed) => {
            reader.error(code::MIXED_UNITS, node.span, error.to_string())
        }
        Err(RateError::Value(error)) => reader.parse_error(node.span, &error),
    };
    reader.report(error);
    None
}

/// The largest rate in events each second, where events are counted.
pub(super) fn event_rate_max(rate: &RatePlan) -> Option<f64> {
    match rate.unit {
        RateUnit::Events => rate.shape.highest(),
        RateUnit::Blocks => Some(0.0),
        RateUnit::Bytes => None,
    }
}
