//! File operations of programs on a disk, and the counts of the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use stillwell_metric::DiskShard;
use stillwell_plan::disk::FolderDiskPlan;
use stillwell_plan::step::{DiskChange, DiskLimits};
use stillwell_scope::clock;
use stillwell_units::{ByteRate, ByteSize, Nanos};

use crate::support::{Served, served, wait_for};

fn figures(shard: &DiskShard) -> [u64; 4] {
    [&shard.written, &shard.synced, &shard.fsyncs, &shard.used].map(|cell| cell.total())
}

#[test]
fn what_is_written_lies_in_the_folder_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (at, backing) = (folder.path().join("disk"), folder.path().join("backing"));
    let plan = FolderDiskPlan {
        backing: Some(backing.clone()),
        ..FolderDiskPlan::default()
    };
    let Some(served) = served("written", &at, &plan) else {
        return;
    };
    let mut file = File::create(at.join("a")).unwrap();
    file.write_all(&[7; 300_000]).unwrap();
    let shard = served.disk.shard();
    assert_eq!(figures(shard), [300_000, 0, 0, 300_000]);
    file.sync_data().unwrap();
    assert_eq!(figures(shard), [300_000, 300_000, 1, 300_000]);
    file.write_all(b"more").unwrap();
    file.sync_all().unwrap();
    file.sync_all().unwrap();
    assert_eq!(figures(shard), [300_004, 300_004, 3, 300_004]);
    file.set_len(10).unwrap();
    assert_eq!(shard.used.total(), 10);
    drop(file);
    fs::remove_file(at.join("a")).unwrap();
    assert_eq!(shard.used.total(), 0);
    fs::write(at.join("b"), "kept").unwrap();
    assert_eq!(served.end_unused(), None);
    assert_eq!(fs::read(backing.join("b")).unwrap(), b"kept");
    assert!(!at.exists());
}

#[test]
fn a_disk_over_its_folder_shows_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("old"), "before").unwrap();
    let Some(served) = served("over", folder.path(), &FolderDiskPlan::default()) else {
        return;
    };
    assert_eq!(fs::read(folder.path().join("old")).unwrap(), b"before");
    assert_eq!(served.disk.shard().used.total(), 6);
    fs::write(folder.path().join("new"), "behind").unwrap();
    assert_eq!(served.end_unused(), None);
    assert_eq!(fs::read(folder.path().join("new")).unwrap(), b"behind");
}

/// Operations of programs on files: each line fails by itself.
const CHORES: &str = r#"
set -eu
mkdir -p a/b && cd a
echo one >one && cp one two && cmp one two
mv two b/three && test ! -e two && test "$(cat b/three)" = one
ln one b/hard && test "$(stat -c %h one)" = 2 && ln -s one soft && test "$(readlink soft)" = one
test "$(cat soft)" = one
echo more >>one && test "$(wc -l <b/hard)" = 2
chmod 640 one && test "$(stat -c %a one)" = 640
touch -d '2001-02-03 04:05:06 UTC' one && test "$(stat -c %Y one)" = 981173106
mkfifo pipe && test -p pipe
dd if=/dev/zero of=big bs=1M count=5 conv=fsync status=none && test "$(stat -c %s big)" = 5242880
truncate -s 3 big && test "$(stat -c %s big)" = 3
for number in $(seq 300); do echo $number >b/file-$number; done
test "$(ls b | wc -l)" = 302
exec 3<one && rm one b/hard && test "$(wc -l <&3)" = 2 && exec 3<&-
mv b c && test -e c/file-300 && rm -r c
tar -cf - . | tar -tf - >/dev/null
cd .. && rm -r a && test -z "$(ls)"
df . >/dev/null
"#;

#[test]
fn programs_find_the_disk_a_file_system_like_any() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some(served) = served("chores", &at, &FolderDiskPlan::default()) else {
        return;
    };
    let mut shell = Command::new("sh");
    let output = shell
        .args(["-xc", CHORES])
        .current_dir(&at)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert_eq!(served.disk.shard().used.total(), 0);
    assert_eq!(served.end_unused(), None);
}

