//! A tree of benches: tags, contents before and after, conditions, asserts.

use std::fs;

use serde_json::Value;
use stillwell_testkit::{Finished, Process};

use crate::suite::{LONG, STILLWELL, STOP_MAX, Suite, assert_code, assert_holds};

/// A tree with one bench that passes, one whose assert fails and one that is not
/// selected.
fn tree(suite: &Suite) {
    suite.file("tree/tags.yaml", "[bench]\n");
    for (name, more) in [("passes", ""), ("fails", "")] {
        let (listen, sink) = (&suite.listen, &suite.sink);
        suite.file(&format!("tree/{name}/in.json"), "{\"a\":1}\n{\"a\":2}\n");
        let text = format!(
            "target:\n  command: [\"{{self}}\", relay, --in, \"tcp://{listen}\", --out, \"tcp://{sink}\"]\n\
             in: tcp://{listen}\nout: tcp://{sink}\nsource: in.json\niters: 5\n{more}"
        );
        suite.file(&format!("tree/{name}/bench.yaml"), &text);
    }
    suite.file("tree/passes/tags.yaml", "[quick]\n");
    suite.file("tree/passes/env.yaml", "MARKED: by-the-bench\n");
    suite.file(
        "tree/passes/before.yaml",
        "- cmd: sh\n  args: [-c, \"echo $MARKED in $PWD; touch ready; sleep 60\"]\n  await: {file-exists: \
         [ready]}\n  max-await-secs: 30\n- cmd: \"true\"\n  await: {status: 0}\n",
    );
    suite.file(
        "tree/passes/after.yaml",
        "- {cmd: sh, args: [-c, \"rm ready; echo cleaned\"]}\n",
    );
    suite.file(
        "tree/passes/assert.yaml",
        "status: 0\nasserts:\n  - {source: stdout, contains: [Throughput, inf], doesnt_contain: panic}\n  \
         - {source: before.out.0.log, contains: by-the-bench}\nfigures:\n  count: 10\n  \
         ledger.generators.0.lost: 0\n  throughput.events_per_second: {min: 0.001}\n",
    );
    suite.file("tree/fails/assert.yaml", "figures: {count: {min: 11}}\n");
    suite.file("tree/slow/tags.yaml", "[slow]\n");
    suite.file("tree/slow/bench.yaml", "never read\n");
}

fn run(suite: &Suite, words: &[&str]) -> (Finished, Value) {
    let words = [
        &[
            "test",
            "bench",
            "tree",
            "--results",
            "results",
            "-o",
            "report.json",
        ],
        words,
    ];
    let mut command = suite.stillwell(&words.concat());
    let ended = Process::start(&mut command).finish(LONG);
    let report = fs::read_to_string(suite.path("report.json")).unwrap_or_default();
    (ended, serde_json::from_str(&report).unwrap_or_default())
}

