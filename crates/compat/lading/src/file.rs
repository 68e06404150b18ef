//! Reads `lading.yaml` as lading 0.33 does, in list and map form.
//!
//! The result consists of plan parts. Keys of lading that Stillwell does not support are errors that name the
//! key. Unknown keys are errors that name the nearest key. Surprising rules of lading (`500 Mb` is megabit) are
//! followed and reported.

use std::path::PathBuf;
use std::sync::Arc;

use stillwell_plan::observer::{InspectorPlan, ScrapeFormat, ScrapePlan};
use stillwell_plan::{GeneratorPlan, ObserverPlan, SinkPlan};
use stillwell_units::{Nanos, Seed};

use stillwell_config::rules::{Placed, check_bypasses_target, check_sink_addresses};
use stillwell_text::{
    Diagnostics, Entry, Keys, NamedFiles, Node, Reader, Source, Value, code, parse,
};

mod generator;
mod payload;
mod sink;
mod size;
mod telemetry;
mod throttle;

pub(crate) use payload::{OldRange, today_name};
pub(crate) use size::warn_of_bits;
pub use size::{Size, parse_size};
pub use telemetry::{LadingTelemetry, TelemetryFormat, TelemetryFormatKind, TelemetryPlace};
pub(crate) use telemetry::{TELEMETRY_UNUSED, read_telemetry};

/// The keys at the top of a `lading.yaml`.
pub(crate) const KEYS: &[&str] = &[
    "generator",
    "blackhole",
    "observer",
    "sample_period_milliseconds",
    "target_metrics",
    "telemetry",
    "inspector",
    "experiment_duration",
    "target",
    "worker_threads",
];

/// Content of a `lading.yaml`: a run without target and times.
#[derive(Clone, Debug)]
pub(crate) struct LadingFile {
    /// The seed of the first generator, or that of number 0.
    pub(crate) seed: Seed,
    /// Its generators.
    pub(crate) generators: Vec<GeneratorPlan>,
    /// Its blackholes.
    pub(crate) sinks: Vec<SinkPlan>,
    /// Its observer and target metrics.
    pub(crate) observer: ObserverPlan,
}

/// Reads `source`. `has_subject` means that a program is between generators and sinks; `named` holds the files
/// that [`names`] found in it. Returns the valid parts even if there are errors; only a plan without errors may
/// run.
#[must_use]
pub(crate) fn read(
    source: &Arc<Source>,
    has_subject: bool,
    named: NamedFiles,
) -> (Option<LadingFile>, Diagnostics) {
    let reader = Reader::new(Arc::clone(source)).with_named(named);
    let run_plan = reader
        .parse_tagged()
        .map(without_tags)
        .and_then(|root| read_root(&reader, &root, has_subject));
    (run_plan, reader.finish())
}

/// Returns `node` with each tag as lading reads it: `!kind value` is `{kind: value}`, and a bare
/// `!kind` is `kind`.
fn without_tags(node: Node) -> Node {
    let value = match node.value {
        Value::List(items) => Value::List(items.into_iter().map(without_tags).collect()),
        Value::Map(entries) => {
            let untagged = entries.into_iter().map(|entry| Entry {
                value: without_tags(entry.value),
                ..entry
            });
            let mut entries: Vec<Entry> = untagged.collect();
            let tag = match entries.as_mut_slice() {
                [Entry { key, value }] if key.text.starts_with('!') => {
                    key.text.remove(0);
                    matches!(value.value, Value::Null).then(|| key.text.clone())
                }
                _ => None,
            };
            match tag {
                Some(text) => Value::Scalar {
                    text,
                    quoted: false,
                },
                None => Value::Map(entries),
            }
        }
        value => value,
    };
    Node { value, ..node }
}

/// The files that `source` names, by the paths as they are written: first texts,
/// then what is sent.
#[must_use]
pub(crate) fn names(source: &Arc<Source>) -> (Vec<String>, Vec<String>) {
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    if let Ok((root, _)) = parse(source) {
        find_names(&root, &mut texts, &mut files);
    }
    (texts, files)
}

