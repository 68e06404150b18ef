//! Several targets under one load, from the file to the table; and tables of other tools.

use std::fs;

use serde_json::Value;
use stillwell_testkit::{Finished, Process, wait_until};

use crate::suite::{LONG, Suite, assert_nothing_ran};

/// An experiment of three relays: one that does what it should, one that drops, and
/// one that is not there.
fn three(suite: &Suite) {
    let (listen, sink) = (&suite.listen, &suite.sink);
    let relay = |more: &str| {
        format!(
            "{{command: ['{{self}}', relay, --in, 'tcp://{listen}', --out, 'tcp://{sink}'{more}], \
             version: ['{{self}}', --version], durability: memory, delivery: exactly_once}}"
        )
    };
    let text = format!(
        "description: Lines through relays.\ntargets:\n  whole: {}\n  lossy: {}\n  \
         absent: {{command: [no-such-program-here]}}\nruns: 2\n\
         phases: {{ready: 10s, warmup: 200ms, measure: 1s, drain: 10s, quiet: 300ms}}\n\
         workload:\n  generators:\n    - {{tcp: '{listen}', payload: syslog5424, cache: 1 MiB, \
         rate: 500/s, stamps: all}}\n  sinks: [{{tcp: '{sink}'}}]\n",
        relay(""),
        relay(", --drop, 1/100")
    );
    suite.file("several/experiment.yaml", &text);
}

fn run(suite: &Suite, words: &[&str]) -> Finished {
    Process::start(&mut suite.stillwell(words)).finish(LONG)
}

fn json(suite: &Suite, file: &str) -> Value {
    serde_json::from_slice(&fs::read(suite.path(file)).unwrap()).unwrap()
}

#[test]
fn several_targets_run_in_blocks_and_end_in_one_table() {
    let suite = Suite::new();
    three(&suite);
    let ended = run(&suite, &["run", "several", "--results", "results"]);
    // A target that claims exactly-once delivery and drops has failed, even on a busy machine.
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let output = "skipped: absent: there is no program `no-such-program-here` in PATH";
    assert!(ended.stderr.contains(output), "{}", ended.stderr);
    for expected in [
        "IO thrpt, received",
        "delivery seen",
        "whole = stillwell",
        "lossy: of ",
    ] {
        assert!(
            ended.stdout.contains(expected),
            "{expected}: {}",
            ended.stdout
        );
    }
    for block in ["pair-001", "pair-002"] {
        for target in ["whole", "lossy"] {
            let folder = format!("results/several/{block}/{target}/summary.json");
            assert!(suite.path(&folder).is_file(), "{folder}");
        }
    }
    let report = json(&suite, "results/report.json");
    let targets = report["experiments"][0]["targets"].as_array().unwrap();
    let delivery: Vec<&Value> = targets.iter().map(|item| &item["delivery"]).collect();
    assert_eq!(
        (delivery[0]["kept"].as_bool(), &delivery[0]["lost"]),
        (Some(true), &0.into())
    );
    assert_eq!(delivery[1]["kept"].as_bool(), Some(false));
    let lost = delivery[1]["lost"].as_u64().unwrap();
    let sent = delivery[1]["sent"].as_u64().unwrap();
    // One in a hundred of each run's events, counted by the relay from the first on.
    assert!(
        (sent / 100 - 1..=sent / 100).contains(&lost),
        "{lost} of {sent}"
    );
    // Judged again from what was kept.
    let again = run(&suite, &["report", "results", "--format", "markdown"]);
    assert_eq!(again.code, 1, "{}", again.stderr);
    assert!(again.stdout.contains("| fail |"), "{}", again.stdout);
    // Nothing is left to be run.
    let resumed = run(
        &suite,
        &["run", "several", "--results", "results", "--resume"],
    );
    assert_eq!(resumed.code, 1, "{}", resumed.stderr);
    let twice = run(&suite, &["run", "several", "--results", "results"]);
    assert_eq!(twice.code, 2, "{}", twice.stderr);
}

#[test]
fn a_step_that_kills_targets_gives_a_row_of_how_long_they_took_to_deliver_again() {
    let suite = Suite::new();
    three(&suite);
    let file = "several/experiment.yaml";
    let text = fs::read_to_string(suite.path(file)).unwrap();
    // On a busy machine a start takes a while, and only what arrives after it counts.
    let text = text.replace("ready: 10s", "ready: 60s");
    let text = text.replace("measure: 1s", "measure: 4s");
    let steps = "timeline: [{at: 300ms, target: {restart: {signal: KILL, after: 200ms}}}]\n";
    suite.file(file, &(text + steps));
    let words = ["run", "several", "--runs", "1", "--results", "results"];
    let ended = run(&suite, &words);
    assert!(
        ended.stdout.contains("Restart recovery"),
        "{}",
        ended.stdout
    );
    let report = json(&suite, "results/report.json");
    let rows = report["experiments"][0]["metrics"].as_array().unwrap();
    let row = rows.iter().find(|row| row["metric"] == "recovery").unwrap();
    for cell in row["cells"].as_array().unwrap() {
        // On a busy machine the number is present and marked as unreliable.
        let mean = cell["mean"]
            .as_f64()
            .or_else(|| cell["unreliable_mean"].as_f64());
        // It was absent for that time.
        assert!(mean.unwrap() >= 0.2, "{row}");
    }
}

