//! Steps that pause, end and start the target.

use stillwell_plan::step::{StepAction, TargetChange, TargetSignal};
use stillwell_text::{Node, Span, Value};
use stillwell_units::Nanos;

use crate::element::{DURATION, Element, Shape, optional, required};
use crate::spec::ReadContext;

const RESTART: Element = Element::new(
    "restart",
    "The target ends and starts again.",
    &[
        optional(
            "signal",
            Shape::Words(&["TERM", "KILL", "INT", "QUIT"]),
            "The signal that ends it; TERM by default.",
        ),
        optional(
            "after",
            DURATION,
            "Delay of the restart, counted from the step; at once after the end by default.",
        ),
    ],
);

const CHANGE: Element = Element::new(
    "target step",
    "Change of the target.",
    &[required(
        "restart",
        Shape::Element(&RESTART),
        "It ends and starts again.",
    )],
);

const WORDS: [&str; 6] = ["pause", "resume", "kill", "term", "start", "restart"];

pub(super) const SHAPE: Shape = Shape::Any(&[Shape::Words(&WORDS), Shape::Element(&CHANGE)]);

const SIGNALS: [(&str, TargetSignal); 4] = [
    ("TERM", TargetSignal::Term),
    ("KILL", TargetSignal::Kill),
    ("INT", TargetSignal::Int),
    ("QUIT", TargetSignal::Quit),
];

/// Returns the actions, each with its time after the step. `comes` is true if a start at that time
/// is
/// in the run, and reports it otherwise.
pub(super) fn read(
    context: &ReadContext<'_>,
    node: &Node,
    comes: impl Fn(Nanos, Span) -> bool,
) -> Option<Vec<(Nanos, StepAction)>> {
    let now = |change| vec![(Nanos::ZERO, StepAction::Target(change))];
    let restart = |signal, after| {
        vec![
            (Nanos::ZERO, StepAction::Target(TargetChange::End(signal))),
            (after, StepAction::Target(TargetChange::Start)),
        ]
    };
    if matches!(node.value, Value::Scalar { .. }) {
        let words = [
            (WORDS[0], now(TargetChange::Pause)),
            (WORDS[1], now(TargetChange::Resume)),
            (WORDS[2], now(TargetChange::End(TargetSignal::Kill))),
            (WORDS[3], now(TargetChange::End(TargetSignal::Term))),
            (WORDS[4], now(TargetChange::Start)),
            (WORDS[5], restart(TargetSignal::Term, Nanos::ZERO)),
        ];
        return context.reader.word(node, "change of the target", &words);
    }
    let map = context.reader.map(node, &CHANGE.keys())?;
    let map = context
        .reader
        .map(map.required("restart")?, &RESTART.keys())?;
    let signal = map.read_or("signal", TargetSignal::Term, |node| {
        context.reader.word(node, "signal that ends it", &SIGNALS)
    });
    let after = map.read_or("after", Nanos::ZERO, |node| context.reader.parsed(node))?;
    if let Some(node) = map.take("after")
        && after > Nanos::ZERO
    {
        comes(after, node.span);
    }
    Some(restart(signal?, after))
}
