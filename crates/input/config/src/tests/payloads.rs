//! Payloads of generators.

use stillwell_plan::{PayloadFormat, RunPlan};
use stillwell_text::Diagnostics;

use super::golden::LEAST;
use super::{InMemory, load_suite_from};
use crate::SuiteOverrides;

/// Every payload with all its keys.
pub(super) const NATIVE: [&str; 16] = [
    "{splunk_hec: {encoding: text}}",
    "{splunk_hec: }",
    "{loki: {streams: 5}}",
    "{elasticsearch: {index: logs-a.b-1, action: index}}",
    "{influx: {series: 5}}",
    "{gelf: {end: nothing}}",
    "{cef: {header: nothing}}",
    "{static: {path: data}}",
    "{static: x.log}",
    "{static_chunks: data/a}",
    "{static_timestamped: {path: x.log, time: '%F %T', placeholder: true, start_line: 3}}",
    "{templated_json: t.yaml}",
    "{template: 'a {int 1..2}'}",
    "{template: {lines: [{text: a, weight: 2}, b], define: {c: d}, end: ''}}",
    "{template: {file: own.yaml}}",
    "{lines: {path: x.log}}",
];

const TEMPLATE: &str = "generator: !object {a: !const 1}\n";

fn native_files(text: &str) -> InMemory {
    InMemory::with([
        ("/suite/one/experiment.yaml", text),
        ("/suite/one/x.log", "a\n"),
        ("/suite/one/data/a", "a\n"),
        ("/suite/one/data/b", "b\n"),
        ("/suite/one/data/below/c", "c\n"),
        ("/suite/one/own.yaml", "lines: '{word}'\nend: ''\n"),
        ("/suite/one/wrong.yaml", "lines: '{word} {nonsense}'\n"),
        ("/suite/one/t.yaml", TEMPLATE),
    ])
}

fn native(payload: &str) -> Result<PayloadFormat, Diagnostics> {
    let text = LEAST.replace("payload: ascii", &format!("payload: {payload}"));
    let files = native_files(&text);
    let loaded = load_suite_from(&files, &["/suite/one".into()], &SuiteOverrides::default())?;
    let experiment = loaded.plan.experiments.into_iter().next();
    Ok(format_of(experiment.expect("an experiment").run_plan))
}

fn format_of(run_plan: RunPlan) -> PayloadFormat {
    run_plan
        .generators
        .into_iter()
        .next()
        .expect("a generator")
        .payload
        .format
}

#[test]
fn every_payload_is_read() {
    let mut report = String::new();
    for payload in NATIVE {
        let read = match native(payload) {
            Ok(format) => format!("{format:?}"),
            Err(diagnostics) => diagnostics.to_string(),
        };
        report.push_str(&format!(
            "{payload}\n    {}\n",
            read.replace('\n', "\n    ")
        ));
    }
    insta::assert_snapshot!(report);
}

#[test]
fn mistakes_in_payloads_are_named() {
    let mut report = String::new();
    for payload in [
        "{loki: {streams: 0}}",
        "{elasticsearch: {index: Logs}}",
        "{gelf: {end: null_byte}}",
        "{static: {path: nowhere}}",
        "{static: {path: data, paths: 1}}",
        "{static_timestamped: {path: x.log, time: '%Z'}}",
        "{templated_json: x.log}",
        "{template: {lines: a, file: own.yaml}}",
        "{template: {file: own.yaml, end: ''}}",
        "{template: {file: wrong.yaml}}",
        "{template: 'one {wrod}'}",
        "syslog3146",
    ] {
        report.push_str(&native(payload).unwrap_err().to_string());
        report.push('\n');
    }
    insta::assert_snapshot!(report);
}
