//! Rates as lading spells them.

use stillwell_plan::rate::Ramp;
use stillwell_plan::{RatePlan, RateShape, RateUnit};
use stillwell_units::float_from_u64;

use super::size::read_size;
use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};

/// Keys of a generator's rate.
pub(super) const KEYS: &[&str] = &["bytes_per_second", "throttle"];

/// Reads the rate of a generator: `bytes_per_second`, `throttle`, or full speed without both.
pub(super) fn read(reader: &Reader, map: &MapReader<'_, '_>) -> Option<RatePlan> {
    let legacy = map.take("bytes_per_second");
    let throttle = map.take("throttle");
    match (legacy, throttle) {
        (None, None) => Some(RatePlan::MAX),
        (Some(node), None) => bytes(reader, node),
        (None, Some(node)) => read_throttle(reader, node),
        (Some(legacy), Some(throttle)) if is_word(throttle) => read_word(reader, legacy, throttle),
        (Some(legacy), Some(throttle)) => {
            let (from_legacy, from_throttle) =
                (bytes(reader, legacy), read_throttle(reader, throttle));
            let (from_legacy, from_throttle) = (from_legacy?, from_throttle?);
            if from_legacy == from_throttle {
                return Some(from_legacy);
            }
            let span = map.key_span("throttle").unwrap_or(throttle.span);
            let before = map.key_span("bytes_per_second").unwrap_or(legacy.span);
            let message = "`bytes_per_second` and `throttle` state different rates";
            reader.report(
                reader
                    .error(code::OPERATING_POINT, span, message)
                    .label("remove one of them")
                    .context(reader.place(before), "the other"),
            );
            None
        }
    }
}

/// Returns true if `throttle` is a word, beside which lading 0.15 to 0.17 needed `bytes_per_second`.
fn is_word(throttle: &Node) -> bool {
    matches!(&throttle.value, Value::Scalar { text, .. } if matches!(text.as_str(), "stable" | "all_out"))
}

/// Reads `legacy` beside the word in `throttle`: a rate that is kept, or none.
fn read_word(reader: &Reader, legacy: &Node, throttle: &Node) -> Option<RatePlan> {
    let rate = bytes(reader, legacy)?;
    let is_stable = matches!(&throttle.value, Value::Scalar { text, .. } if text == "stable");
    let (span, message) = if is_stable {
        (
            throttle.span,
            "`throttle: stable` has no effect beside `bytes_per_second`",
        )
    } else {
        (
            legacy.span,
            "`bytes_per_second` has no effect beside `throttle: all_out`",
        )
    };
    let warning = reader.warning(code::NO_EFFECT, span, message);
    reader.report(warning.label("remove it: lading has refused the two together since 0.18"));
    Some(if is_stable { rate } else { RatePlan::MAX })
}

fn bytes(reader: &Reader, node: &Node) -> Option<RatePlan> {
    let per_second = float_from_u64(read_size(reader, node)?.bytes());
    Some(RatePlan::constant(RateUnit::Bytes, per_second))
}

fn read_throttle(reader: &Reader, node: &Node) -> Option<RatePlan> {
    const WORDS: [&str; 3] = ["all_out", "stable", "linear"];
    if let Value::Scalar { text, .. } = &node.value {
        if text == "all_out" {
            return Some(RatePlan::MAX);
        }
        reader.unknown_word(node.span, "throttle", text, WORDS.into_iter());
        return None;
    }
    let map = reader.map(node, &Keys::new("throttle", &WORDS).known(&["predictive"]))?;
    let (kind, node) = map.one_of(&WORDS)?;
    match kind {
        "stable" => read_stable(reader, node),
        "linear" => read_linear(reader, node),
        _ => Some(RatePlan::MAX),
    }
}

fn read_stable(reader: &Reader, node: &Node) -> Option<RatePlan> {
    let accepted = ["bytes_per_second", "blocks_per_second", "timeout_millis"];
    let map = reader.map(node, &Keys::new("stable throttle", &accepted))?;
    if let Some(timeout) = map.take("timeout_millis")
        && reader.whole(timeout, 0, u64::MAX)? > 0
    {
        let message =
            "`timeout_millis` has no effect: sends are spread evenly, unused capacity is not saved";
        reader.report(reader.note(code::NO_EFFECT, timeout.span, message));
    }
    let (unit, node) = map.one_of(&["bytes_per_second", "blocks_per_second"])?;
    let (unit, per_second) = quantity(reader, unit, node)?;
    Some(RatePlan::constant(unit, per_second))
}

fn read_linear(reader: &Reader, node: &Node) -> Option<RatePlan> {
    let accepted = [
        "initial",
        "initial_bytes_per_second",
        "maximum",
        "maximum_bytes_per_second",
        "rate_of_change",
    ];
    let map = reader.map(node, &Keys::new("linear throttle", &accepted))?;
    let initial = map.one_of(&["initial", "initial_bytes_per_second"]);
    let maximum = map.one_of(&["maximum", "maximum_bytes_per_second"]);
    let change = map.required("rate_of_change");
    let initial = level(reader, initial?.1)?;
    let maximum_node = maximum?.1;
    let maximum = level(reader, maximum_node)?;
    let change_node = change?;
    let change = level(reader, change_node)?;
    for (rate, node) in [(maximum, maximum_node), (change, change_node)] {
        if rate.0 != initial.0 {
            let message = "a ramp counts either bytes or blocks";
            let error = reader.error(code::MIXED_UNITS, node.span, message);
            reader.report(error.label("not the unit of `initial`"));
            return None;
        }
    }
    if maximum.1 < initial.1 {
        let message = "the ramp's `maximum` lies below its `initial` rate";
        reader.report(reader.error(code::OUT_OF_RANGE, maximum_node.span, message));
        return None;
    }
    Some(RatePlan {
        unit: initial.0,
        shape: RateShape::Ramp(Ramp::growing(initial.1, maximum.1, change.1)),
    })
}

/// A bare size, or `{bytes_per_second: …}`, or `{blocks_per_second: …}`.
pub(super) fn level(reader: &Reader, node: &Node) -> Option<(RateUnit, f64)> {
    if matches!(node.value, Value::Scalar { .. }) {
        return quantity(reader, "bytes_per_second", node);
    }
    let accepted = ["bytes_per_second", "blocks_per_second"];
    let map = reader.map(node, &Keys::new("rate", &accepted))?;
    let (unit, node) = map.one_of(&accepted)?;
    quantity(reader, unit, node)
}

fn quantity(reader: &Reader, unit: &str, node: &Node) -> Option<(RateUnit, f64)> {
    if unit == "blocks_per_second" {
        let blocks = reader.whole(node, 1, u64::from(u32::MAX))?;
        return Some((RateUnit::Blocks, float_from_u64(blocks)));
    }
    let bytes = read_size(reader, node)?.bytes();
    Some((RateUnit::Bytes, float_from_u64(bytes)))
}

/// The rate of `connections` connections that each have `rate`.
pub(super) fn times(rate: RatePlan, connections: u16) -> RatePlan {
    RatePlan {
        unit: rate.unit,
        shape: rate.shape.times(f64::from(connections)),
    }
}
