//! `config.yaml` of a suite of SMP: settings that all of its cases share.

use std::path::Path;

use stillwell_config::files::{EntryKind, Files, read_source};
use stillwell_plan::experiment::ReportLink;
use stillwell_text::{Diagnostics, Keys, Node, Reader, Value};

use crate::experiment::{SmpExperiment, SmpTarget, read_target};

/// Settings that all cases of a suite share.
#[derive(Debug, Default)]
pub(super) struct SuiteSettings {
    target: SmpTarget,
    report_links: Vec<ReportLink>,
}

/// Names in reports of the links that a suite sets.
const LINKS: [(&str, &str); 4] = [
    ("metrics_dashboard", "Metrics dashboard"),
    ("profiles", "Profiles"),
    ("per_experiment_logs", "Logs"),
    ("debug_dashboard", "Debug dashboard"),
];

/// Reads the settings of the suite that the case in `folder` belongs to: the `config.yaml` beside
/// the folder `cases`, if there is one.
pub(super) fn read(
    files: &dyn Files,
    folder: &Path,
    diagnostics: &mut Diagnostics,
) -> Option<SuiteSettings> {
    let cases = folder.parent().filter(|cases| cases.ends_with("cases"))?;
    let path = cases.parent()?.join("config.yaml");
    if files.kind(&path) != Some(EntryKind::File) {
        return None;
    }
    let source = match read_source(files, &path) {
        Ok(source) => source,
        Err(error) => {
            diagnostics.push(*error);
            return None;
        }
    };
    let reader = Reader::new(source);
    let settings = reader.parse().and_then(|root| read_root(&reader, &root));
    diagnostics.append(reader.finish());
    settings
}

fn read_root(reader: &Reader, root: &Node) -> Option<SuiteSettings> {
    let mut settings = SuiteSettings::default();
    if matches!(root.value, Value::Null) {
        return Some(settings);
    }
    let map = reader.map(root, &Keys::new("suite", &["lading", "target", "report"]))?;
    map.ignore("lading");
    if let Some(node) = map.take("target").filter(|node| !is_empty(node)) {
        settings.target = read_target(reader, node, false)?;
    }
    if let Some(node) = map.take("report").filter(|node| !is_empty(node)) {
        let map = reader.map(node, &Keys::new("report", &LINKS.map(|(key, _)| key)))?;
        for (key, text) in LINKS {
            let link = map.take(key).filter(|node| !is_empty(node));
            if let Some(link) = link.and_then(|node| reader.text(node)) {
                settings.report_links.push(ReportLink {
                    text: text.to_owned(),
                    link: link.to_owned(),
                });
            }
        }
    }
    Some(settings)
}

const fn is_empty(node: &Node) -> bool {
    matches!(node.value, Value::Null)
}

impl SuiteSettings {
    /// Adds what `experiment` does not set itself.
    pub(super) fn complete(self, experiment: &mut SmpExperiment) {
        let target = experiment.target.get_or_insert_with(SmpTarget::default);
        if target.name.is_empty() {
            target.name = self.target.name;
        }
        target.command = target.command.take().or(self.target.command);
        target.cpus = target.cpus.or(self.target.cpus);
        target.memory = target.memory.or(self.target.memory);
        for (name, value) in self.target.environment {
            target.environment.entry(name).or_insert(value);
        }
        experiment.report_links.extend(self.report_links);
    }
}

#[cfg(test)]
mod tests {
    use stillwell_text::Source;

    use super::*;

    #[test]
    fn every_link_of_a_suite_is_read() {
        let text = "report:\n  metrics_dashboard: a\n  profiles: b\n  per_experiment_logs: c\n  debug_dashboard: d\n";
        let reader = Reader::new(Source::new("config.yaml", text));
        let root = reader.parse().unwrap();
        let settings = read_root(&reader, &root).unwrap();
        let links = settings.report_links.iter();
        let links: Vec<&str> = links.map(|link| link.link.as_str()).collect();
        assert_eq!(links, ["a", "b", "c", "d"]);
        assert!(!reader.has_errors());
    }
}
