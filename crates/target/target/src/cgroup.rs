//! A control group for the target, in each hierarchy of the host.
//!
//! A host may have the v2 hierarchy, several v1 hierarchies, or both. Each has some controllers, so a target
//! may be in several groups. All are in a folder `stillwell` below this process's group, or beside it if v2
//! permits limits only there.

mod locate;
mod make;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use stillwell_scope::clock;
use stillwell_units::{ByteSize, Moment, Nanos, RunId};

use crate::Note;
use crate::pause::pause;
use crate::stop::kill;

/// Interval between checks of a group that empties.
const POLL_INTERVAL: Nanos = Nanos::from_millis(5);
/// Time limit for removing an empty group; later runs sweep the rest.
const REMOVE_MAX: Nanos = Nanos::SECOND;

/// Weight of a target's group in v2, where 100 is the default: the largest.
const WEIGHT: u32 = 10_000;
/// The same in v1, where 1024 is the default.
const SHARES: u32 = 102_400;

/// Limits of the target.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Limits {
    /// Its memory, swap included.
    pub memory: Option<ByteSize>,
    /// Its CPUs, also against its own will.
    pub cpus: Option<Vec<u16>>,
}

/// The target's groups. Dropping it kills the processes in them and removes them, with the groups that the target
/// made below them.
#[derive(Debug)]
pub struct Cgroup {
    folders: CgroupFolders,
    /// Every group made, whether or not it is read.
    made: Vec<PathBuf>,
}

/// Folders of the groups, for reading their files. Some may be missing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CgroupFolders {
    /// In the v2 hierarchy.
    pub unified: Option<PathBuf>,
    /// In the v1 hierarchy with the controller `cpuacct`.
    pub cpuacct: Option<PathBuf>,
    /// In the v1 hierarchy with the controller `memory`.
    pub memory: Option<PathBuf>,
    /// In the v1 hierarchy with the controller `cpuset`.
    pub cpuset: Option<PathBuf>,
}

/// Ends and removes the groups whose makers were killed.
pub(crate) fn end_leftovers() {
    make::end_leftovers();
}

impl Cgroup {
    /// Creates the groups of the run named `run`, with `limits`. Groups whose maker was killed are removed,
    /// with their processes. Returns `None` if no group is possible; the notes list missing features.
    #[must_use]
    pub fn create(run: RunId, limits: &Limits) -> (Option<Self>, Vec<Note>) {
        make::make(run, limits)
    }

    /// Raises the share of CPU time of the groups, where they have the controller, to a hundred times that of a
    /// group without a setting. Returns the weight, by the scale of cgroup v2.
    #[must_use]
    pub fn raise_weight(&self) -> Option<u32> {
        let mut raised = None;
        for folder in &self.made {
            // The group above competes with the other programs of this host.
            for folder in folder.parent().into_iter().chain([folder.as_path()]) {
                let is_written = |name, value: u32| {
                    let path = folder.join(name);
                    path.exists() && fs::write(path, value.to_string()).is_ok()
                };
                if is_written("cpu.weight", WEIGHT) || is_written("cpu.shares", SHARES) {
                    raised = Some(WEIGHT);
                }
            }
        }
        raised
    }

    /// The groups' folders.
    #[must_use]
    pub const fn folders(&self) -> &CgroupFolders {
        &self.folders
    }

    /// Moves a process into the groups. Children that are started with this group are in it from the first
    /// instruction of their program.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        for folder in &self.made {
            fs::write(folder.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }

