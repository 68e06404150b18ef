//! `isolation`, `placement`, and choices of CPUs.

use stillwell_plan::PlacementPlan;
use stillwell_plan::placement::{CpuChoice, IsolationPlan, Wanted};
use stillwell_text::{Node, Value, code};

use super::ReadContext;
use crate::element::{Element, Shape, optional};

const WANTED: Shape = Shape::Words(&["auto", "no", "required"]);

pub(super) const ISOLATION: Element = Element::new(
    "isolation",
    "Isolation of a run.",
    &[
        optional("network", WANTED, "A separate network namespace."),
        optional("cgroup", WANTED, "A separate cgroup for the target."),
        optional(
            "priority",
            WANTED,
            "A higher CPU priority than other programs, for the target and for Stillwell.",
        ),
    ],
);

pub(super) const PLACEMENT: Element = Element::new(
    "placement",
    "CPUs of the target and of the generators.",
    &[
        optional(
            "ours",
            CPUS,
            "CPUs of what Stillwell runs (generators, sinks and observers), as a list such as `[0, 1]`. \
             A number without a list is a number of CPUs.",
        ),
        optional(
            "reserved",
            Shape::Boolean,
            "`true`: a generator worker may spin on its CPU.",
        ),
    ],
);

/// A choice of CPUs.
pub(super) const CPUS: Shape = Shape::Any(&[
    Shape::Words(&["auto", "any"]),
    Shape::Whole,
    Shape::List(&Shape::Whole),
]);

/// The largest CPU number that Linux is built for.
const CPU_MAX: u16 = 8191;

pub(super) fn read_isolation(context: &ReadContext<'_>, node: &Node) -> Option<IsolationPlan> {
    let words = [
        ("auto", Wanted::IfPossible),
        ("no", Wanted::No),
        ("required", Wanted::Required),
    ];
    let map = context.reader.map(node, &ISOLATION.keys())?;
    let read = |key| match map.take(key) {
        Some(node) => context.reader.word(node, "isolation", &words),
        None => Some(Wanted::default()),
    };
    let (network, cgroup, priority) = (read("network"), read("cgroup"), read("priority"));
    Some(IsolationPlan {
        network: network?,
        cgroup: cgroup?,
        priority: priority?,
        links: None,
    })
}

pub(super) fn read_placement(context: &ReadContext<'_>, node: &Node) -> Option<PlacementPlan> {
    let map = context.reader.map(node, &PLACEMENT.keys())?;
    let ours = map.take("ours").and_then(|node| read_cpus(context, node));
    let reserved = map
        .take("reserved")
        .and_then(|node| context.reader.boolean(node));
    Some(PlacementPlan {
        ours: ours.unwrap_or_default(),
        reserved: reserved.unwrap_or(false),
    })
}

pub(super) fn read_cpus(context: &ReadContext<'_>, node: &Node) -> Option<CpuChoice> {
    let reader = context.reader;
    match &node.value {
        Value::List(items) if items.is_empty() => {
            reader.report(reader.error(code::OUT_OF_RANGE, node.span, "no CPU at all"));
            None
        }
        Value::List(items) => {
            let cpus = items.iter().map(|item| reader.whole(item, 0, CPU_MAX));
            let mut cpus = cpus.collect::<Option<Vec<u16>>>()?;
            cpus.sort_unstable();
            cpus.dedup();
            Some(CpuChoice::List(cpus))
        }
        Value::Scalar { text, .. } => match text.as_str() {
            "auto" => Some(CpuChoice::Auto),
            "any" => Some(CpuChoice::Any),
            text if text.starts_with(|c: char| c.is_ascii_digit()) => {
                reader.whole(node, 1, CPU_MAX).map(CpuChoice::Count)
            }
            text => {
                let words = ["auto", "any", "a number", "a list such as [0, 2]"];
                reader.unknown_word(node.span, "choice of CPUs", text, words.into_iter());
                None
            }
        },
        Value::Null | Value::Map(_) => {
            reader.wrong_shape(node, "a choice of CPUs");
            None
        }
    }
}
