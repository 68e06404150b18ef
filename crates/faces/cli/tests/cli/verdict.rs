//! Verdicts of a run: exit codes, and reports in files.

use std::fs;

use stillwell_testkit::free_port;

use crate::suite::{LONG, Suite, assert_code, assert_holds, is_disturbed};

const SHORT: &str = "{warmup: 200ms, measure: 500ms, quiet: 50ms}";

#[test]
fn far_more_cpu_per_event_is_a_regression() {
    let suite = Suite::alone()
        .with("rate", "8k/s")
        .with("goals", "[cpu_per_event]")
        .with("pairs", "6")
        .with("phases", "{warmup: 200ms, measure: 1300ms, quiet: 50ms}")
        .with(
            "variants",
            "{baseline: {arguments: [--work-per-event, 40us]}, \
             comparison: {arguments: [--work-per-event, 90us]}}",
        );
    let ended = suite
        .run(&["-o", "report.md", "-o", "report.json", "-o", "report.html"])
        .finish(LONG);
    if is_disturbed("far_more_cpu_per_event_is_a_regression", &ended) {
        return;
    }
    assert_code(&ended, 1);
    assert_holds(&ended.stdout, &["regressed", "CPU per event"]);
    assert_holds(&read(&suite, "report.md"), &["regressed"]);
    let page = read(&suite, "report.html");
    assert_holds(
        &page,
        &[
            "<!DOCTYPE html>",
            "<svg class=\"pairs\"",
            "regressed",
            "<svg class=\"curve\"",
            "CPU cores used by the target over time",
            "How certain this result is",
        ],
    );
    let report: serde_json::Value = serde_json::from_str(&read(&suite, "report.json")).unwrap();
    assert!(report["schema"].is_string());
    assert_holds(&report.to_string(), &["\"regressed\""]);

    // What is kept says the same, in any format.
    let again = suite.call(&["report", "results", "--format", "markdown"]);
    assert_code(&again, 1);
    assert_holds(&again.stdout, &["regressed"]);
    assert_code(&suite.call(&["report", "results", "--exit-zero"]), 0);
    suite.assert_nothing_left();
}

#[test]
fn memory_that_is_hoarded_ranks_among_the_first_three_of_what_else_moved() {
    let metrics = format!("127.0.0.1:{}", free_port());
    let scraped = format!("{{prometheus: [{{url: \"http://{metrics}/metrics\"}}]}}");
    let suite = Suite::alone()
        .relay(&["--metrics", &metrics])
        .with("rate", "8k/s")
        .with("goals", "[memory]")
        .with("pairs", "6")
        .with("phases", "{warmup: 200ms, measure: 1300ms, quiet: 50ms}")
        .with("observe", &scraped)
        .with(
            "variants",
            "{baseline: {}, comparison: {arguments: [--hoard-per-event, 2KiB]}}",
        );
    let ended = suite.run(&["-o", "report.json"]).finish(LONG);
    let name = "memory_that_is_hoarded_ranks_among_the_first_three_of_what_else_moved";
    if is_disturbed(name, &ended) {
        return;
    }
    assert_code(&ended, 1);
    assert_holds(&ended.stdout, &["regressed", "memory", "hoard_bytes"]);
    let report: serde_json::Value = serde_json::from_str(&read(&suite, "report.json")).unwrap();
    let moved = report["experiments"][0]["moved"].as_array().unwrap();
    let mut first = moved
        .iter()
        .take(3)
        .map(|entry| entry["series"].to_string());
    assert!(
        first.any(|series| series.contains("hoard_bytes")),
        "{moved:#?}"
    );
}

#[test]
fn a_failed_check_is_named_and_exits_with_1_unless_disabled() {
    let check = "[{name: tiny, series: total_rss_bytes, upper_bound: 1 KiB}]";
    let suite = Suite::new()
        .with("phases", SHORT)
        .with("pairs", "1")
        .with("checks", check);
    let ended = suite
        .run(&["-o", "report.md", "-o", "report.json"])
        .finish(LONG);
    assert_code(&ended, 1);
    assert_holds(&ended.stdout, &["tiny"]);
    assert_holds(&read(&suite, "report.md"), &["tiny"]);
    assert_holds(&read(&suite, "report.json"), &["tiny"]);

    let words = [
        "run",
        "experiment",
        "--results",
        "other",
        "--exit-zero",
        "--quiet",
    ];
    let ended = suite.call(&words);
    assert_code(&ended, 0);
    assert_eq!(ended.stderr, "", "quiet is quiet");
    assert_holds(&ended.stdout, &["tiny"]);
    suite.assert_nothing_left();
}

#[test]
fn a_check_of_a_run_that_fails_exits_with_1() {
    let check = "[{name: tiny, series: total_rss_bytes, upper_bound: 1 KiB}]";
    let suite = Suite::new().with("phases", SHORT).with("checks", check);
    let ended = suite.observe(&[]).finish(LONG);
    assert_code(&ended, 1);
    assert_holds(&ended.stdout, &["tiny"]);
}

fn read(suite: &Suite, name: &str) -> String {
    fs::read_to_string(suite.path(name)).unwrap()
}

/// A light load was mentioned after each pair.
#[test]
fn progress_mentions_a_light_load_once() {
    let suite = Suite::new()
        .with("rate", "500/s")
        .with("goals", "[cpu_per_event]")
        .with("validity", "off")
        .with("phases", SHORT);
    let ended = suite.run(&["--exit-zero"]).finish(LONG);
    assert_code(&ended, 0);
    let count = |text: &str| ended.stderr.matches(text).count();
    assert!(count("so far, after ") > 1, "{}", ended.stderr);
    assert_eq!(count("light load"), 1, "{}", ended.stderr);
    suite.assert_nothing_left();
}

/// A machine with a counter judges by it. One without judges by the next goal, and both say what decides.
#[test]
fn instructions_are_judged_or_skipped_by_name() {
    let suite = Suite::new()
        .with("rate", "2k/s")
        .with("goals", "[instructions_per_event, cpu_per_event]")
        .with("validity", "off")
        .with("pairs", "6")
        .with("phases", SHORT);
    suite.write();
    let checked = suite.call(&["check", "experiment"]);
    assert_code(&checked, 0);
    let ended = suite
        .run(&["--exit-zero", "-o", "report.json"])
        .finish(LONG);
    assert_code(&ended, 0);
    let report: serde_json::Value = serde_json::from_str(&read(&suite, "report.json")).unwrap();
    let experiment = &report["experiments"][0];
    let primary = &experiment["goals"][0];
    assert_eq!(primary["primary"], true);
    if are_instructions_counted(&checked.stderr) {
        assert_eq!(primary["metric"], "instructions_per_event");
        assert_eq!(experiment["skipped"], serde_json::json!([]));
    } else {
        assert_eq!(primary["metric"], "cpu_per_event");
        let skipped = &experiment["skipped"][0];
        assert_eq!(skipped["metric"], "instructions_per_event");
        let reason = skipped["reason"].as_str().unwrap();
        for text in [&checked.stderr, &ended.stderr] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let line = format!("instructions_per_event is skipped: {reason}");
            assert_holds(&text, &[&line, "cpu_per_event decides instead"]);
        }
        assert_holds(&ended.stdout, &["instructions per event skipped"]);
    }
    let goals = experiment["goals"].as_array().unwrap();
    assert!(goals.iter().all(|goal| goal["verdict"] != "invalid"));
    suite.assert_nothing_left();
}

/// True if `check` has no reason why instructions are not counted.
fn are_instructions_counted(messages: &str) -> bool {
    !messages.contains("is skipped")
}
