//! Leftovers of a Stillwell process that was killed.
//!
//! The owner is this test program once more, which runs only
//! [`an_owner_that_will_be_killed`] then.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use stillwell_scope::clock;
use stillwell_target::{Cgroup, Limits, prepare_privileges};
use stillwell_units::{Nanos, RunId};

use crate::life::LEAVES_A_DAEMON;
use crate::support::{Fixture, is_alive};

/// Membership of the owner's target in a group: `yes` or `no`.
const IN_GROUP: &str = "STILLWELL_TEST_IN_GROUP";

#[test]
#[ignore = "started by the tests below, which kill it"]
fn an_owner_that_will_be_killed() {
    let in_group = std::env::var(IN_GROUP).unwrap();
    let mut fixture = Fixture::new(LEAVES_A_DAEMON);
    if in_group == "yes" {
        let run = RunId::from_bytes([0x0f; 16]);
        let (cgroup, notes) = Cgroup::create(run, &Limits::default());
        let Some(cgroup) = cgroup else {
            println!("\nOWNER no group: {notes:?}");
            return;
        };
        fixture = fixture.in_cgroup(Arc::new(cgroup));
    }
    let _target = fixture.start_ready();
    let daemon = std::fs::read_to_string(fixture.path("daemon")).unwrap();
    println!("\nOWNER {}", daemon.trim());
    // Until it is killed.
    std::io::stdin().lines().for_each(drop);
}

/// Has an owner start a target that leaves a daemon, and kills the owner. The
/// daemon, or why there is none.
fn daemon_of_a_killed_owner(in_group: &str) -> Result<String, String> {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leftover::an_owner_that_will_be_killed"])
        .args(["--ignored", "--nocapture"])
        .env(IN_GROUP, in_group)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let marked_lines = lines.map_while(Result::ok);
    let marked_lines =
        marked_lines.filter_map(|line| Some(line.strip_prefix("OWNER ")?.to_owned()));
    let daemon = marked_lines.take(1).last().unwrap();
    let is_daemon = daemon.parse::<u32>().is_ok();
    assert!(!is_daemon || is_alive(&daemon));
    owner.kill().unwrap();
    owner.wait().unwrap();
    if is_daemon { Ok(daemon) } else { Err(daemon) }
}

/// The groups of `daemon`, as the kernel names them.
fn groups_of(daemon: &str) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(format!("/proc/{daemon}/cgroup")).unwrap_or_default();
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.map(PathBuf::from).collect()
}

/// A kernel takes its time to end what is killed.
pub(crate) fn ends(daemon: &str) -> bool {
    let until = clock::now() + Nanos::from_secs(20);
    while is_alive(daemon) && clock::now() < until {
        std::thread::yield_now();
    }
    !is_alive(daemon)
}

fn is_ours(group: &Path) -> bool {
    let name = group.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("run-") && name.ends_with(&"0f".repeat(16)))
}

#[test]
fn a_group_whose_owner_was_killed_is_ended_by_the_next() {
    let daemon = match daemon_of_a_killed_owner("yes") {
        Ok(daemon) => daemon,
        Err(why) => {
            println!("SKIPPED: {why}");
            return;
        }
    };
    let groups = groups_of(&daemon);
    assert!(
        groups.is_empty() || groups.iter().any(|group| is_ours(group)),
        "{groups:?}"
    );
    let (next, _) = Cgroup::create(RunId::from_bytes([0xf0; 16]), &Limits::default());
    let next = next.unwrap();
    assert!(ends(&daemon));
    let folders = next.folders();
    for folder in [&folders.unified, &folders.cpuacct, &folders.memory] {
        let Some(folder) = folder else { continue };
        let beside = std::fs::read_dir(folder.parent().unwrap()).unwrap();
        let left = beside.flatten().find(|entry| is_ours(&entry.path()));
        assert!(left.is_none(), "{left:?}");
    }
}

#[test]
fn processes_whose_owner_was_killed_are_ended_without_a_group() {
    let daemon = daemon_of_a_killed_owner("no").unwrap();
    let living = Fixture::new(LEAVES_A_DAEMON);
    let target = living.start_ready();
    // What privileges it gets a process with several threads does not matter here.
    drop(prepare_privileges());
    assert!(ends(&daemon));
    assert!(
        is_alive(&target.pid().unwrap().to_string()),
        "its owner lives"
    );
    let living_daemon = std::fs::read_to_string(living.path("daemon")).unwrap();
    assert!(is_alive(&living_daemon), "its owner lives");
}
