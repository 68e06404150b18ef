//! `timeline`.

mod check;
mod disk;
mod sink;
mod target;

use stillwell_plan::disk::DiskPlan;
use stillwell_plan::generator::WhenFull;
use stillwell_plan::step::{StepAction, TargetSignal};
use stillwell_plan::{GeneratorPlan, PhasesPlan, SinkPlan, StepPlan};
use stillwell_text::{Node, Span, code};
use stillwell_units::Nanos;

use super::{ReadContext, network};
use crate::element::{DURATION, Element, Shape, optional, required};
use crate::rules::Placed;

const SIGNAL_WORDS: [(&str, TargetSignal); 9] = [
    ("CONT", TargetSignal::Cont),
    ("HUP", TargetSignal::Hup),
    ("INT", TargetSignal::Int),
    ("KILL", TargetSignal::Kill),
    ("QUIT", TargetSignal::Quit),
    ("STOP", TargetSignal::Stop),
    ("TERM", TargetSignal::Term),
    ("USR1", TargetSignal::Usr1),
    ("USR2", TargetSignal::Usr2),
];

/// A signal's name.
pub(super) const SIGNAL: Shape = Shape::Words(&[
    "CONT", "HUP", "INT", "KILL", "QUIT", "STOP", "TERM", "USR1", "USR2",
]);

const FILE: Element = Element::new(
    "file step",
    "Moves or empties the log that a generator writes.",
    &[
        required(
            "id",
            Shape::Text,
            "The generator, a `file_gen` with a `log`.",
        ),
        required(
            "rotate",
            Shape::Words(&["rename", "copy_truncate", "truncate"]),
            "The log is renamed and a new file begins, or it is copied and emptied, or only emptied.",
        ),
    ],
);

pub(super) const STEP: Element = Element::new(
    "timeline step",
    "Something that happens at a set time.",
    &[
        required(
            "at",
            DURATION,
            "Time after the start of the measured phase; steps on the target may also lie in \
             the drain.",
        ),
        optional("signal", SIGNAL, "Sends the target a signal."),
        optional("note", Shape::Text, "Writes a note into the capture."),
        optional(
            "sink",
            Shape::Element(&sink::STEP),
            "Changes how a sink behaves.",
        ),
        optional(
            "target",
            target::SHAPE,
            "Pauses, ends, starts or restarts the target.",
        ),
        optional(
            "file",
            Shape::Element(&FILE),
            "Moves or empties the log that a generator writes.",
        ),
        optional(
            "disk",
            Shape::Element(&disk::STEP),
            "Changes how a disk of `disks` behaves.",
        ),
        optional(
            "network",
            Shape::Element(&network::NETWORK),
            "Changes the links of a run with `network`; omitted keys keep their values.",
        ),
    ],
)
.one_of(&[
    "signal", "note", "sink", "target", "file", "disk", "network",
]);

pub(super) fn read_signal(context: &ReadContext<'_>, node: &Node) -> Option<TargetSignal> {
    context.reader.word(node, "signal", &SIGNAL_WORDS)
}

/// Parts of a run that steps can change.
pub(super) struct Around<'a> {
    pub(super) phases: &'a PhasesPlan,
    pub(super) sinks: &'a [Placed<SinkPlan>],
    pub(super) generators: Vec<&'a GeneratorPlan>,
    pub(super) disks: &'a [DiskPlan],
    /// `true`: the target has a network namespace.
    pub(super) has_network: bool,
}

/// A step and its place.
struct Step {
    plan: StepPlan,
    /// The whole step.
    span: Span,
    /// Object of the step: the name of a sink or generator, or the path of a disk, if any.
    name: Option<Span>,
}

/// The steps in the order of time; those that never come are reported.
pub(super) fn read_timeline(
    context: &ReadContext<'_>,
    node: &Node,
    around: &Around<'_>,
) -> Vec<StepPlan> {
    let items = context.reader.list(node).unwrap_or_default();
    let steps = items
        .iter()
        .filter_map(|item| read_step(context, item, around.phases));
    let mut steps: Vec<Step> = steps.flatten().collect();
    // Stable: steps of one time happen in the order in which they are written.
    steps.sort_by_key(|step| step.plan.at);
    if context.target_url.is_some() {
        check::refuse_on_url(context.reader, &mut steps);
    }
    check::check(context.reader, &steps, around);
    steps.into_iter().map(|step| step.plan).collect()
}

