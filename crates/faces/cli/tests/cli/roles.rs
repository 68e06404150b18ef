//! One run on several machines, with the engine `local`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stillwell_testkit::{
    Finished, Process, free_port, program_or_skip, signal_process, wait_until,
};

use crate::suite::{LONG, STILLWELL, share_machine};

/// A target that sends events to two sinks in turn, drops each tenth one and sends each seventh one
/// to both.
const SPLITTER: &str = r#"
import os, signal, socket, sys, threading

def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)

sinks = [socket.create_connection(address(text)) for text in sys.argv[2:]]
lock = threading.Lock()
events = dropped = copied = 0

def take(connection):
    global events, dropped, copied
    for line in connection.makefile("rb"):
        if not line.endswith(b"\n"):
            return
        with lock:
            events += 1
            if events % 10 == 0:
                dropped += 1
                continue
            sinks[events % 2].sendall(line)
            if events % 7 == 0:
                copied += 1
                sinks[1 - events % 2].sendall(line)

def end(*_):
    print(f"injected faults: {dropped} dropped, twice {copied}", file=sys.stderr, flush=True)
    os._exit(0)

signal.signal(signal.SIGTERM, end)
listener = socket.create_server(address(sys.argv[1]))
while True:
    threading.Thread(target=take, args=[listener.accept()[0]], daemon=True).start()
"#;

/// A folder with a pipeline of generator, relay and sink, and a store.
struct Pipeline {
    folder: tempfile::TempDir,
    /// Port of the target.
    listen: String,
}

impl Pipeline {
    /// A relay with more `arguments`.
    fn new(arguments: &str, measure: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (listen, sink) = (free_port(), free_port());
        let text = format!(
            r#"
target:
  name: relay
  command: ["{{self}}", relay, --in, "tcp://{{host}}:{listen}", --out, "tcp://{{sinks.tcp}}"{arguments}]
  ready: {{tcp: "{{host}}:{listen}"}}
workload:
  generators: [{{tcp: "127.0.0.1:{listen}", payload: syslog5424, cache: 1 MiB, rate: 1000/s, stamps: all}}]
  sinks: [{{tcp: "127.0.0.1:{sink}"}}]
phases: {{ready: 20s, warmup: 200ms, measure: {measure}, drain: 10s, quiet: 200ms}}
validity: off
"#
        );
        fs::write(folder.path().join("run.yaml"), text).unwrap();
        let listen = listen.to_string();
        Self { folder, listen }
    }

    /// A target that divides events between two sinks. It loses what it holds when it is stopped,
    /// so the drain must outlast its pauses on a busy machine.
    fn split(python: &Path, measure: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("splitter.py");
        fs::write(&script, SPLITTER).unwrap();
        let [listen, first, second] = [free_port(), free_port(), free_port()];
        let text = format!(
            r#"
target:
  name: splitter
  command: ["{python}", "{script}", "{{host}}:{listen}", "{{sinks.first}}", "{{sinks.second}}"]
  ready: {{tcp: "{{host}}:{listen}"}}
workload:
  generators: [{{tcp: "127.0.0.1:{listen}", payload: syslog5424, cache: 1 MiB, rate: 1000/s, stamps: all}}]
  sinks: [{{id: first, tcp: "127.0.0.1:{first}"}}, {{id: second, tcp: "127.0.0.1:{second}"}}]
phases: {{ready: 20s, warmup: 200ms, measure: {measure}, drain: 60s, quiet: 3s}}
validity: off
"#,
            python = python.display(),
            script = script.display()
        );
        fs::write(folder.path().join("run.yaml"), text).unwrap();
        let listen = listen.to_string();
        Self { folder, listen }
    }

    /// A gRPC service that begins to listen after a while, and calls of `method`.
    fn of_calls(method: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = free_port();
        let text = format!(
            r#"
target:
  name: service
  command: [sh, -c, 'sleep 1; exec "$@"', sh, "{{self}}", service, --listen, "{{host}}:{listen}"]
  ready: {{tcp: "{{host}}:{listen}"}}
workload:
  generators:
    - requests: {{url: "http://127.0.0.1:{listen}/", grpc: {{method: {method}}}}}
      rate: 200/s
      connections: 4
phases: {{ready: 20s, warmup: 200ms, measure: 2s}}
validity: off
"#
        );
        fs::write(folder.path().join("run.yaml"), text).unwrap();
        let listen = listen.to_string();
        Self { folder, listen }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, words: &[&str], clock: &str) -> Process {
        let mut command = Command::new(STILLWELL);
        command
            .args([
                "observe",
                "run.yaml",
                "--json",
                "--results=results",
                "--seed=1",
            ])
            .args(words)
            .env("STILLWELL_TEST_CLOCK", clock)
            .current_dir(self.folder.path());
        Process::start(&mut command)
    }

