//! One observed run: of a process that is there already, of none, and by a user
//! without rights.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use stillwell_capture::RunOutcome;
use stillwell_testkit::{Process, program_or_skip, wait_until};

use crate::suite::{LONG, STILLWELL, STOP_MAX, Suite, assert_code, assert_holds, open};

const SHORT: &str = "{ready: 60s, warmup: 200ms, measure: 2s, drain: 2s, quiet: 50ms}";
const UNPRIVILEGED: u32 = 65_534;

#[test]
fn a_process_that_runs_already_is_watched_and_left_running() {
    let suite = Suite::new();
    let text = format!(
        "isolation: {{network: no}}\nphases: {SHORT}\nworkload:\n  generators:\n    - tcp: \"{}\"\n      \
         payload: ascii\n      rate: 500/s\n      cache: 1 MiB\n  sinks:\n    - tcp: \"{}\"\n",
        suite.listen, suite.sink
    );
    suite.file("run.yaml", &text);
    let (input, output) = (
        format!("tcp://{}", suite.listen),
        format!("tcp://{}", suite.sink),
    );
    let relay = Process::start(&mut suite.stillwell(&["relay", "--in", &input, "--out", &output]));
    let listens = || TcpStream::connect(&suite.listen).is_ok();
    assert!(wait_until(LONG, listens), "{}", relay.stderr());
    let pid = relay.id().to_string();
    let words = [
        "observe",
        "run.yaml",
        "--results",
        "results",
        "--target-pid",
        &pid,
    ];
    let ended = suite.call(&words);
    assert_holds(&ended.stdout, &["target CPU", "target memory", "sent of"]);
    let capture = stillwell_capture::Capture::open(&suite.results()).unwrap();
    assert_eq!(
        capture.manifest.outcome,
        RunOutcome::Completed,
        "{}",
        ended.stderr
    );
    // It still answers, and ends as it should on a signal.
    assert!(listens());
    relay.signal("TERM");
    let relay = relay.finish(STOP_MAX);
    assert_code(&relay, 0);
    assert_holds(&relay.stderr, &["events in"]);
}

#[test]
fn without_a_target_it_sends_to_any_listener() {
    let suite = Suite::new();
    let text = format!(
        "isolation: {{network: no}}\nphases: {SHORT}\nworkload:\n  generators:\n    - tcp: \"{0}\"\n      \
         payload: ascii\n      rate: 500/s\n      cache: 1 MiB\n  sinks:\n    - tcp: \"{0}\"\n",
        suite.sink
    );
    suite.file("run.yaml", &text);
    let ended = suite.call(&[
        "observe",
        "run.yaml",
        "--results",
        "results",
        "--no-target",
        "--json",
    ]);
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(summary["outcome"], "completed", "{}", ended.stderr);
    suite.assert_nothing_left();
}

#[test]
fn a_user_without_rights_gets_a_run_and_a_list_of_what_is_missing() {
    let test = "a_user_without_rights_gets_a_run_and_a_list_of_what_is_missing";
    let suite = Suite::new().with("phases", SHORT);
    suite.write();
    let words = [
        "observe",
        "experiment/experiment.yaml",
        "--results",
        "state/results",
    ];
    let Some(mut command) = without_rights(&suite, test) else {
        return;
    };
    let ended = Process::start(command.args(words)).finish(LONG);
    let folder = suite.path("state/results");
    let manifest = open(&suite, &folder);
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    let missing: Vec<&str> = manifest
        .notes
        .iter()
        .map(|note| note.what.as_str())
        .collect();
    if may_have_namespaces(&suite) {
        let text = missing.join("\n");
        assert!(!text.contains("network namespace"), "{text}");
    } else {
        assert_holds(&missing.join("\n"), &["network namespace"]);
        assert_holds(&ended.stdout, &["network namespace"]);
        assert_holds(&ended.stderr, &["not root"]);
    }
    // No user may make a group, for any namespaces.
    assert_holds(&missing.join("\n"), &["group"]);
    suite.assert_no_process(std::time::Duration::ZERO);
}