#[test]
fn permissions_times_and_links_go_through() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some(served) = served("permissions", &at, &FolderDiskPlan::default()) else {
        return;
    };
    let path = at.join("file");
    let mut file = OpenOptions::new();
    let file = file.read(true).write(true).create_new(true).open(&path);
    let mut file = file.unwrap();
    assert_eq!(
        File::create_new(&path).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    file.write_all(b"0123456789").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4711)).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o4711);
    symlink("nowhere", at.join("link")).unwrap();
    assert_eq!(
        fs::read_link(at.join("link")).unwrap(),
        Path::new("nowhere")
    );
    // Without a name it is still read and written.
    fs::remove_file(&path).unwrap();
    assert_eq!(served.disk.shard().used.total(), 10);
    file.seek(SeekFrom::Start(5)).unwrap();
    let mut rest = String::new();
    file.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "56789");
    file.write_all(b"ab").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 12);
    drop(file);
    // Closing is reported a little later.
    wait_for(|| served.disk.shard().used.total() == 0);
    assert_eq!(served.end_unused(), None);
}

#[test]
fn a_full_disk_takes_what_fits_and_room_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let plan = FolderDiskPlan {
        limit: Some(ByteSize::new(100_000)),
        ..FolderDiskPlan::default()
    };
    let Some(served) = served("full", &at, &plan) else {
        return;
    };
    let error = fs::write(at.join("a"), vec![1; 150_000]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(fs::metadata(at.join("a")).unwrap().len(), 100_000);
    let shard = served.disk.shard();
    assert!(shard.refused.total() > 0);
    // Existing files may be overwritten.
    let mut file = OpenOptions::new().write(true).open(at.join("a")).unwrap();
    file.write_all(&[2; 1000]).unwrap();
    assert!(file.set_len(100_001).is_err());
    fs::rename(at.join("a"), at.join("b")).unwrap();
    drop(file);
    fs::write(at.join("c"), "").unwrap();
    fs::rename(at.join("c"), at.join("b")).unwrap();
    // The kernel says a moment later that the last one who had it open has closed it.
    wait_for(|| shard.used.total() == 0);
    fs::write(at.join("d"), vec![3; 100_000]).unwrap();
    served.disk.controls().set_limit(None);
    fs::write(at.join("e"), vec![3; 100_000]).unwrap();
    assert_eq!(shard.used.total(), 200_000);
    assert_eq!(served.end_unused(), None);
}

#[test]
fn an_fsync_takes_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let delay = Nanos::from_millis(60);
    let plan = FolderDiskPlan {
        fsync_delay: delay,
        ..FolderDiskPlan::default()
    };
    let Some(served) = served("fsync", &at, &plan) else {
        return;
    };
    let mut file = File::create(at.join("slow")).unwrap();
    file.write_all(b"content").unwrap();
    let shard = served.disk.shard();
    let begun = clock::now();
    file.sync_all().unwrap();
    assert!(clock::now().since(begun) >= delay);
    assert_eq!((shard.fsyncs.total(), shard.synced.total()), (1, 7));
    served.disk.controls().set_fsync_delay(Nanos::ZERO);
    file.sync_all().unwrap();
    File::open(&at).unwrap().sync_all().unwrap();
    assert_eq!(shard.fsyncs.total(), 3);
    drop(file);
    assert_eq!(served.end_unused(), None);
}

#[test]
fn a_slow_disk_takes_so_many_bytes_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let plan = FolderDiskPlan {
        write_rate: ByteRate::try_new(1_000_000).ok(),
        ..FolderDiskPlan::default()
    };
    let Some(served) = served("write rate", &at, &plan) else {
        return;
    };
    let begun = clock::now();
    fs::write(at.join("a"), vec![1; 50_000]).unwrap();
    fs::write(at.join("b"), vec![1; 50_000]).unwrap();
    assert!(clock::now().since(begun) >= Nanos::from_millis(100));
    assert_eq!(served.end_unused(), None);
}

#[test]
fn a_disk_that_a_step_made_full_has_room_again_for_what_is_deleted_and_once_it_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some(served) = served("full step", &at, &FolderDiskPlan::default()) else {
        return;
    };
    fs::write(at.join("a"), vec![1; 30_000]).unwrap();
    served.disk.change(&DiskChange::Full);
    let error = fs::write(at.join("b"), "x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(served.disk.shard().refused.total() > 0);
    fs::remove_file(at.join("a")).unwrap();
    fs::write(at.join("b"), vec![2; 30_000]).unwrap();
    assert!(fs::write(at.join("c"), "x").is_err());
    served.disk.change(&DiskChange::Restore);
    fs::write(at.join("c"), vec![3; 90_000]).unwrap();
    assert_eq!(served.disk.shard().used.total(), 120_000);
    assert_eq!(served.end_unused(), None);
}

/// A program that writes this number of bytes to a file in `at` and then makes them
/// durable.
fn dd(at: &Path, bytes: u32) -> Child {
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "of=file", &format!("bs={bytes}")]);
    dd.args(["count=1", "conv=fsync", "status=none"]);
    dd.current_dir(at).spawn().unwrap()
}

