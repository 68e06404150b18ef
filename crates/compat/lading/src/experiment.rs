//! `experiment.yaml` of SMP cases.
//!
//! The load is in the case's `lading/lading.yaml`, which [`crate::file`] reads. The caller finds the folders of
//! a case.

use std::collections::BTreeMap;
use std::sync::Arc;

use stillwell_plan::experiment::ReportLink;
use stillwell_plan::{CheckPlan, GoalMetric};
use stillwell_units::{ByteSize, floor_to_u64};

use crate::file::{parse_size, warn_of_bits};
use stillwell_text::{
    Diagnostics, Keys, MapReader, Node, Reader, Source, Span, code, split_command,
};

mod check;

/// The keys at the top of an SMP `experiment.yaml`.
pub(crate) const KEYS: &[&str] = &[
    "optimization_goal",
    "erratic",
    "runner",
    "target",
    "checks",
    "report_links",
    "config_only",
    "description",
    "labels",
    "teams",
    "environment",
    "profiling_environment",
];

/// Content of an SMP `experiment.yaml`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SmpExperiment {
    /// The first line of its description.
    pub(crate) description: Option<String>,
    /// Its optimization goal.
    pub(crate) goal: SmpGoal,
    /// Place of the goal, if there is one.
    pub(crate) goal_span: Option<Span>,
    /// Verdicts are shown and never gate.
    pub(crate) erratic: bool,
    /// The tested program; in older files it is an argument.
    pub(crate) target: Option<SmpTarget>,
    /// Bounds.
    pub(crate) checks: Vec<CheckPlan>,
    /// Links.
    pub(crate) report_links: Vec<ReportLink>,
    /// Environments of the variants, by the variant's name.
    pub(crate) config_only: BTreeMap<String, BTreeMap<String, String>>,
}

/// An optimization goal.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) enum SmpGoal {
    /// This metric.
    Metric(GoalMetric),
    /// None: only the checks matter.
    None,
    /// The file has no goal.
    #[default]
    Unstated,
}

/// The tested program.
#[derive(Clone, Debug, Default)]
pub(crate) struct SmpTarget {
    /// Its name, and that of the folder of its configuration.
    pub(crate) name: String,
    /// Program and arguments; the image's own if none.
    pub(crate) command: Option<Vec<String>>,
    /// Number of its CPUs, at least one.
    pub(crate) cpus: Option<u16>,
    /// Memory that it gets.
    pub(crate) memory: Option<ByteSize>,
    /// Its environment.
    pub(crate) environment: BTreeMap<String, String>,
}

/// Reads an `experiment.yaml`. Returns the valid parts even if there are
/// errors.
#[must_use]
pub(crate) fn read(source: &Arc<Source>) -> (Option<SmpExperiment>, Diagnostics) {
    let reader = Reader::new(Arc::clone(source));
    let experiment = reader.parse().and_then(|root| read_root(&reader, &root));
    (experiment, reader.finish())
}

fn read_root(reader: &Reader, root: &Node) -> Option<SmpExperiment> {
    let goals = [
        ("ingress_throughput", GoalMetric::IngressThroughput),
        ("egress_throughput", GoalMetric::EgressThroughput),
        ("cpu", GoalMetric::Cpu),
        ("memory", GoalMetric::Memory),
    ];
    let goals = goals.map(|(word, metric)| (word, SmpGoal::Metric(metric)));
    let goals: Vec<_> = goals.into_iter().chain([("none", SmpGoal::None)]).collect();
    let map = reader.map(root, &Keys::new("experiment", KEYS))?;
    let mut experiment = SmpExperiment::default();
    if let Some(node) = map.take("optimization_goal") {
        let goal = reader.word(node, "optimization goal", &goals);
        experiment.goal = goal.unwrap_or_default();
        experiment.goal_span = Some(node.span);
    }
    if let Some(node) = map.take("erratic") {
        experiment.erratic = reader.boolean(node).unwrap_or(false);
    }
    if let Some(node) = map.take("target") {
        experiment.target = read_target(reader, node, true);
    }
    // Its place before `target` had it.
    if let Some(node) = map.take("environment") {
        let target = experiment.target.get_or_insert_with(SmpTarget::default);
        let earlier = reader.text_map(node).into_iter();
        target.environment = earlier
            .chain(std::mem::take(&mut target.environment))
            .collect();
    }
    if let Some(node) = map.take("checks") {
        let items = reader.list(node).unwrap_or_default();
        let checks = items.iter().filter_map(|item| check::read(reader, item));
        experiment.checks = checks.collect();
    }
    if let Some(node) = map.take("report_links") {
        let items = reader.list(node).unwrap_or_default();
        let links = items.iter().filter_map(|item| read_link(reader, item));
        experiment.report_links = links.collect();
    }
    if let Some(node) = map.take("config_only") {
        experiment.config_only = read_config_only(reader, node);
    }
    if let Some(node) = map.take("description") {
        let text = reader.text(node).unwrap_or_default();
        experiment.description = text.lines().next().map(str::to_owned);
    }
    for key in ["runner", "labels", "teams", "profiling_environment"] {
        ignore(reader, &map, key);
    }
    Some(experiment)
}

