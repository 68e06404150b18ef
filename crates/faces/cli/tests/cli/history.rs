//! Saved results over time.

use std::fs;
use std::path::Path;

use stillwell_capture::RunStage;
use stillwell_experiment::{BinaryIdentity, Results, SUITE_SCHEMA, SuiteRecord};
use stillwell_plan::experiment::{BinarySource, GitSource};
use stillwell_plan::{GoalMetric, GoalPlan, SuitePlan};
use stillwell_units::Seed;
use stillwell_verdict::synthetic;

use crate::load::serve;
use crate::suite::{Suite, assert_code, assert_holds};

#[test]
fn results_that_are_not_there_are_reported_and_what_to_do() {
    let suite = Suite::new();
    suite.file("other/notes.txt", "nothing");
    suite.file("broken/run/suite.json", "{}");
    for (words, output) in [
        (&["history"][..], ".stillwell/results does not exist"),
        (&["history", "no-such"], "no-such does not exist"),
        (&["history", "other"], "there are no results in other"),
        (
            &["history", "broken"],
            "there are no results to show in 1 results folder",
        ),
        (&["history", "--since", "soon"], "2026-11-21"),
        (
            &["history", "--method", "stillwell", "-P", "0.1"],
            "needs --method otava",
        ),
        (&["history", "--into", "x"], "--export"),
        (&["history", "--last", "0"], "whole number from 1"),
        (&["history", "--metric", "speed"], "speed"),
    ] {
        let ended = suite.call(words);
        assert_code(&ended, 2);
        assert_holds(&ended.stderr, &[output]);
        assert_eq!(ended.stdout, "", "{words:?}");
    }
}

/// Fourteen suites in `saved`: from the eighth on the comparison costs 10 % more than the
/// baseline, which is always the same.
fn save(suite: &Suite) {
    for number in 0..14 {
        save_suite(suite, number, if number < 7 { 100.0 } else { 110.0 });
    }
}

fn save_suite(suite: &Suite, number: u32, cost: f64) {
    let results = Results::new(suite.path(&format!("saved/suite-{number:02}")));
    let write = |path: &Path, text: serde_json::Value| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.to_string()).unwrap();
    };
    let commit = |variant: &str| match variant {
        "baseline" => "0".repeat(40),
        _ => format!("{:08x}", 0xabc0_0000 + number).repeat(5),
    };
    let mut experiment = synthetic::plan("relay", vec![GoalPlan::new(GoalMetric::CpuPerEvent)]);
    for variant in &mut experiment.variants {
        variant.binary = BinarySource::Git(GitSource {
            repository: "/src/relay".into(),
            revision: commit(&variant.name),
            build: "make".to_owned(),
            output: "out".into(),
        });
    }
    for pair in 1..=2 {
        for (variant, cost) in [("baseline", 100.0), ("comparison", cost)] {
            // Not quite the same number every time.
            let cost = cost + f64::from((number * 7 + pair * 3) % 5) * 0.1;
            let place = (RunStage::Search, pair, variant);
            let values = [(GoalMetric::CpuPerEvent, cost)];
            let summary = synthetic::run("relay", place, &values);
            let summary = serde_json::to_value(&summary).unwrap();
            write(
                &results.run("relay", pair, variant).join("summary.json"),
                summary,
            );
        }
    }
    let binaries = ["baseline", "comparison"].map(|variant| BinaryIdentity {
        experiment: "relay".to_owned(),
        variant: variant.to_owned(),
        path: None,
        revision: Some(commit(variant)),
        sha256: None,
    });
    let record = SuiteRecord {
        schema: SUITE_SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        command: Vec::new(),
        started_wall_millis: 1_795_269_933_000 + u64::from(number) * 86_400_000,
        fingerprint: String::new(),
        binaries: binaries.to_vec(),
        plan: SuitePlan {
            experiments: vec![experiment],
            seed: Seed::from_number(1),
        },
        health: Vec::new(),
    };
    write(&results.suite(), serde_json::to_value(&record).unwrap());
}

#[test]
fn a_step_is_an_alarm_with_the_command_that_confirms_it() {
    let suite = Suite::new();
    save(&suite);
    suite.file("saved/broken/suite.json", "{}");
    let words = ["history", "saved", "-o", "history.md", "--color", "never"];
    let ended = suite.call(&words);
    assert_code(&ended, 1);
    assert_holds(
        &ended.stdout,
        &[
            "history of 14 results from 2026-11-21",
            "1 goal is worse",
            "✗ worse",
            "CPU per event +10.0 % (worse) from 2026-11-28",
            "stillwell bisect abc00006abc0 abc00007abc0 ",
            "note: saved/broken: ",
        ],
    );
    let page = fs::read_to_string(suite.path("history.md")).unwrap();
    assert_holds(&page, &["## history of 14 results", "| goal |"]);
    assert_code(&suite.call(&["history", "saved", "--exit-zero"]), 0);
    // Before the step nothing is worse, and the same folder counts once.
    let words = ["history", "saved", "saved/suite-00", "--format", "json"];
    let ended = suite.call(&[&words[..], &["--until", "2026-11-28"]].concat());
    assert_code(&ended, 0);
    let value: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(value["schema"], "stillwell/history/v1");
    assert_eq!(value["trends"][0]["points"].as_array().unwrap().len(), 7);
    let ended = suite.call(&["history", "saved", "--last", "5"]);
    assert_code(&ended, 0);
    assert_holds(
        &ended.stdout,
        &[
            "? too few",
            "too few results to find a change: 5 of at least",
        ],
    );
}

