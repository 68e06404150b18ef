//! The wrapper that makes a command worse: it ends as the command does, passes
//! signals on, and takes the command with it.

use std::fs;
use std::path::Path;
use std::process::Command;

use stillwell_testkit::{Process, wait_until};

use crate::suite::{LONG, STILLWELL};

fn slow_down(how: &str, command: &[&str]) -> Process {
    let mut words = vec!["disturb", how, "5%", "--"];
    words.extend(command);
    Process::start(Command::new(STILLWELL).args(words))
}

/// The number that the command wrote into `file`.
fn number_in(file: &Path) -> String {
    let mut number = String::new();
    let is_there = wait_until(LONG, || {
        number = fs::read_to_string(file).unwrap_or_default();
        number.ends_with('\n')
    });
    assert!(is_there, "the command did not start");
    number.trim().to_owned()
}

#[test]
fn it_ends_as_its_command_does() {
    for how in ["--burn", "--pause"] {
        let finished = slow_down(how, &["sh", "-c", "echo out; echo err >&2; exit 7"]).finish(LONG);
        assert_eq!(finished.code, 7, "{}", finished.stderr);
        assert_eq!(
            (finished.stdout.as_str(), finished.stderr.as_str()),
            ("out\n", "err\n")
        );
    }
    let finished = slow_down("--burn", &["sh", "-c", "kill -TERM $$"]).finish(LONG);
    assert_eq!(finished.code, 143, "{}", finished.stderr);
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let finished = slow_down("--burn", &["/nowhere/at-all"]).finish(LONG);
    assert_eq!(finished.code, 3);
    assert!(
        finished.stderr.contains("run /nowhere/at-all"),
        "{}",
        finished.stderr
    );
}

#[test]
fn signals_are_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    for (signal, how) in [("TERM", "--pause"), ("USR2", "--burn"), ("USR1", "--burn")] {
        let file = folder.path().join(signal);
        let script = format!(
            "trap 'exit 9' {signal}; echo $$ > {}; while :; do sleep 0.02; done",
            file.display()
        );
        let process = slow_down(how, &["sh", "-c", &script]);
        number_in(&file);
        process.signal(signal);
        let finished = process.finish(LONG);
        assert_eq!(finished.code, 9, "{signal}: {}", finished.stderr);
    }
}

#[test]
fn the_command_dies_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("number");
    let script = format!("echo $$ > {}; exec sleep 600", file.display());
    let process = slow_down("--burn", &["sh", "-c", &script]);
    let number = number_in(&file);
    let is_alive = || {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.contains("(sleep)") && !stat.contains(") Z ")
    };
    assert!(wait_until(LONG, is_alive));
    process.signal("KILL");
    assert!(wait_until(LONG, || !is_alive()), "it outlived its wrapper");
}
