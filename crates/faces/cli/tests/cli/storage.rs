//! A results folder that takes no more: a small file system of the test's own,
//! in a mount namespace of its own, filled from outside at the right moment.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use stillwell_capture::RunOutcome;
use stillwell_testkit::{Process, wait_until};

use crate::suite::{LONG, STILLWELL, STOP_MAX, Suite, assert_code, assert_holds, open};

/// Mounts `results`, says so, runs the rest, and saves what lies there.
const SCRIPT: &str = "mount -t tmpfs -o size=8m none results && touch mounted && \"$@\"; \
     code=$?; cp -a results/. saved; exit $code";

/// The option of `unshare` that lets this process mount: a mount namespace, for
/// all but root within a user namespace. Where neither does, says that `test` is
/// skipped.
fn namespace(test: &str) -> Option<&'static str> {
    let result = ["-m", "-rm"].into_iter().find(|option| {
        let script = "mount -t tmpfs none /mnt";
        let tried = Command::new("unshare")
            .args([option, "sh", "-c", script])
            .output();
        tried.is_ok_and(|output| output.status.success())
    });
    if result.is_none() {
        println!("SKIPPED: {test}: a mount namespace is not permitted");
    }
    result
}

/// `stillwell` with its results on the small file system.
fn start(suite: &Suite, namespace: &str, words: &[&str]) -> Process {
    suite.write();
    for folder in ["results", "saved"] {
        fs::create_dir(suite.path(folder)).unwrap();
    }
    let mut command = suite.program("unshare");
    command
        .args([namespace, "sh", "-c", SCRIPT, "sh", STILLWELL])
        .args(words);
    Process::start(&mut command)
}

/// The results folder as the process sees it.
fn inside(suite: &Suite, process: &Process) -> PathBuf {
    assert!(
        wait_until(LONG, || suite.path("mounted").exists()),
        "{}",
        process.stderr()
    );
    let folder = suite.results();
    let below = folder.strip_prefix("/").unwrap();
    Path::new(&format!("/proc/{}/root", process.id())).join(below)
}

/// Writes until there is no room for a single byte more.
fn fill(folder: &Path) {
    let mut file = fs::File::create(folder.join("filler")).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[test]
fn a_run_whose_disk_is_full_in_the_middle_reports_it_and_keeps_its_capture() {
    let Some(namespace) =
        namespace("a_run_whose_disk_is_full_in_the_middle_reports_it_and_keeps_its_capture")
    else {
        return;
    };
    let suite = Suite::new().with("phases", "{warmup: 200ms, measure: 60s}");
    let process = start(
        &suite,
        namespace,
        &[
            "observe",
            "experiment/experiment.yaml",
            "--results",
            "results/run",
        ],
    );
    let results = inside(&suite, &process);
    suite.wait_measuring(&results.join("run"));
    fill(&results);
    // The next beat is what cannot be written.
    let ended = process.finish(STOP_MAX * 2);
    assert_code(&ended, 4);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert_holds(&output, &["No space left on device"]);
    open(&suite, &suite.path("saved/run"));
    suite.assert_nothing_left();
}

#[test]
fn a_run_whose_disk_is_full_after_a_pair_keeps_that_pair() {
    let Some(namespace) = namespace("a_run_whose_disk_is_full_after_a_pair_keeps_that_pair") else {
        return;
    };
    let suite = Suite::new().with("phases", "{warmup: 200ms, measure: 1s, quiet: 50ms}");
    let run = start(
        &suite,
        namespace,
        &["run", "experiment", "--results", "results/run"],
    );
    let results = inside(&suite, &run);
    let item = || run.stderr().contains("pair 1 done");
    assert!(wait_until(LONG, item), "{}", run.stderr());
    fill(&results);
    let ended = run.finish(STOP_MAX * 2);
    assert_code(&ended, 4);
    assert_holds(&ended.stderr, &["No space left on device"]);
    assert_holds(&ended.stdout, &["of 4", "--results results/run --resume"]);
    for variant in ["one", "two"] {
        let folder = suite.path("saved/run/experiment/pair-001").join(variant);
        assert_eq!(open(&suite, &folder).outcome, RunOutcome::Completed);
    }
    suite.assert_nothing_left();
}

#[test]
fn results_that_can_go_nowhere_could_not_run() {
    let suite = Suite::new();
    suite.write();
    suite.file("taken", "a file, and no folder");
    for command in ["run", "observe"] {
        let what = match command {
            "run" => "experiment",
            _ => "experiment/experiment.yaml",
        };
        let ended = suite.call(&[command, what, "--results", "taken/results"]);
        assert_code(&ended, 3);
        assert_holds(&ended.stderr, &["taken/results", "Not a directory"]);
    }
    suite.assert_nothing_left();
}

#[test]
fn a_run_whose_disk_is_full_before_the_first_pair_could_not_run() {
    let Some(namespace) = namespace("a_run_whose_disk_is_full_before_the_first_pair_could_not_run")
    else {
        return;
    };
    // The next beats are what cannot be written.
    let suite = Suite::new().with("phases", "{warmup: 200ms, measure: 30s, quiet: 50ms}");
    let run = start(
        &suite,
        namespace,
        &["run", "experiment", "--results", "results/run"],
    );
    let results = inside(&suite, &run);
    let begun = || !suite.target_processes("relay").is_empty();
    assert!(wait_until(LONG, begun), "{}", run.stderr());
    fill(&results);
    let ended = run.finish(STOP_MAX * 2);
    assert_code(&ended, 3);
    assert_holds(&ended.stderr, &["No space left on device"]);
    suite.assert_nothing_left();
}
