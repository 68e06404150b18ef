//! Payloads of lading's generators.

use std::path::Path;

use stillwell_config::{Loaded, RunOverrides};
use stillwell_plan::{PayloadFormat, RunPlan};
use stillwell_text::Diagnostics;

use super::{InMemory, load_run_from};

/// Lading's names of them.
const LADING: [&str; 9] = [
    "splunk_hec",
    "{splunk_hec: {encoding: text}}",
    "{static: {static_path: /data}}",
    "{static: {static_path: /data/a}}",
    "{static_chunks: {static_path: /etc/lading/lines.log}}",
    "{static_timestamped: {static_path: ../data/b, timestamp_format: '%Y-%m-%dT%H:%M:%S'}}",
    "{static_timestamped: {static_path: /data/b, timestamp_format: '%s', emit_placeholder: true, start_line_index: 9}}",
    "{templated_json: {template_path: /etc/lading/t.yaml}}",
    "{templated_json: {template_path: t.yaml}}",
];

const TEMPLATE: &str = "generator: !object {a: !const 1}\n";

fn lading_files(lading: &str) -> InMemory {
    InMemory::with([
        ("/lab/one/data/a", "a\n"),
        ("/lab/one/data/b", "b\n"),
        ("/lab/one/data/below/c", "c\n"),
        ("/lab/one/lading/lading.yaml", lading),
        ("/lab/one/lading/t.yaml", TEMPLATE),
        ("/lab/one/lading/lines.log", "a\n"),
    ])
}

fn lading(variant: &str) -> Result<PayloadFormat, Diagnostics> {
    let seed = (0..32).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let text = format!(
        "generator:\n  - tcp:\n      addr: 127.0.0.1:9100\n      seed: [{seed}]\n      \
         maximum_prebuild_cache_size_bytes: 1 MiB\n      variant: {variant}\n"
    );
    let path = Path::new("/lab/one/lading/lading.yaml");
    let loaded: Loaded<RunPlan> =
        load_run_from(&lading_files(&text), path, &RunOverrides::default())?;
    Ok(format_of(loaded.plan))
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
fn every_payload_of_lading_is_read() {
    let mut report = String::new();
    for payload in LADING {
        let read = match lading(payload) {
            Ok(format) => format!("{format:?}"),
            Err(result) => result.to_string(),
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
        "static",
        "{static: {static_path: /nowhere}}",
        "{static_timestamped: {static_path: /data, timestamp_format: '%F %T'}}",
        "{templated_json: {template_path: /data}}",
        "{templated_json: {template_path: lines.log}}",
        "{splunk_hec: {encoding: xml}}",
    ] {
        report.push_str(&lading(payload).unwrap_err().to_string());
        report.push('\n');
    }
    insta::assert_snapshot!(report);
}
