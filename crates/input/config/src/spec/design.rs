//! `design`.

use stillwell_plan::PhasesPlan;
use stillwell_plan::stopping::DesignPlan;
use stillwell_text::{MapReader, Node, Value, code};
use stillwell_units::Nanos;

use super::ReadContext;
use crate::element::{DURATION, Element, Shape, optional};

const TURNS: Element = Element::new(
    "sliced design",
    "Both variants run at the same time; the load goes to one of them at a time.",
    &[
        optional("turn_min", DURATION, "Shortest turn; 20ms by default."),
        optional("turn_max", DURATION, "Longest turn; 60ms by default."),
    ],
);

const DESIGN: Element = Element::new(
    "design",
    "Arrangement of the runs of a pair.",
    &[optional(
        "sliced",
        Shape::Element(&TURNS),
        "Both run at the same time; the load is switched between them in random turns.",
    )],
)
.one_of(&["sliced"]);

pub(super) const SHAPE: Shape = Shape::Any(&[
    Shape::Words(&["paired", "duet", "sliced"]),
    Shape::Element(&DESIGN),
]);

/// A turn must be long enough for some sends.
const TURN_MIN: Nanos = Nanos::from_millis(10);

/// Turns of each run at least: with fewer, chance gives one variant most of the
/// time.
const TURNS_MIN: u64 = 8;

/// Returns the reason if runs of such `phases` cannot have this design.
pub(crate) fn problem(design: DesignPlan, phases: &PhasesPlan) -> Option<String> {
    let DesignPlan::Sliced { turn_max, .. } = design else {
        return None;
    };
    let measure = phases.measure;
    let room = Nanos::new(turn_max.as_u64().saturating_mul(TURNS_MIN));
    // A phase without length is another mistake.
    (measure < room && measure > Nanos::ZERO).then(|| {
        format!("turns of up to {turn_max} are too long for a measured phase of {measure}")
    })
}

pub(super) fn read_design(context: &ReadContext<'_>, node: &Node) -> Option<DesignPlan> {
    let reader = context.reader;
    if matches!(node.value, Value::Scalar { .. }) {
        let designs = [DesignPlan::Paired, DesignPlan::Duet, DesignPlan::SLICED];
        return reader.word(
            node,
            "design",
            &designs.map(|design| (design.name(), design)),
        );
    }
    let map = reader.map(node, &DESIGN.keys())?;
    let (_, turns) = map.one_of(DESIGN.one_of)?;
    if matches!(turns.value, Value::Null) {
        return Some(DesignPlan::SLICED);
    }
    let map = reader.map(turns, &TURNS.keys())?;
    let shortest = read_turn(context, &map, "turn_min", DesignPlan::TURN_MIN_DEFAULT);
    let longest = read_turn(context, &map, "turn_max", DesignPlan::TURN_MAX_DEFAULT);
    let (turn_min, turn_max) = (shortest?, longest?);
    if turn_max < turn_min {
        let span = map
            .key_span("turn_max")
            .or_else(|| map.key_span("turn_min"));
        let message = format!("`turn_min` ({turn_min}) is above `turn_max` ({turn_max})");
        let error = reader.error(code::OUT_OF_RANGE, span.unwrap_or(turns.span), message);
        reader.report(error.label(format!("write at least {turn_min}")));
        return None;
    }
    Some(DesignPlan::Sliced { turn_min, turn_max })
}

fn read_turn(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    key: &'static str,
    default: Nanos,
) -> Option<Nanos> {
    let Some(node) = map.take(key) else {
        return Some(default);
    };
    let turn = context.reader.parsed::<Nanos>(node)?;
    if turn < TURN_MIN {
        let message = format!("`{key}` is out of range");
        let error = context.reader.error(code::OUT_OF_RANGE, node.span, message);
        context
            .reader
            .report(error.label(format!("at least {TURN_MIN}")));
        return None;
    }
    Some(turn)
}
