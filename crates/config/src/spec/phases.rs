//! `phases`.

use stillwell_legacy::{Node, code};
use stillwell_plan::PhasesPlan;
use stillwell_units::Nanos;

use super::Door;
use crate::schema::{DURATION, Element, optional};

pub(super) const PHASES: Element = Element {
    name: "phases",
    about: "Lengths and deadlines of a run's phases.",
    fields: &[
        optional(
            "prepare",
            DURATION,
            "Deadline for building payloads and binding sinks.",
        ),
        optional("ready", DURATION, "Deadline for the subject to be ready."),
        optional("warmup", DURATION, "Length of load that is not measured."),
        optional("measure", DURATION, "Length of load that is measured."),
        optional(
            "drain",
            DURATION,
            "Deadline for the subject to send on what it holds.",
        ),
        optional("quiet", DURATION, "Silence of sinks that ends the drain."),
        optional(
            "close",
            DURATION,
            "Deadline for sinks, observers and capture to close.",
        ),
    ],
    one_of: &[],
};

pub(super) fn read_phases(door: &Door<'_>, node: &Node) -> Option<PhasesPlan> {
    let reader = door.reader;
    let map = reader.map(node, &PHASES.keys())?;
    let mut phases = PhasesPlan::default();
    for (key, length) in [
        ("prepare", &mut phases.prepare),
        ("ready", &mut phases.ready),
        ("warmup", &mut phases.warmup),
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
            "warmup" => {
                let message = "without a warm-up, cold caches are measured";
                let warning = reader.warning(code::NOTHING_MEASURED, node.span, message);
                reader.report(warning.help("a fifth of `measure` is usual, e.g. `warmup: 5s`"));
            }
            "prepare" | "ready" | "close" => {
                let message = format!("`{key}` is a deadline, which no run would keep");
                let error = reader.error(code::OUT_OF_RANGE, node.span, message);
                reader.report(error.label("must be above zero"));
            }
            _ => {}
        }
    }
    Some(phases)
}
