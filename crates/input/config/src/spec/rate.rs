//! `rate` of a generator.

use stillwell_plan::{RatePlan, RateShape, RateUnit};
use stillwell_text::{Node, Reader, Value, code};
use stillwell_units::{ByteRate, EventRate, Nanos, ParseError, float_from_u64};

use super::Door;
use crate::element::{DURATION, Element, Shape, required};

const TEXT: Shape = Shape::Like("10 MiB/s");

const RAMP: Element = Element {
    name: "ramp",
    about: "A rate that grows evenly.",
    fields: &[
        required("from", TEXT, "The rate at the start."),
        required("to", TEXT, "The rate at the end."),
        required("over", DURATION, "Time of the growth."),
    ],
    one_of: &[],
};

/// `10 MiB/s`, `5k/s`, `max`, or a ramp.
pub(super) const SHAPE: Shape = Shape::Any(&[TEXT, Shape::Element(&RAMP)]);

/// Error of a rate's text.
pub(crate) enum RateError {
    /// It lacks its unit; what to write.
    Unit(String),
    /// It is not understood, or out of bounds.
    Value(ParseError),
}

impl std::fmt::Display for RateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unit(hint) => write!(f, "a rate needs a unit of time: {hint}"),
            Self::Value(error) => write!(f, "{error}"),
        }
    }
}

/// `max`, bytes over time, or events over time.
pub(crate) fn parse_rate(text: &str) -> Result<RatePlan, RateError> {
    let text = text.trim();
    if text == "max" {
        return Ok(RatePlan::MAX);
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(RateError::Value(ParseError::Shape {
            input: text.to_owned(),
            kind: "rate",
            accepted: "`10 MiB/s`, `5k/s` or `max`",
        }));
    }
    let Some((amount, _)) = text.split_once('/') else {
        let hint = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
            number if number.len() == text.len() => {
                format!("write `{text}/s` for events or `{text} KiB/s` for bytes")
            }
            _ => format!("write `{text}/s`"),
        };
        return Err(RateError::Unit(hint));
    };
    if amount.contains(['B', 'b']) {
        let rate: ByteRate = text.parse().map_err(RateError::Value)?;
        Ok(RatePlan::bytes(rate))
    } else {
        let rate: EventRate = text.parse().map_err(RateError::Value)?;
        Ok(RatePlan::events(rate))
    }
}

pub(super) fn read_rate(door: &Door<'_>, node: &Node) -> Option<RatePlan> {
    if matches!(node.value, Value::Scalar { .. }) {
        return read_text(door.reader, node);
    }
    let reader = door.reader;
    let map = reader.map(node, &RAMP.keys())?;
    let (from_node, to_node) = (map.required("from"), map.required("to"));
    let from = from_node.and_then(|node| read_level(reader, node));
    let to = to_node.and_then(|node| read_level(reader, node));
    let over_node = map.required("over");
    let over = over_node.and_then(|node| reader.parsed::<Nanos>(node));
    let ((from_unit, from), (to_unit, to), over) = (from?, to?, over?);
    let (to_span, over_span) = (to_node?.span, over_node?.span);
    if from_unit != to_unit {
        let message = "a ramp counts either bytes or events";
        let error = reader.error(code::MIXED_UNITS, to_span, message);
        let from_place = reader.place(from_node?.span);
        reader.report(error.label("another unit").context(from_place, "than this"));
        return None;
    }
    if to <= from {
        let message = "a ramp grows: `to` must lie above `from`";
        reader.report(reader.error(code::OUT_OF_RANGE, to_span, message));
        return None;
    }
    if over == Nanos::ZERO {
        let message = "a ramp takes time: `over` must be above zero";
        reader.report(reader.error(code::OUT_OF_RANGE, over_span, message));
        return None;
    }
    Some(RatePlan {
        unit: from_unit,
        shape: RateShape::Ramp {
            initial_per_second: from,
            maximum_per_second: to,
            change_per_second: (to - from) / over.as_secs_f64(),
        },
    })
}

fn read_text(reader: &Reader, node: &Node) -> Option<RatePlan> {
    match parse_rate(reader.text(node)?) {
        Ok(rate) => Some(rate),
        Err(RateError::Unit(hint)) => {
            let message = "a rate needs a unit of time";
            let error = reader.error(code::UNIT_MISSING, node.span, message);
            reader.report(error.label(hint));
            None
        }
        Err(RateError::Value(error)) => {
            reader.report(reader.parse_error(node.span, &error));
            None
        }
    }
}

/// One end of a ramp.
fn read_level(reader: &Reader, node: &Node) -> Option<(RateUnit, f64)> {
    let rate = read_text(reader, node)?;
    if let RateShape::Constant { per_second } = rate.shape {
        return Some((rate.unit, per_second));
    }
    let message = "an end of a ramp is a rate, not `max`";
    reader.report(reader.error(code::BAD_VALUE, node.span, message));
    None
}

/// The largest rate in events each second, where events are counted.
pub(super) fn event_rate_max(rate: &RatePlan) -> Option<f64> {
    match (rate.unit, rate.shape) {
        (RateUnit::Events, RateShape::Constant { per_second }) => Some(per_second),
        (
            RateUnit::Events,
            RateShape::Ramp {
                maximum_per_second, ..
            },
        ) => Some(maximum_per_second),
        (RateUnit::Blocks, _) => Some(float_from_u64(0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_as_typed() {
        for (text, unit, per_second) in [
            ("10 MiB/s", RateUnit::Bytes, 10_485_760.0),
            ("5k/s", RateUnit::Events, 5000.0),
            ("300/m", RateUnit::Events, 5.0),
            ("1 B/s", RateUnit::Bytes, 1.0),
        ] {
            let rate = parse_rate(text).ok().unwrap();
            assert_eq!(rate.unit, unit);
            assert_eq!(rate.shape, RateShape::Constant { per_second }, "{text}");
        }
        assert!(parse_rate("max").ok().unwrap().is_max());
        for (text, hint) in [
            ("500 MiB", "write `500 MiB/s`"),
            ("500", "`500/s` for events"),
            ("0/s", "out of range"),
            ("500 Mb/s", "not a size"),
            ("fast", "`5k/s` or `max`"),
        ] {
            let error = parse_rate(text).err().unwrap().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }
}
