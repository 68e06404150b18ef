//! Disks that a run brings along, and logs in a file system of their own: there before
//! the target, gone after it, for any end of the run.

use std::fs;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use stillwell_capture::{Capture, Manifest, RunOutcome};
use stillwell_metric::Value;
use stillwell_testkit::{Finished, Process, free_port, wait_until};

use crate::suite::{LONG, STOP_MAX, Suite, assert_code, assert_holds, open};

/// The last value of a series, over all labels; `None` where there is none.
fn last(folder: &Path, name: &str) -> Option<u64> {
    let capture = Capture::open(folder).unwrap();
    let series = capture.series.iter();
    let values = series.filter(|(sery, _, _)| sery.as_str() == name);
    let values = values.filter_map(|(_, _, series)| match series.points.last()?.value {
        Value::Int(value) => Some(value),
        _ => None,
    });
    values.reduce(|item, sery| item + sery)
}

/// Fails unless the run went to its end; other programs on this machine may make it
/// unreliable.
fn assert_completed(suite: &Suite, ended: &Finished) -> Manifest {
    let manifest = open(suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    manifest
}

/// A mount removes the leftovers of all killed runs: that run is killed while no other
/// test mounts.
static MOUNTS: RwLock<()> = RwLock::new(());

/// To be kept while anything may be mounted; `None` where nothing may be.
pub(crate) fn may_mount(test: &str) -> Option<RwLockReadGuard<'static, ()>> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|entry| {
        use std::os::unix::fs::MetadataExt;
        entry.uid() == 0
    });
    let may = is_root && Path::new("/dev/fuse").exists();
    if !may {
        println!("SKIPPED: {test}: needs root and /dev/fuse");
    }
    // Where another test has failed, nothing is wrong with the lock.
    may.then(|| MOUNTS.read().unwrap_or_else(PoisonError::into_inner))
}

fn mounts_below(folder: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let below = |line: &&str| {
        let place = line.split(' ').nth(4).unwrap_or_default();
        Path::new(place).starts_with(folder)
    };
    table.lines().filter(below).map(str::to_owned).collect()
}

pub(crate) fn assert_nothing_mounted(suite: &Suite) {
    let folder = fs::canonicalize(suite.path(".")).unwrap();
    assert_eq!(mounts_below(&folder), [""; 0]);
}

#[test]
fn a_disk_counts_what_its_target_makes_durable() {
    let Some(_mounts) = may_mount("disk") else {
        return;
    };
    let write = "dd if=/dev/zero of=disk/a bs=100k count=4 conv=fsync && \
                 dd if=/dev/zero of=disk/b bs=100k count=2; \
                 dd if=/dev/zero of=disk/c bs=1M count=3; \
                 dd if=/dev/zero of=small/d bs=1M count=3; exec \"$@\"";
    let suite = Suite::new().script(write).with(
        "disks",
        "[{path: \"{state}/disk\", backing: ./kept, fsync_delay: 5ms, limit: 2 MiB}, \
         {path: \"{state}/small\", tmpfs: 1 MiB}]",
    );
    let ended = suite.observe(&[]).finish(LONG);
    assert_completed(&suite, &ended);
    let figure = |name| last(&suite.results(), name);
    assert_eq!(figure("disk_fsyncs"), Some(1));
    assert_eq!(figure("disk_bytes_synced"), Some(400 << 10));
    assert_eq!(figure("disk_bytes_written"), Some(2 << 20));
    assert_eq!(figure("disk_bytes_used"), Some(2 << 20));
    assert!(figure("disk_writes_refused") >= Some(1));
    // What was written stays; what was in memory is gone.
    let kept = suite.path("experiment/kept");
    assert_eq!(fs::metadata(kept.join("a")).unwrap().len(), 400 << 10);
    let log = fs::read_to_string(suite.results().join("target.stderr.log")).unwrap();
    assert_eq!(log.matches("No space left on device").count(), 2, "{log}");
    suite.assert_nothing_left();
    assert_nothing_mounted(&suite);
}

#[test]
fn a_disk_that_cannot_be_mounted_is_reported_before_anything_runs() {
    let Some(_mounts) = may_mount("refused disk") else {
        return;
    };
    let suite = Suite::new();
    let full = suite.file("full/already", "here");
    let disks = format!(
        "[{{path: {}, backing: ./kept}}]",
        full.parent().unwrap().display()
    );
    let suite = suite.with("disks", &disks);
    let ended = suite.observe(&[]).finish(LONG);
    assert_code(&ended, 3);
    assert_holds(&ended.stdout, &["`already`", "name another"]);
    assert_nothing_mounted(&suite);
}

/// A relay that follows logs without a writer.
fn logs(suite: &Suite, measure: &str) {
    let metrics = format!("127.0.0.1:{}", free_port());
    let text = format!(
        "target:\n  name: relay\n  command: [\"{{self}}\", relay, --in, \"tail://{logs}\", --out, \
         \"tcp://{sink}\", --metrics, \"{metrics}\"]\n  \
         ready: {{http: \"http://{metrics}/metrics\"}}\n\
         workload:\n  generators:\n    - file_gen: {{mount: {logs}, file_max: 256 KiB, rotations: 8}}\n      \
         payload: syslog5424\n      rate: 1 MiB/s\n      connections: 2\n      cache: 4 MiB\n  \
         sinks:\n    - tcp: \"{sink}\"\n\
         phases: {{ready: 60s, warmup: 200ms, measure: {measure}, drain: 5s, quiet: 300ms}}\n",
        logs = suite.path("logs").display(),
        sink = suite.sink,
    );
    suite.file("run.yaml", &text);
}

