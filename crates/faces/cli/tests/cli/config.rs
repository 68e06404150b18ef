//! `check`, `schema`, and what is refused before anything runs.

use std::fs;

use crate::suite::{Suite, assert_code, assert_holds, assert_nothing_ran};

#[test]
fn an_unknown_key_is_shown_in_its_place_with_the_nearest_name() {
    let suite = Suite::new().with("phases", "{warmpu: 1s, measure: 1s}");
    let file = suite.write();
    let text = fs::read_to_string(&file).unwrap();
    let line = text
        .lines()
        .position(|line| line.contains("warmpu"))
        .unwrap()
        + 1;
    let column = text.lines().nth(line - 1).unwrap().find("warmpu").unwrap() + 1;
    for words in [["check", "experiment"], ["run", "experiment"]] {
        let ended = suite.call(&words);
        assert_code(&ended, 2);
        let place = format!("experiment.yaml:{line}:{column}");
        assert_holds(
            &ended.stderr,
            &["`warmpu`", &place, "^^^^^^", "`warmup`", "nothing was run"],
        );
        assert_eq!(ended.stdout, "");
    }
    assert!(!suite.path(".stillwell").exists());
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let suite = Suite::new()
        .with("phases", "{warmpu: 1s, measure: soon}")
        .with("pairs", "none")
        .with("goals", "[speed]");
    suite.write();
    let ended = suite.call(&["check", "experiment"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["`warmpu`", "`soon`", "none", "`speed`", "4 errors"],
    );
}

#[test]
fn check_lists_the_experiments_of_a_suite() {
    let suite = Suite::new();
    let text = fs::read_to_string(suite.write()).unwrap();
    suite.file("suite/first/experiment.yaml", &text);
    suite.file("suite/second/experiment.yaml", &text);
    suite.file("suite/second/README.md", "# Second\n\nWhat it asks.\n");
    let ended = suite.call(&["check", "suite"]);
    assert_code(&ended, 0);
    assert_holds(
        &ended.stdout,
        &[
            "first\n",
            "second: What it asks.",
            "one against two",
            "2 experiments",
        ],
    );
    let only = suite.call(&["check", "suite", "--only", "sec*"]);
    assert_holds(&only.stdout, &["second", "1 experiment,"]);
    assert!(!only.stdout.contains("first:"), "{}", only.stdout);
    let plan = suite.call(&["check", "suite", "--plan"]);
    let plan: serde_json::Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(plan["experiments"].as_array().unwrap().len(), 2);
}

#[test]
fn check_reports_looks_goals_and_time() {
    let suite = Suite::new()
        .with("pairs", "{max: 12}")
        .with("confirm", "true")
        .with("goals", "[memory, {metric: loss, primary: true}]");
    suite.write();
    let ended = suite.call(&["check", "experiment"]);
    assert_code(&ended, 0);
    assert_holds(
        &ended.stdout,
        &[
            "checks after 4, 6, 8, 10, 12;",
            "loss: lower is better, ±0.1 points; primary",
            "memory: lower is better, ±5%",
            "paired: one after the other",
            "confirmed on new pairs",
        ],
    );
    let flags = ["--fixed-pairs", "5", "--no-confirm", "--design", "duet"];
    let ended = suite.call(&[&["check", "experiment"], &flags[..]].concat());
    assert_code(&ended, 0);
    assert_holds(&ended.stdout, &["5, with one check", "duet: both at once"]);
    assert!(!ended.stdout.contains("confirmed"), "{}", ended.stdout);
}

#[test]
fn check_lists_the_cells_of_a_matrix() {
    let suite = Suite::new()
        .with("matrix", "{rate: [500/s, 1k/s]}")
        .with("rate", "\"{matrix.rate}\"");
    suite.write();
    let ended = suite.call(&["check", "experiment"]);
    assert_code(&ended, 0);
    assert_holds(
        &ended.stdout,
        &[
            "experiment_rate-500-s\n",
            "experiment_rate-1k-s\n",
            "experiment: rate 1k/s",
            "1,000 events/s",
            "2 experiments",
        ],
    );
    let item = suite.call(&["check", "experiment", "--only", "*rate-1k*"]);
    assert_holds(&item.stdout, &["1 experiment,"]);
}

#[test]
fn the_examples_are_fine() {
    let suite = Suite::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    let ended = suite.call(&["check", examples]);
    assert_code(&ended, 0);
    assert_holds(
        &ended.stdout,
        &["quickstart", "nginx", "rsyslog", "no errors"],
    );
}

#[test]
fn the_schema_is_json_and_has_the_keys() {
    let suite = Suite::new();
    let ended = suite.call(&["schema"]);
    assert_code(&ended, 0);
    assert_eq!(ended.stderr, "");
    let schema: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(schema["$schema"].is_string());
    assert_holds(&ended.stdout, &["\"workload\"", "\"operating_point\""]);
    let ended = suite.call(&["schema", "bench"]);
    assert_code(&ended, 0);
    assert_holds(&ended.stdout, &["\"is_transactional\"", "\"codec\""]);
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_runs() {
    let suite = Suite::new();
    let nowhere = suite.path("nowhere/report.md");
    let ended = suite
        .run(&["-o", &nowhere.to_string_lossy()])
        .finish(crate::suite::STOP_MAX);
    assert_code(&ended, 3);
    assert_holds(&ended.stderr, &["nowhere/report.md"]);
    let ended = suite
        .run(&["-o", "report.pdf"])
        .finish(crate::suite::STOP_MAX);
    assert_code(&ended, 2);
    assert_holds(&ended.stderr, &["report.pdf", ".html, .md, .json or .txt"]);
    assert_nothing_ran(&suite.results());
}

#[test]
fn usage_errors_exit_with_2() {
    let suite = Suite::new();
    for words in [
        &["rnu"][..],
        &["run"],
        &["run", "nowhere"],
        &["observe", "nowhere.yaml"],
        &["check", "nowhere"],
        &["report", "nowhere"],
        &["run", "experiment", "--baseline", "svn:1"],
    ] {
        let ended = suite.call(words);
        assert_code(&ended, 2);
        assert_ne!(ended.stderr, "", "{words:?}");
    }
}

#[test]
fn inputs_that_have_no_end_are_refused_and_pipes_are_read() {
    let suite = Suite::new();
    suite.file(
        "run.yaml",
        "generator: []\nblackhole: [{tcp: {binding_addr: '127.0.0.1:1'}}]\n",
    );
    let made = std::process::Command::new("mkfifo")
        .arg(suite.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    for (path, words) in [
        ("/dev/zero", "device"),
        ("pipe", "nothing writes to this pipe"),
    ] {
        let ended = suite.call(&["check", path]);
        assert_code(&ended, 2);
        assert_holds(&ended.stderr, &[words]);
    }
    let stillwell = suite.stillwell(&[]);
    let shell = format!(
        "cat run.yaml | {0} check /dev/stdin && {0} check <(cat run.yaml)",
        stillwell.get_program().display()
    );
    let mut command = suite.program("bash");
    let ended =
        stillwell_testkit::Process::start(command.args(["-c", &shell])).finish(crate::suite::LONG);
    assert_code(&ended, 0);
}
