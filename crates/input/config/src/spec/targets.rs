//! `targets`.

use stillwell_plan::TargetPlan;
use stillwell_plan::target::ReadyProbe;
use stillwell_plan::targets::{ComparedTargetPlan, Delivery, Durability, RUNS_MAX};
use stillwell_text::{Key, MapReader, Node, Reader, Span, Value, code};

use super::ReadContext;
use super::target::{COMMAND, field, target_of};
use super::variant::check_name;
use crate::element::{Element, Shape, TEXTS, optional};
use crate::files::EntryKind;

pub(super) const TARGET_ENTRY: Element = Element::new(
    "compared target",
    "A program that gets the same load as the others, and its delivery guarantees to check.",
    &[
        field::COMMAND,
        optional(
            "program",
            Shape::Text,
            "The program to measure, if `command` is a wrapper that starts it.",
        ),
        optional(
            "version",
            COMMAND,
            "A command that prints the version in its first line.",
        ),
        optional(
            "files",
            TEXTS,
            "Configuration files; results contain a hash of each.",
        ),
        optional(
            "durability",
            Shape::Words(&["memory", "disk", "synced"]),
            "Durability of accepted events in the target's configuration: `memory`: lost \
             when the process crashes; `disk`: lost when the host crashes; `synced`: lost only with the disk.",
        ),
        optional(
            "delivery",
            Shape::Words(&["at_most_once", "at_least_once", "exactly_once"]),
            "Expected number of deliveries of an event that it accepted.",
        ),
        field::ENVIRONMENT,
        field::INHERIT_ENVIRONMENT,
        field::DIRECTORY,
        field::READY,
        field::CPUS,
        field::MEMORY,
        field::STOP,
        field::MOUNTS,
        field::LOG_LIMIT,
    ],
);

/// The programs in the order of the file, and how often each is run; `ready` is
/// how those are known to be ready that do not say.
pub(super) fn read_targets(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    ready: &ReadyProbe,
) -> (Vec<ComparedTargetPlan>, Option<u32>) {
    let reader = context.reader;
    let targets = map.take("targets");
    let runs = map.take("runs");
    if let (Some(node), None) = (runs, targets) {
        let message = "`runs` has no effect without `targets`";
        let error = reader.error(code::COURSE, node.span, message);
        reader.report(error.help("an experiment with `variants` has `pairs`"));
    }
    let runs = runs.and_then(|node| reader.whole(node, 1, RUNS_MAX));
    let Some(node) = targets else {
        return (Vec::new(), runs);
    };
    for key in ["target", "variants"] {
        if map.take(key).is_some()
            && let Some(span) = map.key_span(key)
        {
            let targets = map.key_span("targets").unwrap_or(node.span);
            report_both(context, span, targets, key);
        }
    }
    check_unused(reader, map);
    let Some(entries) = node.entries() else {
        reader.wrong_shape(node, "a map of names and targets");
        return (Vec::new(), runs);
    };
    if entries.is_empty() {
        reader.report(reader.error(code::VARIANTS, node.span, "no target to run"));
    }
    let targets = entries
        .iter()
        .filter_map(|entry| read_target_entry(context, &entry.key, &entry.value, ready));
    (targets.collect(), runs)
}

/// Keys that only a comparison of `variants` uses.
const OF_VARIANTS: [&str; 9] = [
    "builds",
    "checks",
    "confirm",
    "design",
    "erratic",
    "goals",
    "max_time",
    "pairs",
    "report_links",
];

/// Reports keys and values that several targets do not use.
fn check_unused(reader: &Reader, map: &MapReader<'_, '_>) {
    let report = |span: Span, what: &str, help: &str| {
        let message = format!("{what} has no effect with `targets`");
        reader.report(reader.error(code::COURSE, span, message).help(help));
    };
    for key in OF_VARIANTS {
        if let (Some(_), Some(span)) = (map.take(key), map.key_span(key)) {
            let help = "leave it out: it is for `variants`";
            report(span, &format!("`{key}`"), help);
        }
    }
    let point = map.take("operating_point");
    if let Some(node) = point.filter(|node| has_form(node, "probe", "probe")) {
        let help = "leave it out: without a `rate`, each target gets as much load as it accepts";
        report(node.span, "`operating_point: probe`", help);
    }
    let warmup = map.take("phases").and_then(|node| node.entry("warmup"));
    if let Some(node) = warmup.filter(|node| has_form(node, "auto", "at_least")) {
        let help = "write its length, such as `warmup: 5s`";
        report(node.span, "a measured warm-up", help);
    }
}

/// Returns true if `node` is `word` or a map with `key`.
fn has_form(node: &Node, word: &str, key: &str) -> bool {
    match &node.value {
        Value::Scalar { text, .. } => text == word,
        Value::Null | Value::List(_) | Value::Map(_) => node.entry(key).is_some(),
    }
}

fn report_both(context: &ReadContext<'_>, span: Span, targets: Span, key: &str) {
    let message = format!("`{key}` and `targets` exclude each other");
    let error = context.reader.error(code::ONE_OF_KEYS, span, message);
    let error = error.label("remove one of them");
    context
        .reader
        .report(error.context(context.reader.place(targets), "the other"));
}

fn read_target_entry(
    context: &ReadContext<'_>,
    key: &Key,
    node: &Node,
    ready: &ReadyProbe,
) -> Option<ComparedTargetPlan> {
    let reader = context.reader;
    check_name(reader, key, "target");
    if matches!(node.value, Value::Null) {
        let message = format!("`{}` needs a `command`", key.text);
        reader.report(reader.error(code::MISSING_KEY, key.span, message));
        return None;
    }
    let map = reader.map(node, &TARGET_ENTRY.keys())?;
    let program = map
        .take("program")
        .and_then(|node| context.one_program(node));
    let version = map.take("version").and_then(|node| context.program(node));
    let files = map.take("files").map(|node| reader.list(node));
    let files = files.flatten().unwrap_or_default().iter();
    let files = files.filter_map(|node| context.existing(node, EntryKind::File));
    let durability = map.take("durability").and_then(|node| {
        let words = Durability::ALL.map(|word| (word.name(), word));
        reader.word(node, "durability", &words)
    });
    let delivery = map.take("delivery").and_then(|node| {
        let words = Delivery::ALL.map(|word| (word.name(), word));
        reader.word(node, "delivery", &words)
    });
    let files = files.collect();
    let spec = target_of(context, &map, Some(&key.text))?;
    let target = if spec.has_probe {
        spec.plan
    } else {
        TargetPlan {
            ready: ready.clone(),
            ..spec.plan
        }
    };
    Some(ComparedTargetPlan {
        name: key.text.clone(),
        target,
        program,
        version,
        files,
        durability,
        delivery,
    })
}
