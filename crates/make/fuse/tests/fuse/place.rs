//! Places where something can be mounted, and those where nothing can.

use std::fs;
use std::path::Path;

use stillwell_fuse::{Disk, DiskError, ExistingEntries, Mount, MountError, MountOwner};
use stillwell_plan::disk::FolderDiskPlan;
use stillwell_units::ByteSize;

use crate::support::{OWNER, abandoned, is_mounted, served, skip};

#[test]
fn a_place_with_something_in_it_is_refused_and_names_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kept"), "x").unwrap();
    let error = Mount::fuse(folder.path(), ExistingEntries::Nothing, OWNER).unwrap_err();
    assert!(
        matches!(&error, MountError::NotEmpty { entry, .. } if entry == "kept"),
        "{error}"
    );
    let file = folder.path().join("kept");
    let error = Mount::fuse(&file, ExistingEntries::Nothing, OWNER).unwrap_err();
    assert!(matches!(error, MountError::NoFolder { .. }), "{error}");
    let error = Mount::fuse(&file.join("below"), ExistingEntries::Nothing, OWNER).unwrap_err();
    assert!(matches!(error, MountError::Place { .. }), "{error}");
}

#[test]
fn a_disk_within_its_own_folder_waited_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    let plan = FolderDiskPlan {
        backing: Some(backing.clone()),
        ..FolderDiskPlan::default()
    };
    for at in [
        backing.clone(),
        backing.join("disk"),
        folder.path().to_owned(),
    ] {
        let error = Disk::mount(&at, &plan, OWNER).unwrap_err();
        assert!(matches!(error, DiskError::Within { .. }), "{error}");
    }
}

#[test]
fn a_folder_that_was_made_for_a_mount_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("made/here");
    let (mount, notes) = match Mount::memory(&at, ByteSize::mib(1), OWNER) {
        Ok(mounted) => mounted,
        Err(error) => return skip("memory", &error).unwrap_or(()),
    };
    assert_eq!(notes, []);
    fs::write(at.join("file"), vec![1; 1 << 19]).unwrap();
    let full = fs::write(at.join("more"), vec![1; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    assert!(is_mounted(&at));
    assert_eq!(mount.end(), None);
    assert!(!at.exists());
}

#[test]
fn what_a_killed_run_left_is_taken_away_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("a place");
    let Some(left) = abandoned("stale", &at) else {
        return;
    };
    // No program takes it away: a killed process cannot.
    std::mem::forget(left);
    assert!(fs::metadata(&at).is_err());
    let plan = FolderDiskPlan::default();
    let (disk, server, notes) = Disk::mount(&at, &plan, OWNER).unwrap();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].what.contains("was removed"), "{notes:?}");
    // While it is mounted, no other disk can be mounted over it. Only the table of mounts is
    // read, since nothing answers for it yet.
    drop(server);
    assert_eq!(disk.end(), None);
    assert!(at.is_dir());
}

#[test]
fn a_file_system_in_memory_is_taken_away_once_its_owner_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("memory");
    let killed = MountOwner {
        process: "killed",
        ..OWNER
    };
    let (left, _) = match Mount::memory(&at, ByteSize::mib(1), killed) {
        Ok(mounted) => mounted,
        Err(error) => return skip("left memory", &error).unwrap_or(()),
    };
    // No program takes it away: a killed process cannot.
    std::mem::forget(left);
    assert_eq!(Mount::clear_memory(|_| false), []);
    assert!(is_mounted(&at));
    let notes = Mount::clear_memory(|owner| owner == "killed");
    assert_eq!(notes.len(), 1);
    assert!(notes[0].what.contains("was removed"), "{notes:?}");
    assert!(!is_mounted(&at));
}

#[test]
fn a_file_system_of_a_suspended_run_is_not_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("suspended");
    let suspended = MountOwner {
        process: "suspended",
        ..OWNER
    };
    // A suspended process has it open and answers no request.
    let (_mount, device, _) = match Mount::fuse(&at, ExistingEntries::Nothing, suspended) {
        Ok(mounted) => mounted,
        Err(error) => return skip("suspended", &error).unwrap_or(()),
    };
    assert_eq!(Mount::clear_all(|_| false), []);
    assert!(is_mounted(&at));
    let error = Mount::fuse(&at, ExistingEntries::Nothing, OWNER).unwrap_err();
    assert!(matches!(error, MountError::Busy { .. }), "{error}");
    drop(device);
    let notes = Mount::clear_all(|owner| owner == "suspended");
    assert_eq!(notes.len(), 1);
    assert!(!is_mounted(&at));
}

#[test]
fn a_place_that_another_run_has_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some(served) = served("busy", &at, &FolderDiskPlan::default()) else {
        return;
    };
    let error = Mount::fuse(&at, ExistingEntries::Nothing, OWNER).unwrap_err();
    assert!(matches!(error, MountError::Busy { .. }), "{error}");
    assert_eq!(served.end_unused(), None);
}

#[test]
fn a_process_that_still_uses_a_disk_is_named_and_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    let Some(served) = served("held", &at, &FolderDiskPlan::default()) else {
        return;
    };
    let held = fs::File::create(at.join("held")).unwrap();
    let note = served.end().unwrap();
    let process = format!("({})", std::process::id());
    assert!(
        note.what.ends_with("was unmounted while it was in use"),
        "{note:?}"
    );
    assert!(note.why.contains(&process), "{note:?}");
    // It is informed that the disk has gone.
    let error = held.sync_all().unwrap_err();
    assert!(matches!(error.raw_os_error(), Some(103 | 107)), "{error}");
}

#[test]
fn a_host_without_the_device_reports_what_to_do() {
    let error = MountError::Device {
        at: Path::new("/logs").into(),
        source: std::io::ErrorKind::NotFound.into(),
    };
    let text = error.to_string();
    for word in ["/dev/fuse", "/logs", "modprobe fuse", "--device /dev/fuse"] {
        assert!(text.contains(word), "{text}");
    }
}