#[test]
fn a_process_that_waits_for_a_slow_disk_continues_once_it_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some(served) = served("restored", &at, &FolderDiskPlan::default()) else {
        return;
    };
    served.disk.change(&DiskChange::Limits(DiskLimits {
        write_rate: ByteRate::try_new(1).ok(),
        ..DiskLimits::default()
    }));
    let mut dd = dd(&at, 100_000);
    // It is written, and its answer is to come in more than a day.
    wait_for(|| served.disk.shard().written.total() > 0);
    served.disk.change(&DiskChange::Restore);
    assert!(dd.wait().unwrap().success());
    assert_eq!(figures(served.disk.shard()), [100_000, 100_000, 1, 100_000]);
    assert_eq!(served.end_unused(), None);
}

/// A disk whose fsyncs take an hour, and a program that has written 1000 bytes there and
/// waits for one; `None` where such a disk is unavailable.
fn stuck_in_fsync(what: &str, at: &Path) -> Option<(Served, Child)> {
    let plan = FolderDiskPlan {
        fsync_delay: Nanos::from_secs(3600),
        ..FolderDiskPlan::default()
    };
    let served = served(what, at, &plan)?;
    let dd = dd(at, 1000);
    wait_for(|| served.disk.shard().written.total() == 1000);
    Some((served, dd))
}

#[test]
fn an_fsync_whose_program_was_killed_is_no_fsync() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some((served, mut dd)) = stuck_in_fsync("killed", &at) else {
        return;
    };
    let shard = served.disk.shard();
    // It waits, and delays no other program.
    fs::write(at.join("other"), "x").unwrap();
    assert_eq!(fs::read(at.join("other")).unwrap(), b"x");
    fs::remove_file(at.join("other")).unwrap();
    // The kernel reports the last close of a file after the call has returned.
    wait_for(|| figures(shard) == [1001, 0, 0, 1000]);
    dd.kill().unwrap();
    dd.wait().unwrap();
    assert_eq!(figures(shard), [1001, 0, 0, 1000]);
    served.disk.controls().set_fsync_delay(Nanos::ZERO);
    // The bytes are still not durable, and become it with the next.
    File::open(at.join("file")).unwrap().sync_all().unwrap();
    assert_eq!(figures(shard), [1001, 1000, 1, 1000]);
    assert_eq!(served.end_unused(), None);
}

fn send_signal(program: &Child, signal: Signal) {
    kill_process(Pid::from_child(program), signal).unwrap();
}

#[test]
fn a_signal_that_does_not_kill_ends_no_fsync() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some(served) = served("signal", &at, &FolderDiskPlan::default()) else {
        return;
    };
    served.disk.change(&DiskChange::Limits(DiskLimits {
        fsync_delay: Some(Nanos::from_secs(3600)),
        ..DiskLimits::default()
    }));
    let mut dd = dd(&at, 1000);
    let shard = served.disk.shard();
    wait_for(|| shard.written.total() == 1000);
    send_signal(&dd, Signal::STOP);
    // Requests that come later are answered.
    request_more(&at);
    served.disk.change(&DiskChange::Restore);
    send_signal(&dd, Signal::CONT);
    assert!(dd.wait().unwrap().success());
    assert_eq!(figures(shard), [1000, 1000, 1, 1000]);
    assert_eq!(served.end_unused(), None);
}

/// Makes requests that come later than one that waits.
fn request_more(at: &Path) {
    for _ in 0..100 {
        fs::write(at.join("other"), "").unwrap();
    }
    fs::remove_file(at.join("other")).unwrap();
}

#[test]
fn an_fsync_whose_program_was_first_stopped_and_then_killed_is_no_fsync() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some((served, mut dd)) = stuck_in_fsync("stopped", &at) else {
        return;
    };
    send_signal(&dd, Signal::STOP);
    request_more(&at);
    // The kernel does not report this signal.
    dd.kill().unwrap();
    dd.wait().unwrap();
    assert_eq!(figures(served.disk.shard()), [1000, 0, 0, 1000]);
    assert_eq!(served.end_unused(), None);
}

#[test]
fn a_slow_disk_ends_while_its_answers_are_still_to_come() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some((served, mut dd)) = stuck_in_fsync("slow end", &at) else {
        return;
    };
    let shard = std::sync::Arc::clone(served.disk.shard());
    assert!(served.end().is_some());
    assert!(!dd.wait().unwrap().success());
    assert_eq!(shard.fsyncs.total(), 0);
}