// compat: Tremor | tremor test bench | works
#[test]
fn a_tree_is_run_and_held_against_its_asserts() {
    let suite = Suite::new();
    tree(&suite);
    let (ended, report) = run(&suite, &["--excludes", "slow"]);
    assert_code(&ended, 1);
    assert_holds(
        &ended.stdout,
        &[
            "Benchmark: Running passes\n    Tags: bench quick passes\n",
            "FAIL  count is at least 11: it is 10",
            "ok    count is 10",
            "All Benchmark Stats: Pass 1 Fail 1 Skip 1 Asserts 10",
            "Total Elapsed: ",
        ],
    );
    let stats = &report["stats"]["bench"];
    assert_eq!(
        (&stats["pass"], &stats["fail"], &stats["skip"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert_eq!(stats["failed_test_names"], serde_json::json!(["fails"]));
    assert_eq!(report["excludes"], serde_json::json!(["slow"]));
    let passes = &report["reports"]["bench"][1]["elements"]["bench"];
    assert_eq!(passes["figures"]["count"], 10);
    let evidence = passes["evidence"].as_object().unwrap();
    assert_holds(evidence["test: stdout"].as_str().unwrap(), &["Throughput"]);
    assert_holds(
        evidence["before 0: stdout"].as_str().unwrap(),
        &["by-the-bench in"],
    );
    assert_eq!(evidence["after 0: stdout"], "cleaned\n");
    // What was started before it has ended, and what came after it has been.
    assert!(!suite.path("tree/passes/ready").exists());
    suite.assert_no_process(STOP_MAX);
    assert!(
        suite
            .results()
            .join("passes/capture/manifest.json")
            .exists()
    );
}

#[test]
fn only_what_is_included_runs() {
    let suite = Suite::new();
    tree(&suite);
    let (ended, report) = run(&suite, &["--includes", "quick"]);
    assert_code(&ended, 0);
    assert_eq!(report["stats"]["all"]["skip"], 2);
    assert_eq!(report["reports"]["bench"].as_array().unwrap().len(), 1);
}

#[test]
fn variables_of_the_tree_are_those_of_the_target_unless_its_file_sets_them() {
    let suite = Suite::new();
    let (listen, sink) = (&suite.listen, &suite.sink);
    suite.file("tree/one/in.json", "{\"a\":1}\n");
    suite.file("tree/one/env.yaml", "MARKED: by-the-tree\nSHAPE: square\n");
    let text = format!(
        "target:\n  command: [sh, -c, 'echo $MARKED $SHAPE > {}; exec \"$@\"', sh, {STILLWELL}, relay, --in, \
         \"tcp://{listen}\", --out, \"tcp://{sink}\"]\n  environment: {{SHAPE: round}}\n\
         in: tcp://{listen}\nout: tcp://{sink}\nsource: in.json\niters: 1\n",
        suite.path("seen").display()
    );
    suite.file("tree/one/bench.yaml", &text);
    let (ended, _) = run(&suite, &[]);
    assert_code(&ended, 0);
    let seen = fs::read_to_string(suite.path("seen")).unwrap();
    assert_eq!(seen, "by-the-tree round\n");
}

#[test]
fn a_bench_without_a_report_has_no_figures() {
    let suite = Suite::new();
    suite.file("tree/bad/bench.yaml", "nonsense: 1\n");
    suite.file("tree/bad/assert.yaml", "status: 2\nfigures: {count: 1}\n");
    // The report of an earlier test with the same folder of results.
    suite.file("results/bad/report.json", "{\"count\": 1}\n");
    let (ended, report) = run(&suite, &[]);
    assert_code(&ended, 1);
    assert_holds(&ended.stdout, &["ok    status is 2", "FAIL  count is 1: "]);
    let bench = &report["reports"]["bench"][0]["elements"]["bench"];
    assert_eq!(bench["figures"], Value::Null);
}

#[test]
fn a_report_that_cannot_be_written_changes_only_the_exit_code_of_success() {
    let suite = Suite::new();
    suite.file("tree/bad/bench.yaml", "nonsense: 1\n");
    std::os::unix::fs::symlink("/dev/full", suite.path("full.json")).unwrap();
    // The bench itself ends with 2: it fails, or is as its assert says.
    for (status, code) in [(0, 1), (2, 4)] {
        suite.file("tree/bad/assert.yaml", &format!("status: {status}\n"));
        for output in ["full.json", "report.json >/dev/full"] {
            let line = format!("exec \"$0\" test bench tree --results results -o {output}");
            let mut command = suite.program("sh");
            let ended = Process::start(command.args(["-c", &line, STILLWELL])).finish(LONG);
            assert_code(&ended, code);
            assert_holds(&ended.stderr, &["No space left on device"]);
        }
        let report = fs::read_to_string(suite.path("report.json")).unwrap();
        assert_holds(&report, &["\"bad\""]);
        fs::remove_file(suite.path("report.json")).unwrap();
    }
}

#[test]
fn what_does_not_come_true_and_what_takes_too_long_fails() {
    let suite = Suite::new();
    suite.file("tree/waits/bench.yaml", "never read\n");
    suite.file(
        "tree/waits/before.yaml",
        "{cmd: sleep, args: [60], await: {file-exists: nowhere}, max-await-secs: 0}\n",
    );
    suite.file(
        "tree/waits/after.yaml",
        "{cmd: sleep, args: [60], max-await-secs: 0}\n",
    );
    suite.file("tree/hangs/in.json", "{}\n");
    let (listen, sink) = (&suite.listen, &suite.sink);
    let text = format!(
        "target:\n  command: [{STILLWELL}, relay, --in, \"tcp://{listen}\", --out, \"tcp://{sink}\"]\n\
         in: tcp://{listen}\nout: tcp://{sink}\nsource: in.json\nstop_after_secs: 600\n"
    );
    suite.file("tree/hangs/bench.yaml", &text);
    let (ended, report) = run(&suite, &["--timeout", "2s"]);
    assert_code(&ended, 1);
    assert_holds(
        &ended.stdout,
        &[
            "FAIL  time limit: it took longer than 2s",
            "FAIL  before: ",
            "nowhere exists (last attempt: No such file",
            "FAIL  after: `sleep 60` took longer than ",
        ],
    );
    assert_eq!(report["stats"]["all"]["fail"], 2);
    suite.assert_no_process(STOP_MAX);
}

#[test]
fn a_tree_without_benches_is_refused() {
    let suite = Suite::new();
    suite.file("tree/readme.md", "nothing here\n");
    let (ended, _) = run(&suite, &[]);
    assert_code(&ended, 2);
    assert_holds(&ended.stderr, &["there is no bench at or below"]);
}

/// The benchmark of Tremor's documentation, with an end of its own.
const PROGRAM: &str = r#"define flow main
flow
use tremor::connectors;
define connector bench from bench
with
codec = "json",
config = {
"source": "in.json",
"iters": 500
}
end;
create connector bench;
define pipeline bench_me
pipeline
# no logic
select event from in into out;
end;
create pipeline bench_me;
connect /connector/bench to /pipeline/bench_me;
connect /pipeline/bench_me to /connector/bench;
end;
deploy flow main;
"#;

// compat: Tremor | tremor test bench with .troy programs | works
#[test]
fn called_as_tremor_it_runs_the_documented_program_in_a_tree_and_by_itself() {
    let suite = Suite::new();
    suite.file("bench/config.troy", PROGRAM);
    suite.file("bench/in.json", "{\"number\":1}\n{\"number\":2}\n");
    suite.file("bench/assert.yaml", "figures: {count: 1000}\n");
    let tremor = suite.path("tremor");
    std::os::unix::fs::symlink(STILLWELL, &tremor).unwrap();
    let call = |words: &[&str]| {
        let mut command = std::process::Command::new(&tremor);
        command.args(words).current_dir(suite.path("bench"));
        Process::start(&mut command).finish(LONG)
    };
    let ended = call(&["test", "bench", ".", "-v"]);
    assert_code(&ended, 0);
    assert_holds(
        &ended.stdout,
        &[
            "Benchmark: Running bench",
            "    Tags: bench",
            "Total count    =         1000",
            "Pass 1 Fail 0",
        ],
    );
    let ended = call(&["server", "run", "--debug-connectors", "config.troy"]);
    assert_code(&ended, 0);
    assert_holds(&ended.stdout, &["Total count    =         1000"]);
    assert_holds(&ended.stderr, &["events pass through `stillwell relay`"]);
    let ended = call(&["server", "run", "config.troy"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["unknown connector type bench", "--debug-connectors"],
    );
}