fn find_names(node: &Node, texts: &mut Vec<String>, files: &mut Vec<String>) {
    if let Value::List(items) = &node.value {
        for item in items {
            find_names(item, texts, files);
        }
    }
    for entry in node.entries().unwrap_or_default() {
        match (entry.key.text.as_str(), &entry.value.value) {
            ("template_path", Value::Scalar { text, .. }) => texts.push(text.clone()),
            ("static_path", Value::Scalar { text, .. }) => files.push(text.clone()),
            _ => find_names(&entry.value, texts, files),
        }
    }
}

fn read_root(reader: &Reader, root: &Node, has_subject: bool) -> Option<LadingFile> {
    let keys = Keys::new("lading file", KEYS);
    let map = reader.map(root, &keys)?;
    let generators = match map.take("generator") {
        Some(node) => generator::read_all(reader, &one_or_many(node)),
        None => Vec::new(),
    };
    let sinks = match map.take("blackhole") {
        Some(node) => sink::read_all(reader, &one_or_many(node)),
        None => Vec::new(),
    };
    check_sink_addresses(reader, &sinks);
    if has_subject {
        check_bypasses_target(reader, &generators, &sinks);
    }
    let mut observer = ObserverPlan::default();
    if let Some(node) = map.take("sample_period_milliseconds")
        && let Some(milliseconds) = reader.whole(node, 1, 3_600_000_u64)
    {
        observer.period = Nanos::from_millis(milliseconds);
        // lading reads smaps at every tenth tick.
        observer.detail_period = Nanos::from_millis(milliseconds * 10);
    }
    if let Some(node) = map.take("observer") {
        read_observer(reader, node, &mut observer);
    }
    if let Some(node) = map.take("target_metrics") {
        let items = reader.list(node).unwrap_or_default();
        observer.scrapes = items
            .iter()
            .filter_map(|item| read_target_metrics(reader, item))
            .collect();
    }
    if let Some(node) = map.take("telemetry") {
        telemetry::ignore(reader, node);
    }
    if let Some(node) = map.take("inspector") {
        observer.inspector = read_inspector(reader, node);
    }
    if let Some(node) = map.take("experiment_duration") {
        remark_duration(reader, node);
    }
    if let Some(node) = map.take("target") {
        remark_target(reader, node);
    }
    if let Some(node) = map.take("worker_threads") {
        let message = "`worker_threads` has no effect: generators and sinks have their own threads";
        reader.report(reader.warning(code::NO_EFFECT, node.span, message));
    }
    let first_seed = generators.first().map(|generator| generator.value.seed);
    Some(LadingFile {
        seed: first_seed.unwrap_or_else(|| Seed::from_number(0)),
        generators: values(generators),
        sinks: values(sinks),
        observer,
    })
}

/// Reports the length of a run, which files had until 2022.
fn remark_duration(reader: &Reader, node: &Node) {
    if let Some(seconds) = reader.whole(node, 1, u32::MAX) {
        let message = "`experiment_duration` has no effect: the command line sets the length";
        let warning = reader.warning(code::NO_EFFECT, node.span, message);
        reader.report(warning.help(format!(
            "give `--measure {seconds}s`, or `--experiment-duration-seconds {seconds}` to lading"
        )));
    }
}

/// Reports the target, which files had until 2022.
fn remark_target(reader: &Reader, node: &Node) {
    let accepted = [
        "command",
        "arguments",
        "environment_variables",
        "inherit_environment",
        "output",
    ];
    let Some(map) = reader.map(node, &Keys::new("target", &accepted)) else {
        return;
    };
    for key in ["inherit_environment", "output"] {
        map.ignore(key);
    }
    let environment = map.take("environment_variables");
    let environment = environment
        .map(|node| reader.text_map(node))
        .unwrap_or_default();
    // Values may be secrets.
    let variables: Vec<String> = environment.into_iter().map(|(name, _)| name).collect();
    let command = map.required("command").and_then(|node| {
        if matches!(node.value, Value::Scalar { .. }) {
            return reader.text(node);
        }
        let map = reader.map(node, &Keys::new("command", &["path"]))?;
        reader.text(map.required("path")?)
    });
    let arguments = map.take("arguments").map(|node| reader.texts(node));
    let Some(command) = command else {
        return;
    };
    let words = std::iter::once(command.to_owned()).chain(arguments.unwrap_or_default());
    let words: Vec<String> = words.collect();
    let message = "`target` has no effect: the command line names the program";
    let warning = reader.warning(code::NO_EFFECT, node.span, message);
    let command = words.join(" ");
    let mut help =
        format!("give `--target-command '{command}'` to a case, or `-- {command}` to a file");
    if !variables.is_empty() {
        help.push_str(&format!(", with its variables {}", variables.join(", ")));
    }
    reader.report(warning.help(help));
}