    /// The run on so many generators and, if `sinks`, a task with the sinks.
    fn on_tasks(&self, generators: u16, sinks: u16, clock: &str) -> Process {
        let words = [
            "--on=local".to_owned(),
            "--store=store".to_owned(),
            "--job=a".to_owned(),
            format!("--generators={generators}"),
            format!("--sinks={sinks}"),
        ];
        self.start(&words.each_ref().map(String::as_str), clock)
    }

    fn object(&self, name: &str) -> PathBuf {
        self.path("store/a").join(name)
    }

    /// The process of a task.
    fn process(&self, task: usize) -> u32 {
        let engine = read(&self.object("engine.json"));
        let process = engine["processes"][task]["process"].as_u64().unwrap();
        u32::try_from(process).unwrap()
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn summary(ended: &Finished) -> Value {
    let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    report
}

/// The ledger of the only generator.
fn ledger(pipeline: &Pipeline) -> Value {
    let manifest = read(&pipeline.path("results/manifest.json"));
    manifest["ledger"]["generators"][0].clone()
}

fn number(value: &Value) -> u64 {
    let text = value.to_string();
    value.as_u64().expect(&text)
}

/// Events that the target dropped on purpose, as it says when it ends.
fn dropped(pipeline: &Pipeline) -> u64 {
    counted_by_target(pipeline, "injected faults: ")
}

/// The number after `words` in the log of the target.
fn counted_by_target(pipeline: &Pipeline, words: &str) -> u64 {
    let log = fs::read_to_string(pipeline.path("results/target.stderr.log")).unwrap();
    let count = log.split(words).nth(1);
    let count = count.and_then(|rest| {
        rest.split_whitespace()
            .next()?
            .replace(',', "")
            .parse()
            .ok()
    });
    count.expect(&log)
}

/// True if a program is connected to this port.
fn is_connected(port: &str) -> bool {
    let local = format!(":{:04X}", port.parse::<u16>().unwrap());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (address, _, state) = (fields.next(), fields.next(), fields.next());
        address.is_some_and(|address| address.ends_with(&local)) && state == Some("01")
    })
}

#[test]
fn a_run_of_five_tasks_counts_every_event_exactly() {
    let _machine = share_machine();
    let pipeline = Pipeline::new(r#", --drop, "1/10""#, "1s");
    let ended = pipeline.on_tasks(3, 1, "").finish(LONG * 2);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stderr, ended.stdout);
    let ledger = ledger(&pipeline);
    assert_eq!(number(&ledger["streams"]), 3, "{ledger}");
    let (sent, lost) = (number(&ledger["sent"]), number(&ledger["lost"]["least"]));
    assert_eq!(ledger["lost"]["least"], ledger["lost"]["most"], "{ledger}");
    assert_eq!(
        number(&ledger["received"]["least"]) + lost,
        sent,
        "{ledger}"
    );
    assert_eq!(number(&ledger["duplicated"]["most"]), 0, "{ledger}");
    assert_eq!(number(&ledger["unsent"]["most"]), 0, "{ledger}");
    assert!(lost > 0, "{ledger}");
    assert_eq!(lost, dropped(&pipeline), "{ledger}");
    let manifest = read(&pipeline.path("results/manifest.json"));
    let tasks = manifest["machines"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 5, "{tasks:?}");
    // All are on one machine, which has one clock.
    assert!(manifest["ledger"]["clock_error_ns"].is_null());
    let status = Command::new(STILLWELL)
        .args(["cluster", "status", "--job=a", "--store=store"])
        .current_dir(pipeline.folder.path())
        .output()
        .unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("target: complete"), "{status}");
    assert!(status.contains("generator 2: complete"), "{status}");
}

