//! Loads of several generators with the engine `local`, and their results after faults.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stillwell_testkit::{Finished, Process, free_port, signal_process, wait_until};
use stillwell_units::Seed;

use crate::load::{LONG, STILLWELL, serve};
use crate::suite::{Suite, assert_code, assert_holds};

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
        self.start_with("", words)
    }

    /// The same with a planted error of a clock.
    fn start_with(&self, clock: &str, words: &[&str]) -> Process {
        let mut command = Command::new(STILLWELL);
        command.args(["load", &self.url, "--on=local", "--generators=3", "--job=a"]);
        command.args([
            "--connections=6",
            "--output-format=stillwell",
            "--validity=off",
        ]);
        command.arg(format!("--store={}", self.store().display()));
        command.env("STILLWELL_TEST_CLOCK", clock);
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
    let status = Command::new(STILLWELL)
        .args(["cluster", "status", "--job=a", "--format=json"])
        .arg(format!("--store={}", fleet.store().display()))
        .output()
        .unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["engine"], "local");
    assert_eq!(status["tasks"][2]["state"], "complete");
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
fn a_cancelled_job_has_a_result_that_reports_it() {
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

/// Answers requests until `count` have arrived, and returns their heads.
fn heads(listener: &TcpListener, count: usize) -> Vec<String> {
    let mut heads = Vec::new();
    while heads.len() < count {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while stream.read_line(&mut head).unwrap_or(0) > 2 {}
        if head.is_empty() {
            continue;
        }
        heads.push(head);
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
    }
    heads
}

/// The store held headers as typed.
#[test]
fn a_secret_reaches_the_target_and_is_not_in_the_store() {
    let fleet = Fleet::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut command = Command::new(STILLWELL);
    command.args(["load", &url, "--on=local", "--generators=2", "--job=a"]);
    command.args(["--header=authorization: Bearer hunter2", "--requests=4"]);
    command.args(["--connections=2", "--validity=off", "--rate=20/s"]);
    command.arg(format!("--store={}", fleet.store().display()));
    let load = Process::start(&mut command);
    let heads = heads(&listener, 4);
    let ended = load.finish(LONG);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for head in &heads {
        assert!(head.contains("Bearer hunter2"), "{head}");
    }
    let mut folders = vec![fleet.store()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(path),
                false => {
                    let name = entry.file_name().into_string().unwrap();
                    assert!(!name.starts_with("secrets"), "{path:?}");
                    let bytes = fs::read(&path).unwrap();
                    let text = String::from_utf8_lossy(&bytes);
                    assert!(!text.contains("hunter2"), "{path:?}");
                }
            }
        }
    }
}

/// A `kubectl` that creates Jobs and no Secrets, and writes its words to `calls`.
const KUBECTL: &str = r#"#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in *create*) if grep -q '"kind":"Secret"'; then echo forbidden >&2; exit 1; fi ;; esac
"#;

#[test]
fn a_submission_that_fails_halfway_is_undone_and_nothing_is_left_to_cancel() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("kubectl");
    fs::write(&program, KUBECTL).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let calls = folder.path().join("calls");
    let path = std::env::var("PATH").unwrap();
    let store = format!("--store={}", folder.path().join("store").display());
    let run = |words: &[&str]| {
        let mut command = Command::new(STILLWELL);
        command.args(words).args(["--job=a", &store]);
        command.env("PATH", format!("{}:{path}", folder.path().display()));
        Process::start(command.env("CALLS", &calls)).finish(LONG)
    };
    let ended = run(&[
        "load",
        "http://127.0.0.1:1/",
        "--on=kubernetes",
        "--engine-option=--image=i",
        "--engine-option=--host-path",
        "--header=authorization: Bearer hunter2",
    ]);
    assert_code(&ended, 3);
    assert_holds(&ended.stderr, &["forbidden"]);
    let calls = fs::read_to_string(&calls).unwrap();
    let last = calls.lines().last().unwrap();
    assert!(last.contains("delete job stillwell-a-"), "{calls}");
    let cancelled = run(&["cluster", "cancel"]);
    assert_code(&cancelled, 3);
    assert_holds(&cancelled.stderr, &["nothing was started by job a"]);
}

#[test]
fn a_job_of_kubernetes_is_printed_without_secrets() {
    let fleet = Fleet::new();
    let mut command = Command::new(STILLWELL);
    command.args([
        "cluster",
        "render",
        &fleet.url,
        "--on=kubernetes",
        "--job=a",
    ]);
    command.args([
        "--engine-option=--image=stillwell:1",
        "--engine-option=--claim=disk",
    ]);
    command.args(["--threads=3", "--header=authorization: Bearer hunter2"]);
    command.arg(format!("--store={}", fleet.store().display()));
    let ended = Process::start(&mut command).finish(LONG);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for line in [
        "kind: Job",
        "completions: 2",
        "cpu: \"4\"",
        "claimName: disk",
    ] {
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
    }
    assert!(!ended.stdout.contains("hunter2"), "{}", ended.stdout);
    assert!(!fleet.store().exists(), "it starts nothing");
}

