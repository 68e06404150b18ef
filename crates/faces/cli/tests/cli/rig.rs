//! One observed run: of a process that is there already, of none, and by a user
//! without rights.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use stillwell_capture::RunOutcome;
use stillwell_testkit::{Process, program_or_skip, wait_until};

use crate::lab::{BESIDES, LONG, Lab, STILLWELL, assert_code, assert_holds, open};

const SHORT: &str = "{ready: 5s, warmup: 200ms, measure: 1s, drain: 2s, quiet: 50ms}";
const NOBODY: u32 = 65_534;

#[test]
fn a_process_that_runs_already_is_watched_and_left_running() {
    let lab = Lab::new();
    let text = format!(
        "isolation: {{network: no}}\nphases: {SHORT}\nworkload:\n  generators:\n    - tcp: \"{}\"\n      \
         payload: ascii\n      rate: 500/s\n      cache: 1 MiB\n  sinks:\n    - tcp: \"{}\"\n",
        lab.listen, lab.sink
    );
    lab.file("rig.yaml", &text);
    let (input, output) = (
        format!("tcp://{}", lab.listen),
        format!("tcp://{}", lab.sink),
    );
    let relay = Process::start(&mut lab.stillwell(&["relay", "--in", &input, "--out", &output]));
    let listens = || TcpStream::connect(&lab.listen).is_ok();
    assert!(wait_until(LONG, listens), "{}", relay.stderr());
    let pid = relay.id().to_string();
    let words = [
        "rig",
        "rig.yaml",
        "--results",
        "results",
        "--target-pid",
        &pid,
    ];
    let ended = lab.call(&words);
    assert_holds(&ended.stdout, &["target CPU", "target memory", "sent of"]);
    let capture = stillwell_capture::Capture::open(&lab.results()).unwrap();
    assert_eq!(
        capture.manifest.outcome,
        RunOutcome::Completed,
        "{}",
        ended.stderr
    );
    // It still answers, and ends as it should when its owner asks.
    assert!(listens());
    relay.signal("TERM");
    let relay = relay.finish(BESIDES);
    assert_code(&relay, 0);
    assert_holds(&relay.stderr, &["events in"]);
}

#[test]
fn without_a_target_it_sends_to_whatever_listens() {
    let lab = Lab::new();
    let text = format!(
        "isolation: {{network: no}}\nphases: {SHORT}\nworkload:\n  generators:\n    - tcp: \"{0}\"\n      \
         payload: ascii\n      rate: 500/s\n      cache: 1 MiB\n  sinks:\n    - tcp: \"{0}\"\n",
        lab.sink
    );
    lab.file("rig.yaml", &text);
    let ended = lab.call(&[
        "rig",
        "rig.yaml",
        "--results",
        "results",
        "--no-target",
        "--json",
    ]);
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(summary["outcome"], "completed", "{}", ended.stderr);
    lab.assert_nothing_left();
}

#[test]
fn a_user_without_rights_gets_a_run_and_hears_what_is_missing() {
    let test = "a_user_without_rights_gets_a_run_and_hears_what_is_missing";
    let lab = Lab::new().with("phases", SHORT);
    lab.write();
    let binary = lab.path("stillwell");
    fs::copy(STILLWELL, &binary).unwrap();
    let words = [
        "rig",
        "experiment/experiment.yaml",
        "--results",
        "state/results",
    ];
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    let mut command = if is_root {
        let Some(setpriv) = program_or_skip(test, "setpriv") else {
            return;
        };
        give_away(&lab);
        let mut command = lab.program(setpriv);
        let who = format!("{NOBODY}");
        command
            .args(["--reuid", &who, "--regid", &who, "--clear-groups"])
            .arg(&binary);
        command
    } else {
        lab.program(&binary)
    };
    let ended = Process::start(command.args(words)).finish(LONG);
    let folder = lab.path("state/results");
    let manifest = open(&lab, &folder);
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    let missing: Vec<&str> = manifest
        .notes
        .iter()
        .map(|note| note.what.as_str())
        .collect();
    if !may_have_namespaces(&lab, is_root) {
        assert_holds(&missing.join("\n"), &["network namespace"]);
        assert_holds(&ended.stdout, &["network namespace"]);
        assert_holds(&ended.stderr, &["not root"]);
    }
    // Nobody may make a group, whatever namespaces there are.
    assert_holds(&missing.join("\n"), &["group"]);
    lab.assert_no_process(std::time::Duration::ZERO);
}

fn give_away(lab: &Lab) {
    let folder = lab.path("");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    chown(lab.path("state"), Some(NOBODY), Some(NOBODY)).unwrap();
}

/// Whether the kernel gives that user a user namespace.
fn may_have_namespaces(lab: &Lab, is_root: bool) -> bool {
    let mut command = if is_root {
        let who = NOBODY.to_string();
        let mut command = lab.program("setpriv");
        command.args([
            "--reuid",
            &who,
            "--regid",
            &who,
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
fn environment_of_the_target_is_what_was_asked_for() {
    let lab = Lab::new();
    let text = format!(
        "phases: {SHORT}\nworkload:\n  generators:\n    - tcp: \"{}\"\n      payload: ascii\n      \
         rate: 500/s\n      cache: 1 MiB\n  sinks:\n    - tcp: \"{}\"\n",
        lab.listen, lab.sink
    );
    lab.file("rig.yaml", &text);
    let script = format!(
        "env; exec {STILLWELL} relay --in tcp://{} --out tcp://{}",
        lab.listen, lab.sink
    );
    let words = [
        "rig",
        "rig.yaml",
        "--results",
        "results",
        "--environment",
        "SHAPE=round",
    ];
    let mut command = lab.stillwell(&words);
    command
        .env("OURS", "alone")
        .args(["--", "sh", "-c", &script]);
    let _ended = Process::start(&mut command).finish(LONG);
    let said = fs::read_to_string(lab.results().join("target.stdout.log")).unwrap();
    assert_holds(&said, &["SHAPE=round", "PATH="]);
    assert!(!said.contains("OURS="), "{said}");
    lab.assert_nothing_left();
}