/// The version that was not read was recorded, and `--resume` refused it as changed.
#[test]
fn a_signal_while_versions_are_read_leaves_no_results() {
    let suite = Suite::new();
    three(&suite);
    let (file, mark) = ("several/experiment.yaml", suite.path("mark"));
    let text = fs::read_to_string(suite.path(file)).unwrap();
    let script = format!("touch {}; exec tail -f /dev/null", mark.display());
    let version = format!("version: [sh, -c, '{script}']");
    suite.file(
        file,
        &text.replace("version: ['{self}', --version]", &version),
    );
    let words = ["run", "several", "--results", "results"];
    let process = Process::start(&mut suite.stillwell(&words));
    assert!(wait_until(LONG, || mark.exists()), "{}", process.stderr());
    process.signal("TERM");
    let ended = process.finish(LONG);
    assert_eq!(ended.code, 143, "{}{}", ended.stdout, ended.stderr);
    let message = "interrupted before the first run; to continue: stillwell run ";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
    assert!(!suite.path("results").exists());
}

#[test]
fn impossible_plans_are_refused_before_anything_runs() {
    let suite = Suite::new();
    three(&suite);
    for (words, code, expected) in [
        (
            &["--targets", "absent"][..],
            3,
            "target `absent` is not installed",
        ),
        (&["--targets", "whol"], 2, "did you mean `whole`?"),
        (&["--pairs", "4"], 2, "`--pairs` is for variants"),
        (&["--runs", "0"], 2, "from 1 to 200"),
    ] {
        let words = [&["run", "several", "--results", "results"], words].concat();
        let ended = run(&suite, &words);
        assert_eq!(ended.code, code, "{words:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(expected),
            "{expected}: {}",
            ended.stderr
        );
        assert_nothing_ran(&suite.path("results"));
    }
    let checked = run(&suite, &["check", "several"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(
        checked.stdout.contains("2 of each, in blocks"),
        "{}",
        checked.stdout
    );
}

// compat: Vector's test harness | tables of bin/compare, with winners and versions | works
#[test]
fn tables_of_others_are_held_against_themselves() {
    let suite = Suite::new();
    let table = "# Disk buffers\n\n| Metric | ash | birch |\n| --- | --- | --- |\n\
                 | Disk writ (sum) | 2MiB W | 3MiB |\n| Net recv (sum) | 1GiB | 2GiB |\n\nW = winner\nash = 7.1.1\n";
    suite.file("table.md", table);
    let ended = run(&suite, &["import", "table.md", "--output", "told.json"]);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    assert!(
        ended
            .stdout
            .contains("INVALID all: this is a test of buffers on disk"),
        "{}",
        ended.stdout
    );
    assert_eq!(json(&suite, "told.json")["tables"][0]["is_valid"], false);
    for kept in ["2MiB W", "W = winner", "ash = 7.1.1"] {
        assert!(ended.stdout.contains(kept), "{kept}: {}", ended.stdout);
    }
    suite.file("table.md", "no table here\n");
    let ended = run(&suite, &["import", "table.md"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("there is no table"),
        "{}",
        ended.stderr
    );
    let csv = "\"Dstat 0.7.2 CSV output\"\n\n\"epoch\",\"dsk/total\",,\"net/total\",\n\
               \"epoch\",\"read\",\"writ\",\"recv\",\"send\"\n1,0,9e9,0,0\n2,0,1048576,0,0\n3,0,0,1048576,0\n";
    suite.file("run.csv", csv);
    let ended = run(&suite, &["import", "run.csv"]);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    let row = ended
        .stdout
        .lines()
        .find(|line| line.contains("Disk writ (sum)"));
    assert!(
        row.is_some_and(|row| row.contains("1.0MiB")),
        "{}",
        ended.stdout
    );
}

/// The limit of 256 MiB was announced, and that of configurations held.
#[test]
fn a_table_is_imported_from_a_file_larger_than_a_configuration() {
    let suite = Suite::new();
    let line = format!("{}\n", "x".repeat(1023));
    let text = line.repeat(17 * 1024);
    let table = "| Metric | ash | birch |\n| --- | --- | --- |\n| Net recv (sum) | 1GiB | 2GiB |\n";
    suite.file("table.md", &format!("{text}\n{table}"));
    let ended = run(&suite, &["import", "table.md"]);
    assert!(ended.stdout.contains("2GiB"), "{}", ended.stderr);
}
