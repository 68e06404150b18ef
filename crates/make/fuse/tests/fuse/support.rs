//! A disk with a thread that answers for it.

use std::path::Path;

use stillwell_fuse::{Disk, DiskError, ExistingEntries, Mount, MountError, MountNote, MountOwner};
use stillwell_plan::disk::FolderDiskPlan;
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;

/// The process that mounts. Those that were killed have names that begin so.
pub(crate) const OWNER: MountOwner<'static> = MountOwner {
    process: "test",
    is_gone: |name| name.starts_with("killed"),
};

/// A disk, and the thread that serves it.
pub(crate) struct Served {
    pub(crate) disk: Disk,
    pub(crate) scope: Scope,
}

/// Mounts and serves a disk; `None` where this host does not permit it.
pub(crate) fn served(test: &str, at: &Path, plan: &FolderDiskPlan) -> Option<Served> {
    let (disk, server, notes) = match Disk::mount(at, plan, OWNER) {
        Ok(mounted) => mounted,
        Err(DiskError::Mount(error)) => return skip(test, &error),
        Err(error) => panic!("{error}"),
    };
    assert_eq!(notes, []);
    let mut scope = Scope::new(&Token::new());
    let serve = move |token: &Token| server.serve(token);
    scope.thread(Place::default(), "disk", serve).unwrap();
    Some(Served { disk, scope })
}

/// Says that a test is skipped, if this host has no FUSE or does not let us mount.
pub(crate) fn skip<T>(test: &str, error: &MountError) -> Option<T> {
    match error {
        MountError::Device { .. } | MountError::Forbidden { .. } => {
            println!("SKIPPED: {test}: {error}");
            None
        }
        error => panic!("{error}"),
    }
}

impl Served {
    /// Ends it, and sees to it that nothing failed.
    pub(crate) fn end(self) -> Option<MountNote> {
        let at = self.disk.at().to_owned();
        let note = self.disk.end();
        for end in self.scope.close(Nanos::from_secs(10)) {
            end.result.unwrap();
        }
        assert!(!is_mounted(&at));
        note
    }

    /// The same where no thread of this test uses it any more: the child of another test holds
    /// everything open from its fork to its exec.
    pub(crate) fn end_unused(self) -> Option<MountNote> {
        self.end()
            .filter(|note| !note.why.starts_with("in use by fuse-"))
    }
}

pub(crate) fn is_mounted(at: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    table
        .lines()
        .any(|line| line.split(' ').nth(4) == at.to_str())
}

/// A mount that is no longer served, as a killed run leaves it.
pub(crate) fn abandoned(test: &str, at: &Path) -> Option<Mount> {
    let killed = MountOwner {
        process: "killed",
        ..OWNER
    };
    match Mount::fuse(at, ExistingEntries::Nothing, killed) {
        Ok((mount, device, _)) => {
            drop(device);
            Some(mount)
        }
        Err(error) => skip(test, &error),
    }
}

/// Waits until it is so.
pub(crate) fn wait_for(is_so: impl FnMut() -> bool) {
    let at_most = std::time::Duration::from_secs(20);
    assert!(stillwell_testkit::wait_until(at_most, is_so));
}