fn values<T>(placed: Vec<Placed<T>>) -> Vec<T> {
    placed.into_iter().map(|placed| placed.value).collect()
}

/// Returns the items of a list, or a single map as one item (before lading 0.10).
fn one_or_many(node: &Node) -> Vec<&Node> {
    match &node.value {
        Value::List(items) => items.iter().collect(),
        Value::Null | Value::Scalar { .. } | Value::Map(_) => vec![node],
    }
}

/// lading's default observers are active under lading's name; otherwise only on request.
fn read_observer(reader: &Reader, node: &Node, observer: &mut ObserverPlan) {
    let keys = Keys::new("observer", &["enable_smaps", "enable_smaps_rollup"]);
    let Some(map) = reader.map(node, &keys) else {
        return;
    };
    if let Some(value) = map.take("enable_smaps") {
        observer.kernel.smaps = reader.boolean(value).unwrap_or(false);
    }
    if let Some(value) = map.take("enable_smaps_rollup")
        && reader.boolean(value) == Some(false)
    {
        let message = "`enable_smaps_rollup` has no effect: proportional memory (PSS) is always read, at long intervals";
        reader.report(reader.note(code::NO_EFFECT, value.span, message));
    }
}

fn read_inspector(reader: &Reader, node: &Node) -> Option<InspectorPlan> {
    let keys = ["command", "arguments", "environment_variables", "output"];
    let map = reader.map(node, &Keys::new("inspector", &keys))?;
    let arguments = map.take("arguments").map(|node| reader.texts(node));
    let variables = map
        .take("environment_variables")
        .map(|node| reader.text_map(node));
    let (mut stdout, mut stderr) = (None, None);
    if let Some(node) = map.take("output")
        && let Some(output) = reader.map(node, &Keys::new("output", &["stdout", "stderr"]))
    {
        let file = |key| {
            let node = output.take(key)?;
            match node.value {
                Value::Null => None,
                _ => reader.text(node).map(PathBuf::from),
            }
        };
        (stdout, stderr) = (file("stdout"), file("stderr"));
    }
    let command = map.required("command")?;
    let program = reader.text(command)?;
    if program.is_empty() {
        let error = reader.error(code::BAD_VALUE, command.span, "the command is empty");
        reader.report(error.label("write the path of a program, such as `/usr/bin/perf`"));
    }
    Some(InspectorPlan {
        program: program.into(),
        arguments: arguments.unwrap_or_default(),
        environment: variables.unwrap_or_default().into_iter().collect(),
        stdout,
        stderr,
    })
}

fn read_target_metrics(reader: &Reader, node: &Node) -> Option<ScrapePlan> {
    const KINDS: [&str; 2] = ["prometheus", "expvar"];
    let map = reader.map(node, &Keys::new("target_metrics entry", &KINDS))?;
    let (kind, node) = map.one_of(&KINDS)?;
    let (what, chosen, format) = match kind {
        "prometheus" => (
            "prometheus scrape",
            "metrics",
            ScrapeFormat::DottedPrometheus,
        ),
        _ => ("expvar scrape", "vars", ScrapeFormat::Expvar),
    };
    let map = reader.map(node, &Keys::new(what, &["uri", chosen, "tags"]))?;
    let names = match map.take(chosen) {
        Some(node) => Some(reader.texts(node)),
        // lading requires names.
        None if format == ScrapeFormat::Expvar => {
            map.required(chosen)?;
            None
        }
        None => None,
    };
    let labels = map
        .take("tags")
        .map(|node| reader.text_map(node))
        .unwrap_or_default();
    let uri = map.required("uri")?;
    Some(ScrapePlan {
        url: generator::read_scrape_url(reader, uri)?,
        names,
        labels,
        format,
    })
}

#[cfg(test)]
mod tests;
