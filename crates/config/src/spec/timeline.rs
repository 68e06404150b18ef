//! `timeline`.

use stillwell_legacy::{Node, code};
use stillwell_plan::{StepAction, StepPlan, SubjectSignal};
use stillwell_units::Nanos;

use super::Door;
use crate::schema::{DURATION, Element, Shape, optional, required};

const SIGNAL_WORDS: [(&str, SubjectSignal); 9] = [
    ("CONT", SubjectSignal::Cont),
    ("HUP", SubjectSignal::Hup),
    ("INT", SubjectSignal::Int),
    ("KILL", SubjectSignal::Kill),
    ("QUIT", SubjectSignal::Quit),
    ("STOP", SubjectSignal::Stop),
    ("TERM", SubjectSignal::Term),
    ("USR1", SubjectSignal::Usr1),
    ("USR2", SubjectSignal::Usr2),
];

/// A signal's name.
pub(super) const SIGNAL: Shape = Shape::Words(&[
    "CONT", "HUP", "INT", "KILL", "QUIT", "STOP", "TERM", "USR1", "USR2",
]);

pub(super) const STEP: Element = Element {
    name: "timeline step",
    about: "Something that happens at a set time.",
    fields: &[
        required(
            "at",
            DURATION,
            "Time after the start of the measured phase.",
        ),
        optional("signal", SIGNAL, "Sends the subject a signal."),
        optional("note", Shape::Text, "Writes a note into the capture."),
    ],
    one_of: &["signal", "note"],
};

pub(super) fn read_signal(door: &Door<'_>, node: &Node) -> Option<SubjectSignal> {
    door.reader.word(node, "signal", &SIGNAL_WORDS)
}

/// The steps in the order of time; one behind the end of `measure` never comes.
pub(super) fn read_timeline(door: &Door<'_>, node: &Node, measure: Nanos) -> Vec<StepPlan> {
    let items = door.reader.list(node).unwrap_or_default();
    let steps = items
        .iter()
        .filter_map(|item| read_step(door, item, measure));
    let mut steps: Vec<StepPlan> = steps.collect();
    steps.sort_by_key(|step| step.at);
    steps
}

fn read_step(door: &Door<'_>, node: &Node, measure: Nanos) -> Option<StepPlan> {
    let reader = door.reader;
    let map = reader.map(node, &STEP.keys())?;
    let at_node = map.required("at");
    let at = at_node.and_then(|node| reader.parsed::<Nanos>(node));
    if let (Some(node), Some(at)) = (at_node, at)
        && at >= measure
    {
        let message = format!("this step never comes: the measured phase takes {measure}");
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        reader.report(error.label(format!("must lie before {measure}")));
    }
    let action = match map.one_of(STEP.one_of)? {
        ("signal", node) => read_signal(door, node).map(StepAction::Signal),
        (_, node) => reader
            .text(node)
            .map(|text| StepAction::Note(text.to_owned())),
    };
    Some(StepPlan {
        at: at?,
        action: action?,
    })
}