/// The same file on one machine, and with the sinks beside the target.
#[test]
fn the_same_file_runs_on_one_machine_and_with_sinks_beside_the_target() {
    let _machine = share_machine();
    let pipeline = Pipeline::new("", "2s");
    for ended in [
        pipeline.start(&[], "").finish(LONG),
        pipeline.on_tasks(2, 0, "").finish(LONG * 2),
    ] {
        assert_eq!(ended.code, 0, "{}\n{}", ended.stderr, ended.stdout);
        let ledger = ledger(&pipeline);
        assert_eq!(number(&ledger["lost"]["most"]), 0, "{ledger}");
        assert_eq!(ledger["sent"], ledger["received"]["least"], "{ledger}");
        // A part that begins late on a busy machine sends less.
        assert!(number(&ledger["sent"]) > 0, "{ledger}");
    }
}

#[test]
fn a_part_that_is_killed_ends_all_and_is_named() {
    let _machine = share_machine();
    let pipeline = Pipeline::new("", "10m");
    let run = pipeline.on_tasks(2, 1, "");
    wait_until(LONG, || pipeline.object("start.json").exists());
    let processes = [0, 1, 2, 3].map(|task| pipeline.process(task));
    signal_process(processes[1], "KILL");
    let ended = run.finish(LONG);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    let summary = summary(&ended).to_string();
    assert!(summary.contains("sinks on "), "{summary}");
    assert!(
        summary.contains("its process ended without a result"),
        "{summary}"
    );
    let is_gone = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    wait_until(LONG, || !processes.iter().any(is_gone));
    assert!(!processes.iter().any(is_gone), "a task still runs");
}

/// Each stream arrives in part on each machine with a sink.
#[test]
fn events_of_two_machines_with_sinks_are_counted_as_on_one() {
    let _machine = share_machine();
    let test = "roles::events_of_two_machines_with_sinks_are_counted_as_on_one";
    let Some(python) = program_or_skip(test, "python3") else {
        return;
    };
    // The clock of the second one is ahead by an hour.
    let clock = "2:3600000000000";
    let pipeline = Pipeline::split(&python, "1s");
    let ended = pipeline.on_tasks(2, 2, clock).finish(LONG * 2);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stderr, ended.stdout);
    let ledger = ledger(&pipeline);
    let (dropped, duplicated) = (dropped(&pipeline), counted_by_target(&pipeline, "twice "));
    let exactly = |name: &str| {
        assert_eq!(ledger[name]["least"], ledger[name]["most"], "{ledger}");
        number(&ledger[name]["least"])
    };
    let sent = number(&ledger["sent"]);
    assert!(dropped > 0 && duplicated > 0, "{ledger}");
    assert_eq!(exactly("lost"), dropped, "{ledger}");
    assert_eq!(exactly("duplicated"), duplicated, "{ledger}");
    assert_eq!(exactly("received"), sent - dropped, "{ledger}");
    assert_eq!(exactly("unsent"), 0, "{ledger}");
    assert_eq!(number(&ledger["arrivals"]), sent - dropped + duplicated);
    let manifest = read(&pipeline.path("results/manifest.json"));
    let whole = &manifest["ledger"];
    assert_eq!(
        (&whole["quiet"], &whole["under_way"]),
        (&true.into(), &dropped.into())
    );
    let divided = serde_json::json!({
        "machines": 2,
        "arrived_again": {"least": duplicated, "most": duplicated},
    });
    assert_eq!(whole["divided"], divided, "{whole}");
    let tasks = manifest["machines"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 5, "{tasks:?}");
    let start = read(&pipeline.object("start.json"));
    let error = number(&start["clocks"][2]["monotonic"]["error"]);
    assert!(number(&whole["clock_error_ns"]) >= error, "{whole}");
    let latency = &summary(&ended)["figures"]["event_latency"];
    assert!(number(&latency["max_ns"]) < 1_800_000_000_000, "{latency}");

    // One part is damaged in the store, and the same command reads it again.
    let object = pipeline.object("tasks/0002/result");
    let mut bytes = fs::read(&object).unwrap();
    let ledger = bytes.windows(8).position(|window| window == b"stwledgr");
    bytes[ledger.unwrap() + 12] ^= 1;
    fs::write(&object, bytes).unwrap();
    let ended = pipeline.on_tasks(2, 2, clock).finish(LONG * 2);
    assert_eq!(ended.code, 4, "{}\n{}", ended.stderr, ended.stdout);
    let report = summary(&ended).to_string();
    assert!(report.contains("sinks 1 on "), "{report}");
    assert!(report.contains("its checksum is wrong"), "{report}");
}