const OBSERVE: [&str; 4] = ["observe", "run.yaml", "--results", "results"];

#[test]
fn a_target_follows_logs_and_what_it_missed_is_known() {
    let Some(_mounts) = may_mount("logs") else {
        return;
    };
    let suite = Suite::new();
    // Parts are deleted four seconds after they were written: a busy machine may stall the relay.
    logs(&suite, "6s");
    let ended = suite.call(&OBSERVE);
    assert_completed(&suite, &ended);
    let figure = |name: &str| last(&suite.results(), name).unwrap_or_else(|| panic!("{name}"));
    let written = figure("bytes_written");
    assert!(written > 2 << 20, "{written}");
    assert!(figure("log_file_rotated") > 4);
    assert!(figure("fs_open") > 4 && figure("fs_read") > 10 && figure("fs_lookup") > 4);
    let (missed, unread) = (figure("missed_bytes"), figure("unread_bytes"));
    // Each byte that it read it sent on, and it read each once.
    let received = figure("bytes_received");
    assert_eq!(figure("bytes_read"), received);
    assert_eq!(written, received + missed + unread);
    assert_eq!(
        (missed, unread),
        (0, 0),
        "a relay that reads on falls behind"
    );
    assert!(!suite.path("logs").exists());
    suite.assert_nothing_left();
}

#[test]
fn a_run_that_is_ended_takes_its_logs_away() {
    let Some(_mounts) = may_mount("interrupted logs") else {
        return;
    };
    let suite = Suite::new();
    logs(&suite, "60s");
    let process = Process::start(&mut suite.stillwell(&OBSERVE));
    suite.wait_measuring(&suite.results());
    assert!(suite.path("logs").is_dir());
    process.signal("TERM");
    assert_code(&process.finish(STOP_MAX), 143);
    assert_nothing_mounted(&suite);
    suite.assert_nothing_left();
}

#[test]
fn logs_that_a_killed_run_left_are_taken_away_by_the_next() {
    let Some(mounts) = may_mount("killed logs") else {
        return;
    };
    drop(mounts);
    let _alone = MOUNTS.write().unwrap_or_else(PoisonError::into_inner);
    let suite = Suite::new();
    logs(&suite, "60s");
    let process = Process::start(&mut suite.stillwell(&OBSERVE));
    suite.wait_measuring(&suite.results());
    process.signal("KILL");
    drop(process.finish(STOP_MAX));
    assert!(wait_until(LONG, || fs::metadata(suite.path("logs")).is_err()));
    logs(&suite, "1s");
    fs::remove_dir_all(suite.results()).unwrap();
    let ended = suite.call(&OBSERVE);
    let manifest = assert_completed(&suite, &ended);
    let output = |what: &str| manifest.notes.iter().any(|note| note.what.contains(what));
    assert!(output("was removed"), "{:?}", manifest.notes);
    assert_nothing_mounted(&suite);
}

#[test]
fn a_process_that_holds_logs_open_is_named_and_holds_nothing_up() {
    let Some(_mounts) = may_mount("held logs") else {
        return;
    };
    let suite = Suite::new();
    logs(&suite, "4s");
    let process = Process::start(&mut suite.stillwell(&OBSERVE));
    // Not only once it measures: on a busy machine the run would be over.
    let folder = fs::canonicalize(suite.path(".")).unwrap();
    let is_mounted = || !mounts_below(&folder).is_empty();
    assert!(wait_until(LONG, is_mounted), "{}", process.stderr());
    let held = fs::File::open(suite.path("logs")).unwrap();
    let manifest = assert_completed(&suite, &process.finish(LONG));
    drop(held);
    let note = manifest
        .notes
        .iter()
        .find(|note| note.what.contains("while it was in use"));
    let entry = format!("({})", std::process::id());
    assert!(note.unwrap().why.contains(&entry), "{note:?}");
    assert_nothing_mounted(&suite);
}

// compat: lading, generators | file_gen: logrotate_fs | differs | missed bytes are those that no reader read
#[test]
fn ladings_logrotate_fs_counts_unread_bytes() {
    let Some(_mounts) = may_mount("logrotate_fs") else {
        return;
    };
    let suite = Suite::new();
    let seed: Vec<String> = (0..32).map(|number| number.to_string()).collect();
    let text = format!(
        "generator:\n  - file_gen:\n      logrotate_fs:\n        seed: [{}]\n        \
         load_profile:\n          constant: 2MiB\n        concurrent_logs: 2\n        \
         maximum_bytes_per_log: 128KiB\n        total_rotations: 1\n        max_depth: 0\n        \
         variant: ascii\n        maximum_prebuild_cache_size_bytes: 4MiB\n        \
         maximum_block_size: 32KiB\n        mount_point: {}\n",
        seed.join(", "),
        suite.path("smp-shared").display(),
    );
    suite.file("lading.yaml", &text);
    let words = [
        "observe",
        "lading.yaml",
        "--results",
        "results",
        "--no-target",
    ];
    let times = ["--warmup", "200ms", "--measure", "5s"];
    let ended = suite.call(&[&words[..], &times[..]].concat());
    assert_completed(&suite, &ended);
    let figure = |name: &str| last(&suite.results(), name).unwrap_or_else(|| panic!("{name}"));
    let (written, missed) = (figure("bytes_written"), figure("missed_bytes"));
    assert_eq!(figure("bytes_read"), 0);
    assert_eq!(written, missed + figure("unread_bytes"));
    // Two parts of each log are there at most, and a block more in each.
    assert!(written - missed <= 4 * (160 << 10), "{written} {missed}");
    assert!(figure("log_file_deleted") > 4);
    assert_nothing_mounted(&suite);
}
