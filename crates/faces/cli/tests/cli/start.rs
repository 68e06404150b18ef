//! Failures that keep a run from starting.

use std::net::TcpListener;
use std::time::Duration;

use stillwell_capture::RunOutcome;

use stillwell_testkit::Process;

use crate::suite::{LONG, STOP_MAX, Suite, assert_code, assert_holds, open};

const READY: Duration = Duration::from_secs(1);

#[test]
fn a_sink_whose_port_is_taken_is_named_with_what_to_do() {
    for command in ["observe", "run"] {
        let suite = Suite::new().with("isolation", "{network: no}");
        let holder = TcpListener::bind(&suite.sink).unwrap();
        let process = match command {
            "observe" => suite.observe(&[]),
            _ => suite.run(&[]),
        };
        let ended = process.finish(STOP_MAX * 2);
        assert_code(&ended, 3);
        let output = format!("{}{}", ended.stdout, ended.stderr);
        assert_holds(
            &output,
            &[
                &suite.sink,
                "it is already in use",
                "choose another address",
            ],
        );
        if command == "observe" {
            let manifest = open(&suite, &suite.results());
            assert!(matches!(manifest.outcome, RunOutcome::CouldNotStart { .. }));
        }
        suite.assert_nothing_left();
        drop(holder);
    }
}

/// The other program was taken for the target, which died, and the run was invalid.
#[test]
fn a_port_of_the_target_that_another_program_has_is_named() {
    let suite = Suite::new().with("isolation", "{network: no}");
    let holder = TcpListener::bind(&suite.listen).unwrap();
    let ended = suite.run(&[]).finish(STOP_MAX * 2);
    assert_code(&ended, 3);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert_holds(
        &output,
        &[&suite.listen, "already in use", "change the port"],
    );
    suite.assert_nothing_left();
    drop(holder);
}

#[test]
fn a_program_that_is_not_installed_is_named_before_anything_is_waited_for() {
    let suite = Suite::new().with("command", "[no-such-program-here]");
    let ended = suite.run(&[]).finish(STOP_MAX);
    assert_code(&ended, 3);
    let missing = "no program `no-such-program-here` in PATH";
    assert_holds(&ended.stderr, &[missing, "install it"]);
    assert!(!ended.stderr.contains("waiting"), "{}", ended.stderr);
    let mut check = suite.stillwell(&["check", "experiment"]);
    let checked = Process::start(&mut check).finish(STOP_MAX);
    assert_code(&checked, 0);
    assert_holds(&checked.stderr, &["warning", missing]);
    suite.assert_nothing_left();
}

/// It may be built after the check, so the file is valid.
#[test]
fn an_executable_that_is_not_there_is_a_warning_of_check() {
    let suite = Suite::new().with("command", "['{experiment}/not-built']");
    suite.write();
    let checked = suite.call(&["check", "experiment"]);
    assert_code(&checked, 0);
    assert_holds(
        &checked.stderr,
        &["warning", "not-built", "build it before the run"],
    );
}

#[test]
fn ports_that_are_taken_outside_are_free_in_the_network_of_a_run() {
    let suite = Suite::new();
    let holders = [&suite.sink, &suite.listen].map(|address| TcpListener::bind(address).unwrap());
    let ended = suite.observe(&[]).finish(LONG);
    let manifest = open(&suite, &suite.results());
    let shared = manifest
        .notes
        .iter()
        .any(|note| note.what.contains("network namespace"));
    if shared {
        assert_code(&ended, 3);
    } else {
        assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    }
    suite.assert_nothing_left();
    drop(holders);
}

#[test]
fn a_target_that_never_listens_ends_the_run_and_is_reported_with_the_awaited_condition() {
    for command in ["observe", "run"] {
        let suite = Suite::new()
            .script("echo I have other plans; sleep 300")
            .with("phases", "{ready: 1s, warmup: 200ms, measure: 1s}");
        let process = match command {
            "observe" => suite.observe(&[]),
            _ => suite.run(&[]),
        };
        // `sleep` and its shell end by SIGTERM, well before their grace is over.
        let ended = process.finish(READY + STOP_MAX);
        assert_code(&ended, 3);
        let output = format!("{}{}", ended.stdout, ended.stderr);
        assert_holds(
            &output,
            &["ready", "waited ", &suite.listen, "I have other plans"],
        );
        if command == "observe" {
            let manifest = open(&suite, &suite.results());
            assert!(matches!(manifest.outcome, RunOutcome::NeverReady { .. }));
        }
        suite.assert_nothing_left();
    }
}

#[test]
fn a_target_that_ends_before_it_is_ready_is_reported_with_its_last_lines() {
    let suite = Suite::new().script("echo no such option >&2; exit 7");
    let ended = suite.observe(&[]).finish(STOP_MAX * 2);
    assert_code(&ended, 3);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert_holds(&output, &["never ready", "no such option"]);
    let manifest = open(&suite, &suite.results());
    assert_eq!(manifest.target.unwrap().code, Some(7));
    suite.assert_nothing_left();
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let suite = Suite::new().with("command", "[no-such-program-anywhere]");
    let ended = suite.run(&[]).finish(STOP_MAX * 2);
    assert_code(&ended, 3);
    assert_holds(&ended.stderr, &["no-such-program-anywhere"]);
    suite.assert_nothing_left();
}