#[test]
fn an_export_is_one_table_or_a_folder_of_them() {
    let suite = Suite::new();
    save(&suite);
    let ended = suite.call(&["history", "saved", "--export", "otava-csv", "--last", "3"]);
    assert_code(&ended, 0);
    assert_eq!(ended.stdout.lines().count(), 4);
    assert!(ended.stdout.starts_with("time,commit,branch,"));
    let words = ["history", "saved", "--export", "otava-csv", "--into"];
    let ended = suite.call(&[&words[..], &["otava"]].concat());
    assert_code(&ended, 0);
    assert_eq!(ended.stdout, "");
    let known = fs::read_to_string(suite.path("otava/otava.yaml")).unwrap();
    assert_holds(
        &known,
        &["type: csv", "cpu_per_event_vs_baseline", "direction: -1"],
    );
    let table = fs::read_to_string(suite.path("otava/relay.csv")).unwrap();
    assert_eq!(table.lines().count(), 15);
}

#[test]
fn what_no_saved_suite_has_is_reported_with_what_there_is() {
    let suite = Suite::new();
    save(&suite);
    for (words, output) in [
        (["--only", "no*such"], "the experiments are: relay"),
        (["--metric", "loss"], "no suite has recorded loss"),
        (["--since", "2200-01-01"], "no suite or load started"),
    ] {
        let ended = suite.call(&["history", "saved", words[0], words[1]]);
        assert_code(&ended, 2);
        assert_holds(&ended.stderr, &[output]);
    }
}

/// The summary of a load at day `day` with this median latency in seconds.
fn saved_load(day: u64, p50: f64) -> serde_json::Value {
    let times = serde_json::json!({
        "count": 1000, "min": 0.0001, "mean": p50, "p50": p50, "p75": p50, "p90": p50, "p95": p50,
        "p99": 0.004, "p99.9": 0.005, "max": 0.006,
    });
    serde_json::json!({
        "schema": "stillwell/load-summary/v1", "version": "0.1.0", "command": "stillwell load",
        "seed": "01", "targets": ["http://127.0.0.1:8080/"], "protocol": "HTTP/1.1",
        "open_loop": true, "workers": 1, "connections": 50,
        "started_wall_millis": 1_795_000_000_000_u64 + day * 86_400_000,
        "duration": 1.0, "requests": 1000, "requests_per_second": 1000.0,
        "requested_per_second": 1000.0, "requests_not_sent": 0, "error_share": 0.0,
        "outcomes": {"ok": 1000}, "status_codes": {"200": 1000},
        "bytes_received": 1, "bytes_sent": 1,
        "latency": times, "service_time": times, "first_byte": times, "connect": null,
        "tls_handshake": null, "validity": "normal", "reliable": true, "warnings": [],
        "ended_because": "duration",
    })
}

#[test]
fn saved_loads_are_a_history_and_a_slower_median_is_an_alarm() {
    let suite = Suite::new();
    let noise = |day: u64| 1e-6 * [0.0, 3.0, 1.0, 4.0, 2.0][usize::try_from(day % 5).unwrap()];
    for day in 0..14 {
        let median = if day < 7 { 0.001 } else { 0.0012 };
        let load = saved_load(day, median + noise(day));
        suite.file(&format!("loads/{day:02}.json"), &load.to_string());
    }
    let mut unreliable = saved_load(14, 0.01);
    unreliable["reliable"] = false.into();
    unreliable["warnings"] =
        serde_json::json!([{"code": "cpu_starvation", "text": "late", "unreliable": true}]);
    suite.file("loads/14.json", &unreliable.to_string());
    let files: Vec<_> = (0..15).map(|day| format!("loads/{day:02}.json")).collect();
    let mut words = vec!["history"];
    words.extend(files.iter().map(String::as_str));
    let ended = suite.call(&words);
    assert_code(&ended, 1);
    assert_holds(
        &ended.stdout,
        &[
            "http://127.0.0.1:8080/",
            "latency p50",
            "✗ worse",
            "latency p99",
            "= steady",
            "cpu_starvation",
        ],
    );
    let ended = suite.call(&["history", "loads/14.json"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["there are no results to show in 1 saved load"],
    );
}

#[test]
fn a_load_that_is_saved_in_several_forms_counts_once() {
    let suite = Suite::new();
    let (_server, url) = serve(&[]);
    let ended = suite.call(&[
        "load",
        &url,
        "--quiet",
        "--requests=20",
        "--validity=off",
        "--output=load.json",
        "--output=load.html",
        "--capture=kept",
    ]);
    assert_code(&ended, 0);
    let paths = ["load.json", "load.html", "kept", "load.json"];
    let ended = suite.call(&[&["history", "--format=json"][..], &paths].concat());
    assert_code(&ended, 0);
    let value: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(value["trends"][0]["points"].as_array().unwrap().len(), 1);
    let reason = "it is the same load as load.json";
    let skipped = ["load.html", "kept"];
    let skipped = skipped.map(|path| serde_json::json!({ "results": path, "reason": reason }));
    assert_eq!(value["skipped"], serde_json::json!(skipped));
}

#[test]
fn loads_that_begin_in_the_same_millisecond_count_once_each() {
    let suite = Suite::new();
    let mut load = saved_load(0, 0.001);
    suite.file("first.json", &load.to_string());
    suite.file("copy.json", &load.to_string());
    load["seed"] = "02".into();
    suite.file("seed.json", &load.to_string());
    load["requests"] = 1001.into();
    suite.file("requests.json", &load.to_string());
    let paths = ["first.json", "copy.json", "seed.json", "requests.json"];
    let ended = suite.call(&[&["history", "--format=json"][..], &paths].concat());
    assert_code(&ended, 0);
    let value: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(value["trends"][0]["points"].as_array().unwrap().len(), 3);
    let reason = "it is the same load as first.json";
    let skipped = serde_json::json!([{ "results": "copy.json", "reason": reason }]);
    assert_eq!(value["skipped"], skipped);
}
