//! Programs that look at the target: lading's `inspector`.

use std::fs;
use std::process::Command;

use stillwell_testkit::{Finished, Process};

use crate::lading_name::called;
use crate::suite::{LONG, STILLWELL, Suite, assert_code, assert_holds};

const SEED: &str = "[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5]";

/// Writes down whom it looks at, and at its end whether that is still there.
const LOOKS: &str = "trap 'kill -0 $TARGET_PID && echo still there; exit 0' TERM; \
                     echo looks at $TARGET_PID $COLOUR; while :; do sleep 0.05; done";

/// A load that goes through a relay, and the inspector that `inspector` says.
fn write(suite: &Suite, inspector: &str) {
    let (input, output) = (&suite.listen, &suite.sink);
    let text = format!(
        "generator:\n  - tcp:\n      seed: {SEED}\n      addr: \"{input}\"\n      variant: syslog5424\n      \
         bytes_per_second: \"1 MiB\"\n      maximum_prebuild_cache_size_bytes: \"2 MiB\"\n\
         blackhole:\n  - tcp:\n      binding_addr: \"{output}\"\ninspector:\n{inspector}"
    );
    suite.file("lading.yaml", &text);
}

fn shell(words: &str) -> String {
    format!("  command: /bin/sh\n  arguments: [\"-c\", \"{words}\"]\n")
}

/// Runs `command` with a relay behind its words.
fn around_a_relay(suite: &Suite, command: &mut Command) -> Finished {
    let (input, output) = (
        format!("tcp://{}", suite.listen),
        format!("tcp://{}", suite.sink),
    );
    command.args(["--", STILLWELL, "relay", "--in", &input, "--out", &output]);
    Process::start(command).finish(LONG)
}

fn observe(suite: &Suite) -> Finished {
    let words = ["observe", "lading.yaml", "--results", "results"];
    let mut command = suite.stillwell(&words);
    // On a busy machine a shell needs a while until its trap is set.
    command.args(["--warmup", "200ms", "--measure", "6s"]);
    around_a_relay(suite, &mut command)
}

fn events(suite: &Suite) -> String {
    fs::read_to_string(suite.results().join("events.jsonl")).unwrap()
}

#[test]
fn an_inspector_gets_the_process_of_the_target_and_ends_before_it() {
    let suite = Suite::new();
    let entry =
        "  environment_variables: {COLOUR: green}\n  output: {stdout: own.log, stderr: null}\n";
    write(&suite, &format!("{}{entry}", shell(LOOKS)));
    let ended = observe(&suite);
    assert!(matches!(ended.code, 0 | 4), "{}", ended.stderr);
    let log_text = fs::read_to_string(suite.path("own.log")).unwrap();
    let mut lines = log_text.lines();
    let looked: Vec<&str> = lines.next().unwrap().split(' ').collect();
    let ["looks", "at", pid, "green"] = looked.as_slice() else {
        panic!("{log_text}");
    };
    assert!(pid.parse::<u32>().unwrap() > 1, "{log_text}");
    assert_eq!(lines.next(), Some("still there"));
    assert_holds(&events(&suite), &["the inspector runs as process"]);
    assert!(suite.results().join("inspector.stderr.log").exists());
    suite.assert_nothing_left();
}

#[test]
fn an_inspector_that_fails_is_reported_and_the_run_goes_on() {
    let suite = Suite::new();
    write(&suite, &shell("echo there is no perf here >&2; exit 7"));
    let ended = observe(&suite);
    assert!(matches!(ended.code, 0 | 4), "{}", ended.stderr);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    let what = "the inspector ended: exit code 7: there is no perf here";
    assert_holds(&output, &[what]);
    assert_holds(&events(&suite), &["the inspector ended: exit code 7"]);
    suite.assert_nothing_left();
}

#[test]
fn an_inspector_that_is_not_there_is_named_and_nothing_is_left() {
    let suite = Suite::new();
    write(&suite, "  command: /no/such/inspector\n");
    let ended = observe(&suite);
    assert_code(&ended, 3);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert_holds(&output, &["start the inspector", "/no/such/inspector"]);
    suite.assert_nothing_left();
}

/// The run would have waited for it until it was killed.
#[test]
fn an_inspector_that_ignores_sigterm_is_killed_and_reported() {
    let suite = Suite::new();
    write(&suite, &shell("trap '' TERM; while :; do sleep 0.05; done"));
    let ended = observe(&suite);
    assert!(matches!(ended.code, 0 | 4), "{}", ended.stderr);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert_holds(
        &output,
        &["the inspector did not end within 5s and was killed"],
    );
    suite.assert_nothing_left();
}

// compat: lading, command line | --disable-inspector | works
// compat: lading, command line | --no-target | works
#[test]
fn called_as_lading_an_inspector_may_be_left_out_and_may_have_no_target() {
    let suite = Suite::new();
    write(
        &suite,
        &format!(
            "{}  output: {{stdout: own.log}}\n",
            shell("echo none $NO_TARGET")
        ),
    );
    let run = |seconds: &str, words: &[&str]| {
        let lengths = [
            "--warmup-duration-seconds",
            "0",
            "--experiment-duration-seconds",
            seconds,
        ];
        let mut command = called(&suite, "lading");
        command.args([
            "--config-path",
            "lading.yaml",
            "--no-target",
            "--capture-path",
            "c.jsonl",
        ]);
        Process::start(command.args(lengths).args(words)).finish(LONG)
    };
    let ended = run("1", &["--disable-inspector"]);
    assert!(!suite.path("own.log").exists(), "{}", ended.stderr);
    // On a busy machine a shell needs a while.
    let ended = run("6", &[]);
    let log_text = fs::read_to_string(suite.path("own.log"));
    assert_eq!(log_text.unwrap_or_default(), "none 1\n", "{}", ended.stderr);
}
