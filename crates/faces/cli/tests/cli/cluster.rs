//! Loads of several generators with the engine `local`, and what is left of them after faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stillwell_testkit::{Finished, Process, signal_process, wait_until};

use crate::load::{LONG, STILLWELL, serve};

/// A store, and a load with three generators of a job in it.
struct Fleet {
    folder: tempfile::TempDir,
    _server: Process,
    url: String,
}

impl Fleet {
    fn new() -> Self {
        let (server, url) = serve(&[]);
        Self {
            folder: tempfile::tempdir().unwrap(),
            _server: server,
            url,
        }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn object(&self, name: &str) -> PathBuf {
        self.store().join("a").join(name)
    }

    fn start(&self, words: &[&str]) -> Process {
        let mut command = Command::new(STILLWELL);
        command.args(["load", &self.url, "--on=local", "--generators=3", "--job=a"]);
        command.args([
            "--connections=6",
            "--output-format=stillwell",
            "--validity=off",
        ]);
        command.arg(format!("--store={}", self.store().display()));
        Process::start(command.args(words))
    }

    fn started(&self) {
        wait_until(LONG, || self.object("start.json").exists());
        assert!(self.object("start.json").exists());
    }

    /// The process of the generator with this index.
    fn process(&self, index: usize) -> u32 {
        let engine: Value = read(&self.object("engine.json"));
        let process = engine["processes"][index]["process"].as_u64().unwrap();
        u32::try_from(process).unwrap()
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn sent(ended: &Finished) -> u64 {
    let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    report["global"]["counters"]["upstream_rq_total"]
        .as_u64()
        .unwrap()
}

fn codes(ended: &Finished) -> Vec<String> {
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let warnings = report["health"]["warnings"].as_array().unwrap();
    let codes = warnings
        .iter()
        .map(|warning| warning["code"].as_str().unwrap());
    codes.map(str::to_owned).collect()
}

/// Locust's workers round the rate.
#[test]
fn three_generators_send_a_rate_that_three_does_not_divide_to_the_request() {
    let fleet = Fleet::new();
    let ended = fleet
        .start(&["--rate=100/s", "--requests=200"])
        .finish(LONG);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(sent(&ended), 200);
    assert!(
        ended.stderr.contains("3 of 3 generators on 1 machine"),
        "{}",
        ended.stderr
    );
    // The same command again reads the results and sends nothing.
    let again = fleet
        .start(&["--rate=100/s", "--requests=200"])
        .finish(LONG);
    assert_eq!((again.code, sent(&again)), (0, 200), "{}", again.stderr);
    let changed = fleet
        .start(&["--rate=101/s", "--requests=200"])
        .finish(LONG);
    assert_eq!(changed.code, 2, "{}", changed.stderr);
    let status = Command::new(STILLWELL)
        .args(["cluster", "status", "--job=a"])
        .arg(format!("--store={}", fleet.store().display()))
        .output()
        .unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("generator 2: complete"), "{status}");
}

#[test]
fn a_generator_that_is_killed_ends_the_others_and_is_named() {
    let fleet = Fleet::new();
    let load = fleet.start(&["--rate=100/s", "--duration=10m"]);
    fleet.started();
    signal_process(fleet.process(1), "KILL");
    let ended = load.finish(LONG);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    assert_eq!(codes(&ended)[0], "generator_missing", "{}", ended.stdout);
    assert!(ended.stdout.contains("generator 1 has no result"));
    assert!(!fleet.object("tasks/0001/result").exists());
}

#[test]
fn a_controller_that_is_killed_goes_on_when_it_is_started_again() {
    let fleet = Fleet::new();
    let words = ["--rate=100/s", "--requests=301"];
    let load = fleet.start(&words);
    fleet.started();
    load.signal("KILL");
    assert_eq!(load.finish(LONG).code, 137);
    let ended = fleet.start(&words).finish(LONG);
    assert_eq!((ended.code, sent(&ended)), (0, 301), "{}", ended.stderr);
}

#[test]
fn a_store_that_is_away_for_a_while_loses_nothing() {
    let fleet = Fleet::new();
    let load = fleet.start(&["--rate=100/s", "--requests=301"]);
    fleet.started();
    let generators = [0, 1, 2].map(|index| fleet.process(index));
    let is_sending = |process: u32| {
        let threads = fs::read_dir(format!("/proc/{process}/task"))
            .into_iter()
            .flatten();
        let names = threads
            .flatten()
            .map(|thread| fs::read_to_string(thread.path().join("comm")));
        names.flatten().any(|name| name.starts_with("load-"))
    };
    // Each has read the agreed start. The results are due while the store is away.
    wait_until(LONG, || {
        generators.iter().all(|process| is_sending(*process))
    });
    let away = fleet.folder.path().join("away");
    fs::rename(fleet.store(), &away).unwrap();
    wait_until(LONG, || {
        !generators.iter().any(|process| is_sending(*process))
    });
    fs::rename(&away, fleet.store()).unwrap();
    let ended = load.finish(LONG);
    assert_eq!((ended.code, sent(&ended)), (0, 301), "{}", ended.stderr);
}

/// Slurm and Kubernetes both run a task twice when a daemon is lost.
#[test]
fn a_second_attempt_of_a_task_does_not_count() {
    let fleet = Fleet::new();
    let load = fleet.start(&["--rate=100/s", "--requests=301"]);
    fleet.started();
    let mut second = Command::new(STILLWELL);
    second.args(["cluster", "generate", "--job=a"]);
    second.arg(format!("--store={}", fleet.store().display()));
    second
        .env("STILLWELL_TASK", "1")
        .env("STILLWELL_ATTEMPT", "second");
    let second = Process::start(&mut second).finish(LONG);
    assert!(
        second.stderr.contains("another attempt"),
        "{}",
        second.stderr
    );
    let ended = load.finish(LONG);
    assert_eq!((ended.code, sent(&ended)), (0, 301), "{}", ended.stderr);
    assert!(fleet.object("tasks/0001/ready-1.json").exists());
}

#[test]
fn a_cancelled_job_has_a_result_that_says_so() {
    let fleet = Fleet::new();
    let load = fleet.start(&["--rate=100/s", "--duration=10m"]);
    fleet.started();
    let cancel = Command::new(STILLWELL)
        .args(["cluster", "cancel", "--job=a"])
        .arg(format!("--store={}", fleet.store().display()))
        .status();
    assert!(cancel.unwrap().success());
    let ended = load.finish(LONG);
    assert_ne!(ended.code, 0, "{}", ended.stderr);
}
