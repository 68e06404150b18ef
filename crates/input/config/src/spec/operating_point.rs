//! `operating_point`.

use stillwell_plan::experiment::OperatingPoint;
use stillwell_text::{Node, Span, Value, code};
use stillwell_units::{Nanos, Tolerance};

use super::ReadContext;
use crate::element::{DURATION, Element, Shape, optional};

const PROBE: Element = Element::new(
    "probe",
    "A run of the baseline at full speed that determines the rate.",
    &[
        optional(
            "share",
            Shape::Like("60%"),
            "Share of the capacity; with `design: duet`, of at most half of it.",
        ),
        optional("length", DURATION, "Length of the probe; 3s by default."),
    ],
);

const PROBED: Element = Element::new(
    "operating point",
    "Rate of an experiment.",
    &[optional(
        "probe",
        Shape::Element(&PROBE),
        "A share of the capacity that a probe finds.",
    )],
)
.one_of(&["probe"]);

pub(super) const SHAPE: Shape = Shape::Any(&[
    Shape::Words(&["probe", "stated", "max"]),
    Shape::Element(&PROBED),
]);

const LENGTH_DEFAULT: Nanos = Nanos::from_secs(3);

/// The rate at which a target is busy but not saturated.
pub(crate) const PROBE_DEFAULT: OperatingPoint = OperatingPoint::Probe {
    share: 0.6,
    length: LENGTH_DEFAULT,
};

/// Value of a file with its place.
pub(super) fn read_operating_point(
    context: &ReadContext<'_>,
    node: &Node,
) -> Option<(OperatingPoint, Span)> {
    let reader = context.reader;
    if matches!(node.value, Value::Scalar { .. }) {
        let words = [
            ("probe", PROBE_DEFAULT),
            ("stated", OperatingPoint::Stated),
            ("max", OperatingPoint::Max),
        ];
        let point = reader.word(node, "operating point", &words)?;
        return Some((point, node.span));
    }
    let map = reader.map(node, &PROBED.keys())?;
    let (_, probe) = map.one_of(PROBED.one_of)?;
    let map = reader.map(probe, &PROBE.keys())?;
    let share = match map.take("share") {
        Some(node) => {
            let text = reader.text(node)?;
            parse_share(text).or_else(|| {
                let message = format!("`{text}` is not a share");
                let error = reader.error(code::OUT_OF_RANGE, node.span, message);
                reader.report(error.label("write a percentage above 0% and below 100%"));
                None
            })
        }
        None => Some(0.6),
    };
    let length = match map.take("length") {
        Some(node) => reader.parsed::<Nanos>(node).filter(|length| {
            let is_long = *length >= Nanos::from_millis(200);
            if !is_long {
                let message = "the probe is too short to measure anything";
                let error = reader.error(code::OUT_OF_RANGE, node.span, message);
                reader.report(error.label("at least 200ms"));
            }
            is_long
        }),
        None => Some(LENGTH_DEFAULT),
    };
    let (share, length) = (share?, length?);
    Some((OperatingPoint::Probe { share, length }, node.span))
}

/// `60%` as 0.6; above 0 and below 1.
pub(crate) fn parse_share(text: &str) -> Option<f64> {
    // The grammar and the bounds of tolerances are those of shares.
    text.parse::<Tolerance>().ok().map(Tolerance::share)
}