/// From another user namespace, its sockets and counters could not be read.
#[test]
fn a_service_of_the_same_user_is_measured_without_rights() {
    let test = "a_service_of_the_same_user_is_measured_without_rights";
    let suite = Suite::new();
    let text = format!(
        "target: {{url: \"http://{}/\"}}\nphases: {SHORT}\nworkload:\n  generators:\n    \
         - requests: {{mix: [{{path: /}}]}}\n      rate: 200/s\n      connections: 4\n",
        suite.listen
    );
    suite.file("run.yaml", &text);
    let Some(mut serve) = without_rights(&suite, test) else {
        return;
    };
    let service = Process::start(serve.args(["serve", "--address", &suite.listen]));
    let listens = || TcpStream::connect(&suite.listen).is_ok();
    assert!(wait_until(LONG, listens), "{}", service.stderr());
    let Some(mut observe) = without_rights(&suite, test) else {
        return;
    };
    let words = ["observe", "run.yaml", "--results", "state/results"];
    let ended = Process::start(observe.args(words)).finish(LONG);
    let manifest = open(&suite, &suite.path("state/results"));
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    assert_holds(&ended.stdout, &["target CPU", "target memory"]);
}

/// Returns `stillwell` as a user without rights. The suite's folder `state` is then that user's. `None` if this takes a
/// program that is not installed.
fn without_rights(suite: &Suite, test: &str) -> Option<Command> {
    let binary = suite.path("stillwell");
    // A program that runs cannot be written.
    if !binary.exists() {
        fs::copy(STILLWELL, &binary).unwrap();
    }
    if !is_root() {
        return Some(suite.program(&binary));
    }
    let setpriv = program_or_skip(test, "setpriv")?;
    give_away(suite);
    let mut command = suite.program(setpriv);
    let user_id = format!("{UNPRIVILEGED}");
    command
        .args(["--reuid", &user_id, "--regid", &user_id, "--clear-groups"])
        .arg(&binary);
    Some(command)
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn give_away(suite: &Suite) {
    let folder = suite.path("");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    chown(suite.path("state"), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
}

/// Returns true where the kernel gives that user a user namespace.
fn may_have_namespaces(suite: &Suite) -> bool {
    let mut command = if is_root() {
        let user_id = UNPRIVILEGED.to_string();
        let mut command = suite.program("setpriv");
        command.args([
            "--reuid",
            &user_id,
            "--regid",
            &user_id,
            "--clear-groups",
            "unshare",
        ]);
        command
    } else {
        Command::new("unshare")
    };
    command.args(["--user", "--net", "true"]);
    command.output().is_ok_and(|output| output.status.success())
}

#[test]
fn environment_of_the_target_is_the_requested_one() {
    let suite = Suite::new();
    let text = format!(
        "phases: {SHORT}\nworkload:\n  generators:\n    - tcp: \"{}\"\n      payload: ascii\n      \
         rate: 500/s\n      cache: 1 MiB\n  sinks:\n    - tcp: \"{}\"\n",
        suite.listen, suite.sink
    );
    suite.file("run.yaml", &text);
    let script = format!(
        "env; exec {STILLWELL} relay --in tcp://{} --out tcp://{}",
        suite.listen, suite.sink
    );
    let words = [
        "observe",
        "run.yaml",
        "--results",
        "results",
        "--environment",
        "SHAPE=round",
    ];
    let mut command = suite.stillwell(&words);
    command
        .env("OURS", "alone")
        .args(["--", "sh", "-c", &script]);
    let _ended = Process::start(&mut command).finish(LONG);
    let stdout = fs::read_to_string(suite.results().join("target.stdout.log")).unwrap();
    assert_holds(&stdout, &["SHAPE=round", "PATH="]);
    assert!(!stdout.contains("OURS="), "{stdout}");
    suite.assert_nothing_left();
}

#[test]
fn variables_of_the_command_line_are_added_to_those_of_the_file() {
    let suite = Suite::new();
    let text = format!(
        "target:\n  command: [sh, -c, \"env; echo ready; exec tail -f /dev/null\"]\n  \
         environment: {{SHAPE: square, SIZE: \"1\"}}\n  ready: {{log_line: ready}}\n  \
         stop: {{grace: 1s}}\nphases: {{ready: 60s, warmup: 100ms, measure: 300ms, drain: 100ms}}\n\
         workload:\n  sinks:\n    - tcp: \"{}\"\n",
        suite.sink
    );
    suite.file("run.yaml", &text);
    let words = [
        "observe",
        "run.yaml",
        "--results",
        "results",
        "--environment",
        "SHAPE=round",
        "--inherit-environment",
    ];
    let mut command = suite.stillwell(&words);
    let ended = Process::start(command.env("OURS", "alone")).finish(LONG);
    assert!([0, 4].contains(&ended.code), "{}", ended.stderr);
    let stdout = fs::read_to_string(suite.results().join("target.stdout.log")).unwrap();
    assert_holds(&stdout, &["SHAPE=round", "SIZE=1", "OURS=alone"]);
    assert!(!stdout.contains("SHAPE=square"), "{stdout}");
}

#[test]
fn variables_without_a_program_to_start_are_refused() {
    let suite = Suite::new();
    let text = format!(
        "phases: {SHORT}\nworkload:\n  generators:\n    - tcp: \"{0}\"\n      payload: ascii\n      \
         rate: 500/s\n      cache: 1 MiB\n  sinks:\n    - tcp: \"{0}\"\n",
        suite.sink
    );
    suite.file("run.yaml", &text);
    for [target, variables] in [
        ["--no-target", "--environment=A=b"],
        ["--target-pid=1", "--inherit-environment"],
    ] {
        let ended = suite.call(&["observe", "run.yaml", target, variables]);
        assert_code(&ended, 2);
        assert_holds(&ended.stderr, &["needs a program"]);
    }
}

#[test]
fn a_manifest_of_something_else_is_not_replaced() {
    const TEXT: &str = "{\"name\": \"a\"}";
    let suite = Suite::new();
    let manifest = suite.file("results/manifest.json", TEXT);
    let tasks = ["--on=local", "--store=store"];
    for options in [&tasks[..0], &tasks[..]] {
        let ended = suite.observe(options).finish(LONG);
        assert_code(&ended, 2);
        assert_holds(&ended.stderr, &["is not the manifest of a run"]);
        assert_eq!(fs::read_to_string(&manifest).unwrap(), TEXT);
    }
    assert!(!suite.path("store").exists(), "it starts nothing");
}

/// Observes a target that reports its nice value. Returns that, and the host's facts of the run.
fn nice_of_target(isolation: &str) -> (String, serde_json::Value) {
    let suite = Suite::new()
        .with("phases", SHORT)
        .with("isolation", isolation)
        .script("nice; exec \"$@\"");
    suite.write();
    let words = [
        "observe",
        "experiment/experiment.yaml",
        "--results",
        "results",
    ];
    let ended = suite.call(&words);
    let capture = stillwell_capture::Capture::open(&suite.results()).unwrap();
    let outcome = &capture.manifest.outcome;
    assert_eq!(*outcome, RunOutcome::Completed, "{}", ended.stderr);
    let log = fs::read_to_string(suite.results().join("target.stdout.log")).unwrap();
    let first = log.lines().next().unwrap().to_owned();
    (first, capture.manifest.host["priority"].clone())
}

#[test]
fn a_target_has_a_higher_priority_unless_the_file_forbids_it() {
    let test = "a_target_has_a_higher_priority_unless_the_file_forbids_it";
    if !is_root() {
        println!("skipped: {test}: it takes root");
        return;
    }
    let (nice, fact) = nice_of_target("{}");
    assert_eq!(nice, "-20");
    let fact = fact.as_str().unwrap();
    assert!(fact.starts_with("nice -20"), "{fact}");
    let before = rustix::process::getpriority_process(None).unwrap();
    let (nice, fact) = nice_of_target("{priority: no}");
    assert_eq!(nice, before.to_string());
    assert!(fact.is_null(), "{fact}");
}