    /// The processes in the groups and in those below them.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        pids_in(&self.made)
    }

    /// CPU time of the groups, in nanoseconds; exact with `cpuacct`, otherwise to a microsecond.
    #[must_use]
    pub fn cpu_nanos(&self) -> Option<u64> {
        let exact = self.folders.cpuacct.as_deref();
        let exact = exact.and_then(|folder| read_number(&folder.join("cpuacct.usage")));
        exact.or_else(|| {
            let stat = self.folders.unified.as_ref()?.join("cpu.stat");
            Some(read_value(&stat, "usage_usec")? * 1000)
        })
    }

    /// Memory charged to the groups now, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        let number = |folder: &Option<PathBuf>, name| read_number(&folder.as_ref()?.join(name));
        number(&self.folders.memory, "memory.usage_in_bytes")
            .or_else(|| number(&self.folders.unified, "memory.current"))
    }

    /// Kills all processes in the groups and in those below them, and waits until `deadline` for their removal.
    /// Returns true if the groups are empty. Killed children of this process remain zombies until they are waited for.
    pub fn kill_all(&self, deadline: Nanos) -> bool {
        kill_all(&self.made, deadline)
    }

    /// `cgroup.procs` of every group, open for writing.
    pub(crate) fn process_files(&self) -> io::Result<Vec<OwnedFd>> {
        let open = |folder: &PathBuf| {
            let file = OpenOptions::new()
                .write(true)
                .open(folder.join("cgroup.procs"))?;
            Ok(file.into())
        };
        self.made.iter().map(open).collect()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Processes that resist are left to the sweep of a later run.
        self.kill_all(REMOVE_MAX);
        let until = clock::now() + REMOVE_MAX;
        for folder in &self.made {
            remove_before(folder, until);
            if let Some(parent) = folder.parent() {
                // Fails while another run has a group there, which is right.
                drop(fs::remove_dir(parent));
            }
        }
    }
}

/// See [`Cgroup::kill_all`].
fn kill_all(groups: &[PathBuf], deadline: Nanos) -> bool {
    let until = clock::now() + deadline;
    loop {
        for folder in groups {
            // Only v2 kills all at once.
            let kill_file = OpenOptions::new()
                .write(true)
                .open(folder.join("cgroup.kill"));
            kill_file
                .and_then(|mut kill_file| kill_file.write_all(b"1"))
                .unwrap_or_default();
        }
        let alive = pids_in(groups).into_iter().filter(|pid| is_alive(*pid));
        let alive: Vec<u32> = alive.collect();
        if alive.is_empty() {
            return true;
        }
        alive.into_iter().for_each(kill);
        if clock::now() >= until {
            return false;
        }
        pause(POLL_INTERVAL);
    }
}

/// Removes a group and those below it once the kernel permits it, but not after `until`.
fn remove_before(folder: &Path, until: Moment) {
    loop {
        for group in with_inner(folder) {
            // One that has processes is tried again.
            drop(fs::remove_dir(group));
        }
        if !folder.exists() || clock::now() >= until {
            return;
        }
        pause(POLL_INTERVAL);
    }
}

/// Returns the group `folder` and all groups below it, the deepest first. A group that is removed meanwhile may be
/// missing.
fn with_inner(folder: &Path) -> Vec<PathBuf> {
    let mut groups = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(group) = groups.get(next) {
        let entries = fs::read_dir(group).into_iter().flatten().flatten();
        // A symbolic link is no group.
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let inner: Vec<PathBuf> = inner.map(|entry| entry.path()).collect();
        groups.extend(inner);
        next += 1;
    }
    groups.reverse();
    groups
}

/// The processes in `groups` and in those below them.
fn pids_in(groups: &[PathBuf]) -> Vec<u32> {
    let mut pids = Vec::new();
    for folder in groups.iter().flat_map(|group| with_inner(group)) {
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
    }
    // A group shows processes of other namespaces as 0.
    pids.retain(|pid| *pid != 0);
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Returns true if `pid` exists and is not a zombie.
fn is_alive(pid: u32) -> bool {
    crate::tree::Stat::read(pid).is_some_and(|stat| !stat.is_zombie())
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number after `key` on its line.
fn read_value(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
        .and_then(|value| value.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain folders have the places of groups.
    #[test]
    fn the_processes_of_a_group_are_also_those_of_the_groups_below_it() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("group");
        let (inner, deepest) = (group.join("inner"), group.join("inner/deepest"));
        let outside = root.path().join("outside");
        for (folder, pid) in [(&group, 1), (&inner, 2), (&deepest, 3), (&outside, 4)] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("cgroup.procs"), format!("{pid}\n")).unwrap();
        }
        std::os::unix::fs::symlink(&outside, group.join("link")).unwrap();
        let removed = root.path().join("removed");
        assert_eq!(pids_in(&[group.clone(), removed]), [1, 2, 3]);
        assert_eq!(with_inner(&group), [deepest, inner, group]);
    }
}
