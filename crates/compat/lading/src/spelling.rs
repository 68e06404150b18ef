//! Old spellings in lading's files, and their current forms.
//!
//! A finding has a place, and edits of the text if there is an equivalent current spelling. The rest of the
//! text does not change, so comments and the order of keys remain. [`fix`] applies all edits, in rounds, until
//! there are none; the result gives the same plan.

use std::sync::Arc;

use stillwell_text::{Diagnostic, Entry, Node, Place, Source, Span, Value, code, parse};

mod dogstatsd;
mod edit;
mod shape;
mod size;

use crate::file::today_name;
use edit::{Edit, apply, remove_entry, value_end};

/// Limit on rounds: files are not nested deeper.
const ROUNDS_MAX: usize = 32;

/// Kinds of generators and blackholes. Templates of payloads also have a key `generator`, which is not one of
/// them.
const PARTS: [&str; 22] = [
    "container",
    "datadog",
    "datadog_stateful_logs",
    "file_gen",
    "file_tree",
    "grpc",
    "http",
    "id",
    "kubernetes",
    "otlp",
    "passthru_file",
    "proc_fs",
    "process_tree",
    "splunk_hec",
    "sqs",
    "tcp",
    "tcp_rr",
    "trace_agent",
    "udp",
    "unix_datagram",
    "unix_stream",
    "kafka",
];
/// Generators whose blocks lading always builds before.
const WITHOUT_CACHE_METHOD: [&str; 3] = ["tcp", "udp", "passthru_file"];
/// Payloads for which lading 0.33 requires options, even empty.
const WITH_OPTIONS: [&str; 3] = ["dogstatsd", "opentelemetry_logs", "opentelemetry_metrics"];
/// Keys at the top that the command line replaced.
const REMOVED_AT_TOP: [&str; 3] = ["experiment_duration", "target", "worker_threads"];
/// Renamed keys.
const RENAMED: [(&str, &str); 2] = [
    ("initial_bytes_per_second", "initial"),
    ("maximum_bytes_per_second", "maximum"),
];

/// One old spelling.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// The message of the finding.
    pub(crate) diagnostic: Diagnostic,
    edits: Vec<Edit>,
}

impl Finding {
    /// [`fix`] can correct it.
    #[must_use]
    pub(crate) const fn is_fixable(&self) -> bool {
        !self.edits.is_empty()
    }
}

/// The old spellings in `source`, a `lading.yaml` or an `experiment.yaml` of SMP's,
/// in the order of the file. A text that is not YAML has none.
#[must_use]
pub(crate) fn lint(source: &Arc<Source>) -> Vec<Finding> {
    let Ok((root, _)) = parse(source) else {
        return Vec::new();
    };
    let mut linter = Linter {
        source,
        findings: Vec::new(),
    };
    for key in ["generator", "blackhole"] {
        let entries = root.entries().unwrap_or_default();
        if let Some(entry) = entries.iter().find(|entry| entry.key.text == key) {
            linter.parts(entry);
        }
    }
    linter.removed_at_top(&root);
    if let Some(checks) = root.entry("checks") {
        linter.renamed_series(checks);
    }
    let mut findings = linter.findings;
    findings.sort_by_key(|finding| finding.diagnostic.place.as_ref().map(|place| place.span));
    findings
}

/// Returns the text of `source` with every fixable finding corrected. Applying it again changes nothing.
#[must_use]
pub(crate) fn fix(source: &Arc<Source>) -> String {
    let mut text = source.text().to_owned();
    for _ in 0..ROUNDS_MAX {
        let round = Source::new(source.path(), text.as_str());
        let findings = lint(&round);
        let edits = findings.into_iter().map(|finding| finding.edits);
        let next = apply(&text, edits.filter(|edits| !edits.is_empty()));
        if next == text {
            break;
        }
        text = next;
    }
    text
}

struct Linter<'s> {
    source: &'s Arc<Source>,
    findings: Vec<Finding>,
}

