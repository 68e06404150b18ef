//! `phases`.

use stillwell_plan::PhasesPlan;
use stillwell_plan::stopping::WarmupPlan;
use stillwell_text::{Node, Span, Value, code};
use stillwell_units::Nanos;

use super::ReadContext;
use crate::element::{DURATION, Element, Shape, optional, required};

const MEASURED: Element = Element::new(
    "measured warm-up",
    "A warm-up whose length is determined from the runs of the first two pairs.",
    &[required("at_least", DURATION, "Minimum length.")],
);

pub(super) const PHASES: Element = Element::new(
    "phases",
    "Lengths and deadlines of a run's phases.",
    &[
        optional(
            "prepare",
            DURATION,
            "Deadline for building payloads and binding sinks; 120s by default.",
        ),
        optional(
            "ready",
            DURATION,
            "Deadline for the target to be ready; 30s by default.",
        ),
        optional(
            "warmup",
            Shape::Any(&[DURATION, Shape::Words(&["auto"]), Shape::Element(&MEASURED)]),
            "Length of load that is not measured; 5s by default. `auto`: determined from the runs of the \
             first two pairs, at least 5s.",
        ),
        optional(
            "measure",
            DURATION,
            "Length of load that is measured; 20s by default.",
        ),
        optional(
            "drain",
            DURATION,
            "Deadline for the target to forward the events that it still holds; 10s by default.",
        ),
        optional(
            "quiet",
            DURATION,
            "The drain ends when sinks received nothing for this time; 500ms by default.",
        ),
        optional(
            "close",
            DURATION,
            "Deadline for sinks, observers and capture to close; 10s by default.",
        ),
    ],
);

/// The phases, and how the warm-up was typed.
#[derive(Debug, Default)]
pub(super) struct PhasesSpec {
    pub(super) plan: PhasesPlan,
    pub(super) warmup: WarmupPlan,
    /// Place of a warm-up.
    pub(super) warmup_span: Option<Span>,
}

pub(super) fn read_phases(context: &ReadContext<'_>, node: &Node) -> Option<PhasesSpec> {
    let reader = context.reader;
    let map = reader.map(node, &PHASES.keys())?;
    let mut spec = PhasesSpec::default();
    if let Some(node) = map.take("warmup") {
        spec.warmup_span = Some(node.span);
        read_warmup(context, node, &mut spec);
    }
    let phases = &mut spec.plan;
    for (key, length) in [
        ("prepare", &mut phases.prepare),
        ("ready", &mut phases.ready),
        ("measure", &mut phases.measure),
        ("drain", &mut phases.drain),
        ("quiet", &mut phases.quiet),
        ("close", &mut phases.close),
    ] {
        let Some(node) = map.take(key) else {
            continue;
        };
        let Some(value) = reader.parsed::<Nanos>(node) else {
            continue;
        };
        *length = value;
        if value > Nanos::ZERO {
            continue;
        }
        match key {
            "measure" => {
                let message = "nothing would be measured: the measured phase has no length";
                let error = reader.error(code::NOTHING_MEASURED, node.span, message);
                reader.report(error.label("must be above zero").help("20s is usual"));
            }
            "prepare" | "ready" | "close" => {
                let message =
                    format!("`{key}` is a deadline of zero, which every run would exceed");
                let error = reader.error(code::OUT_OF_RANGE, node.span, message);
                reader.report(error.label("must be above zero"));
            }
            _ => {}
        }
    }
    Some(spec)
}

/// `5s`, `auto` or `{at_least: 2s}`.
fn read_warmup(context: &ReadContext<'_>, node: &Node, spec: &mut PhasesSpec) {
    let reader = context.reader;
    let length = match &node.value {
        Value::Scalar { text, .. } if text == "auto" => {
            spec.warmup = WarmupPlan::Measured;
            return;
        }
        Value::Scalar { .. } => Some(node),
        Value::Null | Value::List(_) | Value::Map(_) => {
            spec.warmup = WarmupPlan::Measured;
            let map = reader.map(node, &MEASURED.keys());
            map.and_then(|map| map.required("at_least"))
        }
    };
    let Some(length) = length.and_then(|node| reader.parsed::<Nanos>(node)) else {
        return;
    };
    spec.plan.warmup = length;
    if length == Nanos::ZERO && spec.warmup == WarmupPlan::Stated {
        let message = "without a warm-up, cold caches are measured";
        let warning = reader.warning(code::NOTHING_MEASURED, node.span, message);
        reader.report(
            warning
                .help("a fifth of `measure` is usual, e.g. `warmup: 5s`")
                .help("to measure the start, add `include_startup: true`"),
        );
    }
}