#[test]
fn one_of_two_tasks_with_sinks_that_is_killed_is_named() {
    let _machine = share_machine();
    let test = "roles::one_of_two_tasks_with_sinks_that_is_killed_is_named";
    let Some(python) = program_or_skip(test, "python3") else {
        return;
    };
    let pipeline = Pipeline::split(&python, "10m");
    let run = pipeline.on_tasks(1, 2, "");
    wait_until(LONG, || pipeline.object("start.json").exists());
    signal_process(pipeline.process(2), "KILL");
    let ended = run.finish(LONG);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    let manifest = read(&pipeline.path("results/manifest.json"));
    let failed = &manifest["outcome"]["part_failed"];
    assert!(
        failed["part"].as_str().unwrap().starts_with("sinks 1 on "),
        "{failed}"
    );
    // Half of the arrivals say nothing about any event.
    assert!(manifest["ledger"].is_null(), "{manifest}");
}

#[test]
fn a_target_that_dies_is_the_outcome_of_the_whole_run() {
    let _machine = share_machine();
    let pipeline = Pipeline::new("", "10m");
    let run = pipeline.on_tasks(1, 1, "");
    wait_until(LONG, || pipeline.object("start.json").exists());
    wait_until(LONG, || is_connected(&pipeline.listen));
    let task = pipeline.process(0);
    let threads = fs::read_dir(format!("/proc/{task}/task"))
        .unwrap()
        .flatten();
    let children: String = threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .collect();
    let is_relay = |pid: &u32| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline"));
        words.is_ok_and(|words| words.contains("relay\0--in"))
    };
    let mut children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    signal_process(children.find(is_relay).unwrap(), "KILL");
    let ended = run.finish(LONG);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    let summary = summary(&ended).to_string();
    assert!(summary.contains("target_died"), "{summary}");
}

/// Without a correction all latencies would be ten seconds longer.
#[test]
fn the_clock_of_sinks_that_is_ahead_changes_no_latency() {
    const AHEAD: i64 = 10_000_000_000;
    let _machine = share_machine();
    let pipeline = Pipeline::new("", "1s");
    let ended = pipeline
        .on_tasks(2, 1, &format!("1:{AHEAD}"))
        .finish(LONG * 2);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stderr, ended.stdout);
    let start = read(&pipeline.object("start.json"));
    let clock = &start["clocks"][1]["monotonic"];
    let (nanos, error) = (clock["nanos"].as_i64().unwrap(), number(&clock["error"]));
    assert!(nanos.abs_diff(AHEAD) <= error, "{start}");
    let manifest = read(&pipeline.path("results/manifest.json"));
    assert!(
        number(&manifest["ledger"]["clock_error_ns"]) >= error,
        "{manifest}"
    );
    let summary = read(&pipeline.path("results/summary.json"));
    let latency = &summary["figures"]["event_latency"];
    let median = number(&latency["p50_ns"]);
    assert!(median < AHEAD.unsigned_abs() / 2, "{latency}");
}

#[test]
fn calls_are_described_once_the_target_elsewhere_is_ready() {
    let _machine = share_machine();
    let pipeline = Pipeline::of_calls("grpc.health.v1.Health/Check");
    let ended = pipeline.on_tasks(2, 0, "").finish(LONG * 2);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stderr, ended.stdout);
    let summary = summary(&ended);
    let outcomes = summary["figures"]["outcomes"].as_array().unwrap();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert_eq!(outcomes[0]["outcome"], "ok");
    assert!(number(&outcomes[0]["count"]) > 100, "{outcomes:?}");

    let pipeline = Pipeline::of_calls("grpc.health.v1.Health/Chek");
    let ended = pipeline.on_tasks(1, 0, "").finish(LONG);
    assert_eq!(ended.code, 3, "{}\n{}", ended.stderr, ended.stdout);
    let why = "did you mean `Check`?";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_on_several_machines_is_refused() {
    let _machine = share_machine();
    let pipeline = Pipeline::new("", "1s");
    let text = fs::read_to_string(pipeline.path("run.yaml")).unwrap();
    let text = format!(
        "{text}timeline: [{{at: 100ms, target: {{restart: {{signal: KILL, after: 100ms}}}}}}]\n"
    );
    fs::write(pipeline.path("run.yaml"), text).unwrap();
    let ended = pipeline.on_tasks(1, 1, "").finish(LONG);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("timeline"), "{}", ended.stderr);
    let pipeline = Pipeline::new("", "1s");
    let ended = pipeline.on_tasks(1, 2, "").finish(LONG);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    let why = "the file has 1 sink, which cannot be divided among 2 machines: use --sinks 1";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    assert!(!pipeline.path("store").exists(), "it starts nothing");
}