fn read_step(context: &ReadContext<'_>, node: &Node, phases: &PhasesPlan) -> Option<Vec<Step>> {
    let reader = context.reader;
    let map = reader.map(node, &STEP.keys())?;
    let at_node = map.required("at");
    let at = at_node.and_then(|node| reader.parsed::<Nanos>(node));
    let end = match node.entry("target") {
        Some(_) => End::Drain(phases.measure + phases.drain),
        None => End::Measure(phases.measure),
    };
    if let (Some(node), Some(at)) = (at_node, at) {
        check_time(context, node.span, at, end);
    }
    let mut name = None;
    let mut named = |node: &Node, key| name = node.entry(key).map(|name| name.span);
    let once = |action: Option<StepAction>| action.map(|action| vec![(Nanos::ZERO, action)]);
    let (kind, what) = map.one_of(STEP.one_of)?;
    let actions = match kind {
        "signal" => once(read_signal(context, what).map(StepAction::Signal)),
        "sink" => {
            named(what, "id");
            once(sink::read(context, what))
        }
        "target" => target::read(context, what, |after, span| {
            let start = at.map(|at| at + after);
            start.is_none_or(|start| check_time(context, span, start, end))
        }),
        "file" => {
            named(what, "id");
            once(read_file(context, what))
        }
        "disk" => {
            named(what, "path");
            once(disk::read(context, what))
        }
        "network" => once(network::read_change(context, what)),
        _ => once(
            reader
                .text(what)
                .map(|text| StepAction::Note(text.to_owned())),
        ),
    };
    let at = at?;
    let steps = actions?.into_iter().map(|(after, action)| Step {
        plan: StepPlan {
            at: at + after,
            action,
        },
        span: what.span,
        name,
    });
    Some(steps.collect())
}

/// Before what a step must lie.
#[derive(Clone, Copy)]
enum End {
    /// The end of the measured phase.
    Measure(Nanos),
    /// The end of the drain behind it.
    Drain(Nanos),
}

/// Returns true if a step at this time is in the run.
fn check_time(context: &ReadContext<'_>, span: Span, at: Nanos, end: End) -> bool {
    let (end, takes) = match end {
        End::Measure(end) => (end, "the measured phase takes"),
        End::Drain(end) => (end, "the measured phase and the drain take"),
    };
    if at < end {
        return true;
    }
    let message = format!("this step is never reached: {takes} {end}");
    let error = context.reader.error(code::OUT_OF_RANGE, span, message);
    let label = format!("must lie before {end}");
    context.reader.report(error.label(label));
    false
}

fn read_file(context: &ReadContext<'_>, node: &Node) -> Option<StepAction> {
    let map = context.reader.map(node, &FILE.keys())?;
    let id = map.required("id").and_then(|node| context.filled(node));
    let words = WhenFull::ALL.map(|word| (word.name(), word));
    let rotate = map
        .required("rotate")
        .and_then(|node| context.reader.word(node, "rotation", &words));
    Some(StepAction::File {
        id: id?.to_owned(),
        rotate: rotate?,
    })
}

/// A share such as `10%`, from 0 to 100, as so many of a million.
pub(super) fn read_share(context: &ReadContext<'_>, node: &Node) -> Option<u32> {
    let text = context.reader.text(node)?;
    let number = text.trim().strip_suffix('%');
    let share = number.and_then(|number| number.trim().parse::<f64>().ok());
    match share {
        Some(share) if (0.0..=100.0).contains(&share) => {
            u32::try_from(stillwell_units::floor_to_u64((share * 1e4).round())).ok()
        }
        _ => {
            let message = format!("`{text}` is not a share");
            let error = context.reader.error(code::BAD_VALUE, node.span, message);
            context
                .reader
                .report(error.label("write a percentage from 0% to 100%, such as `0.5%`"));
            None
        }
    }
}
