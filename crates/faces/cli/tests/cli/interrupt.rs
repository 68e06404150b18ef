//! SIGINT, SIGTERM, SIGHUP and SIGQUIT end a run in its own order, and what is finished is kept.

use std::fs;

use stillwell_capture::RunOutcome;
use stillwell_testkit::{Process, wait_until};

use crate::suite::{LONG, STOP_MAX, Suite, assert_code, assert_holds, open};

const SIGNALS: [(&str, i32); 4] = [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)];

/// Returns true if this process, and what it starts, ignores `signal`, as under `nohup`.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    mask >> (signal - 1) & 1 == 1
}

/// The first target of the second pair never becomes ready, and its pair does not end before
/// the signal.
fn stuck_in_second_pair(suite: Suite) -> Suite {
    let is_first = suite.is_first_of_pair(2);
    let script = format!("{is_first} && exec tail -f /dev/null; exec \"$@\"");
    suite.script(&script)
}

fn wait_second_pair(suite: &Suite, run: &Process) {
    // A zero byte ends each word of a command line: the script does not have these two words.
    let is_stuck = || !suite.target_processes("tail\x00-f").is_empty();
    assert!(wait_until(LONG, is_stuck), "{}", run.stderr());
}

#[test]
fn a_run_that_is_interrupted_leaves_a_whole_capture() {
    for (name, signal) in SIGNALS {
        if is_ignored(signal) {
            continue;
        }
        // On a busy machine a target may need more than the usual two seconds to end.
        let suite = Suite::new()
            .with("stop", "{grace: 10s}")
            .with("phases", "{warmup: 200ms, measure: 60s}");
        let process = suite.observe(&[]);
        suite.wait_measuring(&suite.results());
        process.signal(name);
        let ended = process.finish(STOP_MAX);
        assert_code(&ended, 128 + signal);
        let manifest = open(&suite, &suite.results());
        assert_eq!(manifest.outcome, RunOutcome::Interrupted { signal });
        // The target got a signal to end, and did.
        assert_eq!(manifest.target.unwrap().code, Some(0));
        assert!(suite.results().join("series.parquet").exists());
        suite.assert_nothing_left();
    }
}

#[test]
fn a_run_is_interrupted_while_it_waits_for_its_target() {
    let suite = Suite::new()
        .script("sleep 300")
        .with("phases", "{ready: 60s, warmup: 200ms, measure: 1s}");
    let process = suite.observe(&[]);
    assert!(wait_until(LONG, || !suite
        .target_processes("sleep")
        .is_empty()));
    process.signal("TERM");
    assert_code(&process.finish(STOP_MAX), 143);
    open(&suite, &suite.results());
    suite.assert_nothing_left();
}

#[test]
fn an_interrupted_run_kills_a_target_that_ignores_signals() {
    let suite = Suite::new()
        .script("trap '' INT TERM; \"$@\" & wait; wait")
        .with("stop", "{grace: 500ms}")
        .with("phases", "{warmup: 200ms, measure: 60s}");
    let process = suite.observe(&[]);
    suite.wait_measuring(&suite.results());
    process.signal("INT");
    // A second signal changes nothing.
    process.signal("INT");
    assert_code(&process.finish(STOP_MAX), 130);
    let manifest = open(&suite, &suite.results());
    assert!(manifest.target.unwrap().killed);
    suite.assert_nothing_left();
}

#[test]
fn a_run_is_interrupted_in_its_probe() {
    let suite = Suite::new()
        .with("rate", "max")
        .with("operating_point", "{probe: {share: 60%, length: 60s}}");
    let run = suite.run(&[]);
    let probing = || !suite.target_processes("relay").is_empty();
    assert!(wait_until(LONG, probing), "{}", run.stderr());
    run.signal("TERM");
    let ended = run.finish(STOP_MAX);
    assert_code(&ended, 143);
    assert_holds(&ended.stdout, &["--resume", "it was not run"]);
    suite.assert_nothing_left();
}

/// The hint once had `--results` twice, which no command line may have.
#[test]
fn the_hint_after_an_interruption_can_be_typed_and_takes_over_what_is_finished() {
    let phases = "{ready: 100s, warmup: 100ms, measure: 300ms, quiet: 50ms}";
    let suite = stuck_in_second_pair(Suite::new())
        .with("phases", phases)
        .with("pairs", "2");
    let run = suite.run(&[]);
    wait_second_pair(&suite, &run);
    run.signal("INT");
    let ended = run.finish(STOP_MAX);
    let hint = ended
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("next"))
        .unwrap();
    let words: Vec<&str> = hint.split_whitespace().skip(1).collect();
    let resumed = suite.call(&words);
    assert_holds(
        &resumed.stderr,
        &["pair 1 is finished already", "pair 2 of "],
    );
    assert!(!resumed.stderr.contains("pair 1 of "), "{}", resumed.stderr);
    suite.assert_nothing_left();
}

#[test]
fn a_run_that_is_interrupted_reports_its_finished_pairs_and_how_to_go_on() {
    for (name, signal) in SIGNALS {
        if is_ignored(signal) {
            continue;
        }
        let phases = "{ready: 100s, warmup: 100ms, measure: 500ms, quiet: 50ms}";
        let suite = stuck_in_second_pair(Suite::new()).with("phases", phases);
        let run = suite.run(&[]);
        wait_second_pair(&suite, &run);
        run.signal(name);
        let ended = run.finish(STOP_MAX);
        assert_code(&ended, 128 + signal);
        assert_holds(&ended.stderr, &["pair 2 discarded: interrupted"]);
        assert_holds(
            &ended.stdout,
            &[
                "stillwell run experiment --results results --resume",
                "of 4",
            ],
        );
        for variant in ["one", "two"] {
            let manifest = open(&suite, &suite.capture_of(1, variant));
            assert_eq!(manifest.outcome, RunOutcome::Completed);
        }
        let report = fs::read_to_string(suite.results().join("report.txt")).unwrap();
        assert_holds(&report, &["--resume"]);
        suite.assert_nothing_left();
    }
}

#[test]
fn what_a_killed_run_has_started_ends_without_another_run() {
    let suite = Suite::new()
        .script("setsid sleep 300 & \"$@\"")
        .with("phases", "{warmup: 200ms, measure: 60s}");
    let process = suite.observe(&[]);
    suite.wait_measuring(&suite.results());
    assert!(!suite.target_processes("sleep").is_empty());
    process.signal("KILL");
    assert_eq!(process.finish(STOP_MAX).code, 137);
    assert!(wait_until(LONG, || suite.target_processes("").is_empty()));
    // So does its state.
    let state = || fs::read_dir(suite.path("state")).unwrap().count();
    assert!(wait_until(LONG, || state() == 0));
}
