//! Runs by lading's command line.

use std::path::PathBuf;

use stillwell_config::{Loaded, RunOverrides, TargetOverride};
use stillwell_text::Diagnostics;

use super::InMemory;
use crate::run::load_lading_from;
use crate::{LadingRun, LadingSource, TelemetryPlace};

const SEED: &str = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, \
                    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]";

fn generator(id: &str, port: u16) -> String {
    let id = if id.is_empty() {
        String::new()
    } else {
        format!("id: {id}\n    ")
    };
    format!(
        "generator:\n  - {id}tcp: {{seed: {SEED}, addr: '127.0.0.1:{port}', variant: ascii, \
         maximum_prebuild_cache_size_bytes: 1 MiB}}\n"
    )
}

fn load(files: InMemory, from: LadingSource) -> Result<Loaded<LadingRun>, Diagnostics> {
    let overrides = RunOverrides {
        target: TargetOverride::None,
        ..RunOverrides::default()
    };
    load_lading_from(&files, &from, &overrides)
}

fn folder(single: &str, two: &str) -> Result<Loaded<LadingRun>, Diagnostics> {
    let files = InMemory::with([
        ("/etc/lading/a.yaml", single),
        ("/etc/lading/b.yaml", two),
        ("/etc/lading/.hidden.yaml", "generator: 7\n"),
        ("/etc/lading/notes.txt", "generator: 7\n"),
    ]);
    load(files, LadingSource::Path(PathBuf::from("/etc/lading")))
}

#[test]
fn the_files_of_a_folder_are_one() {
    let sink = |port: u16| format!("blackhole: [{{tcp: {{binding_addr: '127.0.0.1:{port}'}}}}]\n");
    let single = generator("", 1) + &sink(3) + "telemetry: {path: x, global_labels: {a: b}}\n";
    let two = generator("", 2) + &sink(4) + "sample_period_milliseconds: 500\n";
    let loaded = folder(&single, &two).unwrap_or_else(|result| panic!("{result}"));
    // Telemetry is not reported as without effect.
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let run = loaded.plan;
    let ids: Vec<&str> = run
        .plan
        .generators
        .iter()
        .map(|value| value.id.as_str())
        .collect();
    assert_eq!(ids, ["tcp", "tcp-2"]);
    assert_eq!(run.plan.sinks.len(), 2);
    assert_eq!(
        run.plan.observer.period,
        stillwell_units::Nanos::from_millis(500)
    );
    let telemetry = run.telemetry.unwrap();
    assert!(matches!(telemetry.place, TelemetryPlace::Capture { .. }));
    assert_eq!(telemetry.labels, [("a".to_owned(), "b".to_owned())]);
}

#[test]
fn duplicates_are_named_with_both_files() {
    let once = "telemetry: {path: x}\n";
    let same = "blackhole: [{tcp: {binding_addr: '127.0.0.1:9'}}]\n";
    for (single, two, message) in [
        (
            generator("", 1) + once,
            once.to_owned(),
            "`telemetry` is in",
        ),
        (
            generator("in", 1),
            generator("in", 2),
            "the id `in` is already used",
        ),
        (
            same.to_owned(),
            same.to_owned(),
            "listens on an address that another sink already uses",
        ),
    ] {
        let result = folder(&single, &two).unwrap_err().to_string();
        assert!(result.contains(message), "{result}");
        assert!(result.contains("b.yaml"), "{result}");
    }
}

#[test]
fn a_text_needs_no_file() {
    let loaded = load(InMemory::default(), LadingSource::Text(generator("", 7)));
    assert_eq!(loaded.unwrap().plan.plan.generators.len(), 1);
    let result = load(
        InMemory::default(),
        LadingSource::Text("generator: [{tpc: {}}]\n".to_owned()),
    );
    assert!(
        result
            .unwrap_err()
            .to_string()
            .contains("LADING_CONFIG:1:14")
    );
    let none = load(InMemory::default(), LadingSource::Path("/nowhere".into()));
    assert!(
        none.unwrap_err()
            .to_string()
            .contains("cannot read /nowhere")
    );
}