fn ignore(reader: &Reader, map: &MapReader<'_, '_>, key: &'static str) {
    map.ignore(key);
    if let Some(span) = map.key_span(key) {
        let message = format!("`{key}` has no effect on this host");
        reader.report(reader.note(code::NO_EFFECT, span, message));
    }
}

/// Reads a target; `needs_name` if it must have a name.
pub(crate) fn read_target(reader: &Reader, node: &Node, needs_name: bool) -> Option<SmpTarget> {
    let accepted = [
        "name",
        "command",
        "cpu_allotment",
        "memory_allotment",
        "environment",
        "profiling_environment",
        "ddprof_replicas",
        "internal_profiling_replicas",
    ];
    let map = reader.map(node, &Keys::new("target", &accepted))?;
    let mut target = SmpTarget::default();
    if let Some(node) = map.take("command") {
        target.command = read_command(reader, node);
    }
    if let Some(node) = map.take("cpu_allotment") {
        target.cpus = read_cpus(reader, node);
    }
    if let Some(node) = map.take("memory_allotment") {
        target.memory = read_memory(reader, node);
    }
    if let Some(node) = map.take("environment") {
        target.environment = reader.text_map(node).into_iter().collect();
    }
    for key in &accepted[5..] {
        ignore(reader, &map, key);
    }
    if !needs_name && map.key_span("name").is_none() {
        return Some(target);
    }
    let name = map.required("name")?;
    target.name = reader.text(name)?.to_owned();
    if target.name.is_empty() || target.name.contains(['/', '\0']) {
        let message = format!("`{}` cannot be the name of a folder", target.name);
        let error = reader.error(code::BAD_VALUE, name.span, message);
        reader.report(error.label("its configuration is shown at /etc/NAME"));
        return None;
    }
    Some(target)
}

fn read_command(reader: &Reader, node: &Node) -> Option<Vec<String>> {
    match split_command(reader.text(node)?) {
        Ok(words) if words.is_empty() => {
            reader.report(reader.error(code::BAD_VALUE, node.span, "the command is empty"));
            None
        }
        Ok(words) => Some(words),
        Err(reason) => {
            let error = reader.error(code::BAD_VALUE, node.span, "this is not a command");
            reader.report(error.label(reason));
            None
        }
    }
}

/// Rounds shares of CPUs up: shares are for a scheduler that packs machines.
fn read_cpus(reader: &Reader, node: &Node) -> Option<u16> {
    let text = reader.text(node)?;
    match text.parse::<f64>() {
        Ok(cpus) if cpus > 0.0 && cpus <= 4096.0 => u16::try_from(floor_to_u64(cpus.ceil())).ok(),
        _ => {
            let message = format!("`{text}` is not a number of CPUs");
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("write a number above zero, such as `4`"));
            None
        }
    }
}

/// Sizes as container runtimes read them: `30g` and `30gb` are 30 GiB there. Unlike there, `30GB` is decimal.
fn read_memory(reader: &Reader, node: &Node) -> Option<ByteSize> {
    let text = reader.text(node)?;
    let trimmed = text.trim();
    // Container runtimes have no bits. A hexadecimal number may end with a digit `b`.
    let bytes = trimmed.strip_suffix('b');
    let bytes = bytes.filter(|_| !trimmed.starts_with("0x"));
    let bytes = bytes.unwrap_or(trimmed);
    let short = bytes.strip_suffix('i').unwrap_or(bytes);
    let binary = match short.ends_with(['k', 'm', 'g', 'K', 'M', 'G']) {
        true => format!("{short}iB"),
        false => bytes.to_owned(),
    };
    match parse_size(&binary) {
        Some(size) if size.bytes.bytes() > 0 => {
            warn_of_bits(reader, node, text, size);
            Some(size.bytes)
        }
        _ => {
            let message = format!("`{text}` is not a size of memory");
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("write a number and a unit, such as `8GiB` or `512m`"));
            None
        }
    }
}

fn read_link(reader: &Reader, node: &Node) -> Option<ReportLink> {
    let map = reader.map(node, &Keys::new("report link", &["text", "link"]))?;
    let text = map.required("text").and_then(|node| reader.text(node));
    let link = map.required("link").and_then(|node| reader.text(node));
    Some(ReportLink {
        text: text?.to_owned(),
        link: link?.to_owned(),
    })
}

fn read_config_only(reader: &Reader, node: &Node) -> BTreeMap<String, BTreeMap<String, String>> {
    const ROLES: [&str; 2] = ["baseline", "comparison"];
    let Some(map) = reader.map(node, &Keys::new("config_only", &ROLES)) else {
        return BTreeMap::new();
    };
    ROLES
        .into_iter()
        .filter_map(|role| {
            let variables = reader.text_map(map.take(role)?).into_iter().collect();
            Some((role.to_owned(), variables))
        })
        .collect()
}

#[cfg(test)]
mod tests;