impl Linter<'_> {
    /// Reports `message` for the text at `span`; `edits` correct it.
    fn report(&mut self, span: Span, message: String, label: &str, edits: Option<Vec<Edit>>) {
        let place = Place::new(self.source, span);
        let diagnostic = Diagnostic::warning(code::OLD_SPELLING, message)
            .at(place)
            .label(label);
        self.push(diagnostic, edits);
    }

    fn push(&mut self, diagnostic: Diagnostic, edits: Option<Vec<Edit>>) {
        let edits = edits.unwrap_or_default();
        self.findings.push(Finding { diagnostic, edits });
    }

    /// Keys at the top that lading had until 2022.
    fn removed_at_top(&mut self, root: &Node) {
        // An experiment of SMP's has a target.
        let is_run = root.entry("generator").is_some() || root.entry("blackhole").is_some();
        for entry in root.entries().unwrap_or_default() {
            let key = entry.key.text.as_str();
            if is_run && REMOVED_AT_TOP.contains(&key) {
                let message = format!("`{key}` was removed in 2022");
                self.report(entry.key.span, message, "the command line sets it", None);
            }
        }
    }

    /// Generators or blackholes.
    fn parts(&mut self, entry: &Entry) {
        let is_part = |part: &Entry| PARTS.contains(&part.key.text.as_str());
        if let Value::Map(inner) = &entry.value.value {
            if inner.is_empty() || !inner.iter().all(is_part) {
                return;
            }
            let message = format!("`{}` is a map", entry.key.text);
            let edits = shape::list_of_map(self.source, entry, inner);
            self.report(entry.key.span, message, "a list since lading 0.10", edits);
        }
        let single = std::slice::from_ref(&entry.value);
        let items = match &entry.value.value {
            Value::List(items) => items.as_slice(),
            _ => single,
        };
        for item in items {
            for part in item.entries().unwrap_or_default() {
                if part.key.text != "id" {
                    self.part(part);
                }
            }
        }
    }

    /// One generator or blackhole: its kind and what is below.
    fn part(&mut self, part: &Entry) {
        let kind = part.key.text.as_str();
        let entries = part.value.entries().unwrap_or_default();
        let is_flat = |entry: &Entry| {
            !["traditional", "logrotate", "logrotate_fs"].contains(&entry.key.text.as_str())
        };
        if kind == "file_gen" && !entries.is_empty() && entries.iter().all(is_flat) {
            let message = "`file_gen` does not name its kind".to_owned();
            let edits = shape::nest(self.source, part, entries, "traditional");
            self.report(
                part.key.span,
                message,
                "it was `traditional` before lading 0.14",
                edits,
            );
        }
        self.map(kind, &part.value);
    }

    fn map(&mut self, kind: &str, node: &Node) {
        let entries = node.entries().unwrap_or_default();
        let has = |key: &str| entries.iter().find(|entry| entry.key.text == key);
        if let (Some(_), Some(throttle)) = (has("bytes_per_second"), has("throttle")) {
            let message = "`throttle` is beside `bytes_per_second`".to_owned();
            let label = "lading refuses the two together since 0.18: remove one";
            self.report(throttle.key.span, message, label, None);
        }
        for entry in entries {
            match entry.key.text.as_str() {
                "block_sizes" => self.block_sizes(entry, entries),
                "block_cache_method" => self.cache_method(kind, entry),
                "variant" => self.variant(entry),
                "logrotate_fs" => self.mounted_logs(kind, entry),
                "throttle" => self.throttle(kind, entry),
                "headers" | "labels" => {}
                _ => self.size_or_map(kind, entry),
            }
        }
    }

    fn size_or_map(&mut self, kind: &str, entry: &Entry) {
        if entry.value.entries().is_some() {
            return self.map(kind, &entry.value);
        }
        self.rename(entry);
        if let Some((diagnostic, edits)) = size::lint(self.source, &entry.key.text, &entry.value) {
            self.push(diagnostic, edits);
        }
    }

    fn rename(&mut self, entry: &Entry) {
        let key = entry.key.text.as_str();
        if let Some((_, today)) = RENAMED.iter().find(|(old, _)| *old == key) {
            let edit = Edit::new(entry.key.span, *today);
            let message = format!("`{key}` was renamed to `{today}`");
            self.report(
                entry.key.span,
                message,
                "an outdated name",
                Some(vec![edit]),
            );
        }
    }

    fn block_sizes(&mut self, entry: &Entry, beside: &[Entry]) {
        let Value::List(items) = &entry.value.value else {
            return;
        };
        let has_maximum = beside
            .iter()
            .any(|entry| entry.key.text == "maximum_block_size");
        let edits = if has_maximum {
            remove_entry(self.source, entry).map(|edit| vec![edit])
        } else {
            let end = value_end(self.source.text(), entry);
            end.zip(size::largest(items)).map(|(end, largest)| {
                let start = entry.key.span.start;
                let text = format!("maximum_block_size: \"{largest}\"");
                vec![Edit::new(Span { start, end }, text)]
            })
        };
        let message = "`block_sizes` was removed in lading 0.21".to_owned();
        self.report(entry.key.span, message, "write `maximum_block_size`", edits);
    }

    /// Logs in a file system, whose rate was a key until 2024.
    fn mounted_logs(&mut self, kind: &str, entry: &Entry) {
        let entries = entry.value.entries().unwrap_or_default();
        let rate = entries
            .iter()
            .find(|inner| inner.key.text == "bytes_per_second");
        if let Some(rate) = rate {
            let message = "`bytes_per_second` was replaced by `load_profile`".to_owned();
            let edits = self.as_profile(rate).map(|edit| vec![edit]);
            self.report(rate.key.span, message, "since lading 0.24", edits);
        }
        for inner in entries {
            match inner.key.text.as_str() {
                "variant" => self.variant(inner),
                "bytes_per_second" => {}
                "block_sizes" => self.block_sizes(inner, entries),
                "block_cache_method" => self.cache_method(kind, inner),
                _ => self.size_or_map(kind, inner),
            }
        }
    }

    /// A constant rate as a profile, unless an anchor or alias is between the key and its value.
    fn as_profile(&self, rate: &Entry) -> Option<Edit> {
        let span = Span {
            start: rate.key.span.start,
            end: rate.value.span.end,
        };
        let between = rate.key.span.end..rate.value.span.start;
        let between = self.source.text().get(between)?.trim();
        let rate = size::largest(std::slice::from_ref(&rate.value))?;
        (between == ":").then(|| Edit::new(span, format!("load_profile: {{constant: \"{rate}\"}}")))
    }

    /// Options and values of a payload that lading has no more.
    fn removed_options(&mut self, variant: &Node) {
        let weights = variant.entry("opentelemetry_metrics");
        if let Some(weights) = weights.and_then(|options| options.entry("metric_weights")) {
            if let Some(sum) = weights.entry("sum") {
                let message = "`sum` is no kind of metric".to_owned();
                let label = "write `sum_delta` and `sum_cumulative`";
                self.report(sum.span, message, label, None);
            }
            let weights = weights.entries().unwrap_or_default().iter();
            for entry in weights.filter(|entry| is_zero(&entry.value)) {
                let message = format!("`{}` has the weight 0", entry.key.text);
                let label =
                    "lading 0.33 accepts no weight of 0: leave `metric_weights` out, or write 1";
                self.report(entry.value.span, message, label, None);
            }
        }
        if let Some(options) = variant.entry("trace_agent")
            && let Value::Scalar { text, .. } = &options.value
            && ["json", "msgpack"].contains(&text.as_str())
        {
            let message = format!("`trace_agent: {text}` was removed in lading 0.29");
            self.report(options.span, message, "write `v0.4` and its options", None);
        }
    }

    fn cache_method(&mut self, kind: &str, entry: &Entry) {
        let Value::Scalar { text, .. } = &entry.value.value else {
            return;
        };
        if WITHOUT_CACHE_METHOD.contains(&kind) {
            let edits = remove_entry(self.source, entry).map(|edit| vec![edit]);
            let message = format!("`{kind}` has no `block_cache_method`");
            self.report(
                entry.key.span,
                message,
                "blocks are always built before the run",
                edits,
            );
        } else if text != "Fixed" {
            let edit = Edit::new(entry.value.span, "Fixed");
            let message = format!("`{text}` is not a current `block_cache_method`");
            self.report(
                entry.value.span,
                message,
                "only `Fixed` is",
                Some(vec![edit]),
            );
        }
    }

    fn variant(&mut self, entry: &Entry) {
        if let Value::Scalar { text, .. } = &entry.value.value
            && let Some(today) = today_name(text)
        {
            let edit = Edit::new(entry.value.span, today);
            let message = format!("`{text}` was renamed to `{today}`");
            self.report(
                entry.value.span,
                message,
                "an outdated name",
                Some(vec![edit]),
            );
        }
        if let Value::Scalar { text, .. } = &entry.value.value
            && WITH_OPTIONS.contains(&text.as_str())
        {
            let edit = Edit::new(entry.value.span, format!("{{{text}: {{}}}}"));
            let message = format!("`{text}` has no options");
            let label = "lading requires a map, even an empty one";
            self.report(entry.value.span, message, label, Some(vec![edit]));
        }
        if let Value::Scalar { text, .. } = &entry.value.value
            && text == "opentelemetry_traces"
        {
            let message = "`opentelemetry_traces` has no services".to_owned();
            let label = "lading requires options with services since 0.31";
            self.report(entry.value.span, message, label, None);
        }
        self.removed_options(&entry.value);
        if let Some(options) = entry.value.entry("dogstatsd") {
            dogstatsd::lint(self, options);
        }
    }

    fn throttle(&mut self, kind: &str, entry: &Entry) {
        for inner in entry.value.entries().unwrap_or_default() {
            if inner.key.text == "predictive" {
                let message = "`predictive` was removed in lading 0.18".to_owned();
                let label = "write `all_out`, or `stable` with a rate";
                self.report(inner.key.span, message, label, None);
            }
        }
        self.map(kind, &entry.value);
    }

    /// A series of checks that is called otherwise since lading 0.31.
    fn renamed_series(&mut self, node: &Node) {
        if let Value::List(items) = &node.value {
            for item in items {
                self.renamed_series(item);
            }
        }
        for entry in node.entries().unwrap_or_default() {
            match &entry.value.value {
                Value::Scalar { text, .. }
                    if entry.key.text == "series" && text.contains("lost_bytes") =>
                {
                    let span = entry.value.span;
                    let written = &self.source.text()[span.start..span.end];
                    let edit = Edit::new(span, written.replace("lost_bytes", "missed_bytes"));
                    let message = "`lost_bytes` was renamed to `missed_bytes`".to_owned();
                    self.report(span, message, "since lading 0.31", Some(vec![edit]));
                }
                _ => self.renamed_series(&entry.value),
            }
        }
    }
}

fn is_zero(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar { text, quoted: false } if text.parse() == Ok(0_u64))
}

#[cfg(test)]
mod tests;