#[test]
fn experiments_run_whole_on_nodes_and_are_judged_together() {
    let suite = Suite::new()
        .with("phases", "{warmup: 100ms, measure: 500ms, quiet: 50ms}")
        .with("pairs", "2");
    let text = fs::read_to_string(suite.write()).unwrap();
    let second = text
        .replace(&suite.listen, &format!("127.0.0.1:{}", free_port()))
        .replace(&suite.sink, &format!("127.0.0.1:{}", free_port()));
    suite.file("other/experiment.yaml", &(second + "seed: 7\n"));
    let words = [
        "run",
        "experiment",
        "other",
        "--on=local",
        "--store=store",
        "--job=s",
    ];
    let run = |results: &str, more: &[&str]| {
        let mut command = suite.stillwell(&words);
        Process::start(command.args(["--results", results]).args(more)).finish(LONG * 2)
    };
    let ended = run("results", &[]);
    // Short runs next to other tests may have no verdict.
    assert!([0, 1, 4].contains(&ended.code), "{}", ended.stderr);
    for name in ["experiment", "other"] {
        let folder = suite.results().join(name);
        assert!(folder.join("verdict.json").is_file(), "{}", ended.stderr);
        assert!(read(&folder.join("node.json"))["node"].is_string());
        let nothing_ran = format!("{name}: pair 1 of");
        assert!(!ended.stderr.contains(&nothing_ran), "{}", ended.stderr);
    }
    let plan = &read(&suite.results().join("suite.json"))["plan"];
    assert_eq!(plan["experiments"].as_array().unwrap().len(), 2);
    // The order within pairs follows from the seed of the first one, and each keeps its own.
    let seed = |experiment: usize| &plan["experiments"][experiment]["run_plan"]["seed"];
    assert_eq!(seed(0), &plan["seed"]);
    assert_eq!(*seed(1), Seed::from_number(7).to_string());
    let mut status = suite.stillwell(&["cluster", "status", "--store=store", "--job=s"]);
    let status = String::from_utf8(status.output().unwrap().stdout).unwrap();
    assert!(status.contains("experiment other: complete"), "{status}");
    // The same command again judges the same results, which have their seeds already.
    let again = run("again", &["--seed=5"]);
    assert_eq!(again.code, ended.code, "{}", again.stderr);
    let verdict = |results: &str| read(&suite.path(results).join("other/verdict.json"));
    assert_eq!(verdict("again")["verdict"], verdict("results")["verdict"]);
    let changed = run("changed", &["--measure=600ms"]);
    assert_code(&changed, 2);
    assert_holds(&changed.stderr, &["the store has another job s already"]);
}

#[test]
fn a_suite_on_nodes_that_is_interrupted_keeps_its_finished_pairs() {
    let suite = Suite::new()
        .with("phases", "{warmup: 100ms, measure: 300ms, quiet: 50ms}")
        .with("pairs", "20")
        .with("validity", "off");
    suite.write();
    let mut command = suite.stillwell(&["run", "experiment", "--on=local", "--job=s"]);
    let run = Process::start(command.args(["--store=store", "--results=results"]));
    let log = suite.path("store/s/logs/task-0.log");
    let has_pair = || fs::read_to_string(&log).is_ok_and(|log| log.contains("pair 1 done"));
    assert!(wait_until(LONG, has_pair), "{}", run.stderr());
    run.signal("TERM");
    let ended = run.finish(LONG);
    assert_code(&ended, 143);
    for variant in ["one", "two"] {
        let manifest = read(&suite.capture_of(1, variant).join("manifest.json"));
        assert_eq!(manifest["outcome"], "completed", "{}", ended.stderr);
    }
    let problems = read(&suite.results().join("problems.json"));
    assert_eq!(problems["problems"][0]["experiment"], "experiment");
}

/// Start of the load of a generator by the true clock, from the manifest in its result.
fn true_start(fleet: &Fleet, index: usize) -> i64 {
    let bytes = fs::read(fleet.object(&format!("tasks/{index:04}/result"))).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let head: Value = serde_json::from_slice(&bytes[..end]).unwrap();
    let length = |file: &Value| usize::try_from(file[1].as_u64().unwrap()).unwrap();
    let files = head["files"].as_array().unwrap();
    let place = files.iter().position(|file| file[0] == "manifest.json");
    let (before, after) = files.split_at(place.unwrap());
    let begin = end + 1 + before.iter().map(length).sum::<usize>();
    let manifest = &bytes[begin..begin + length(&after[0])];
    let manifest: Value = serde_json::from_slice(manifest).unwrap();
    manifest["started"].as_i64().unwrap()
}

#[test]
fn a_clock_that_is_ahead_is_measured_within_its_bound_and_starts_are_corrected() {
    const AHEAD: i64 = 5_000_000;
    let fleet = Fleet::new();
    let words = ["--rate=100/s", "--requests=200"];
    let ended = fleet.start_with("1:5000000", &words).finish(LONG);
    assert_eq!((ended.code, sent(&ended)), (0, 200), "{}", ended.stderr);
    let start = read(&fleet.object("start.json"));
    let agreed = start["at"].as_i64().unwrap();
    for index in 0..3 {
        let clock = &start["clocks"][index]["wall"];
        let (nanos, error) = (&clock["nanos"], &clock["error"]);
        let (nanos, error) = (nanos.as_i64().unwrap(), error.as_i64().unwrap());
        let planted = if index == 1 { AHEAD } else { 0 };
        assert!((nanos - planted).abs() <= error, "{start}");
        // It began at the agreed time by the true clock, or later, up to the error that is left.
        let left = if nanos.abs() > error { error } else { planted };
        let early = agreed - true_start(&fleet, index);
        assert!(early <= left, "generator {index}: {early} ns, {start}");
    }
}

#[test]
fn a_clock_that_drifts_during_a_load_is_named() {
    let fleet = Fleet::new();
    let words = ["--rate=100/s", "--requests=200"];
    let ended = fleet.start_with("2:0:100000", &words).finish(LONG);
    assert_eq!(sent(&ended), 200, "{}", ended.stderr);
    assert!(
        codes(&ended).contains(&"clock_drift".to_owned()),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("generator 2 on "), "{}", ended.stdout);
}
