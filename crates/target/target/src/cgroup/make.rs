//! Creation of groups, with the available limits.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stillwell_scope::clock;
use stillwell_units::{ByteSize, Nanos, RunId};

use super::locate::{GroupMembership, cgroup_memberships};
use super::{Cgroup, CgroupFolders, Limits, kill_all, pids_in, remove_before};
use crate::Note;
use crate::owner::Owner;

/// The folder of all Stillwell groups, below this process's group.
const PARENT: &str = "stillwell";
/// Prefix of each group's name.
const PREFIX: &str = "run-";
/// Time limit for ending one leftover group.
const SWEEP_MAX: Nanos = Nanos::SECOND;
/// Largest number of retries of a creation whose folders are removed meanwhile.
const RETRIES_MAX: usize = 5;

pub(super) fn make(run: RunId, limits: &Limits) -> (Option<Cgroup>, Vec<Note>) {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let groups = cgroup_memberships(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
    let owner = Owner::this_process();
    let mut maker = Maker {
        name: group_name(owner, run),
        owner,
        folders: CgroupFolders::default(),
        made: Vec::new(),
        refused: None,
    };
    for group in &groups {
        maker.join(group);
    }
    let mut notes = Vec::new();
    let host = read("/proc/meminfo");
    let memory = limits
        .memory
        .map(|requested| capped(requested, &host, &mut notes));
    let limits = Limits {
        memory,
        cpus: limits.cpus.clone(),
    };
    maker.limit(&limits, &mut notes);
    if maker.made.is_empty() {
        let refused = maker.refused.map(|error| error.to_string());
        let why = refused.unwrap_or_else(|| "this host has no cgroups".to_owned());
        return (None, vec![Note::new("a cgroup", why)]);
    }
    let cgroup = Cgroup {
        folders: maker.folders,
        made: maker.made,
    };
    if cgroup.cpu_nanos().is_none() {
        let why = "the cgroup does not report it: the sum over its processes is used";
        notes.push(Note::new("CPU time of the cgroup", why));
    }
    if cgroup.memory_bytes().is_none() {
        let why = "no memory controller is available";
        notes.push(Note::new("memory of the cgroup", why));
    }
    (Some(cgroup), notes)
}

/// Ends and removes the groups of Stillwells that have ended, wherever this process would make its own.
pub(super) fn end_leftovers() {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    for group in cgroup_memberships(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup")) {
        let places = group.folder.ancestors();
        for place in places.take_while(|place| place.starts_with(&group.mount)) {
            sweep(&place.join(PARENT), Owner::this_process());
        }
    }
}

/// Limits memory to this host's, from `meminfo`.
fn capped(requested: ByteSize, meminfo: &str, notes: &mut Vec<Note>) -> ByteSize {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    let host = kilobytes.map_or(requested, |kilobytes: u64| {
        ByteSize::new(kilobytes.saturating_mul(1024))
    });
    if requested <= host {
        return requested;
    }
    let why = format!("this host has {host}, and a larger limit has no effect");
    notes.push(Note::new(format!("{requested} of memory"), why));
    host
}

/// `run-OWNER-RUN`.
fn group_name(owner: Owner, run: RunId) -> String {
    format!("{PREFIX}{owner}-{run}")
}

/// Returns the owner of the group `name`, if it is a Stillwell group.
fn owner_of(name: &str) -> Option<Owner> {
    let (owner, run) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    run.parse::<RunId>().ok()?;
    Owner::parse(owner)
}

struct Maker {
    name: String,
    owner: Owner,
    folders: CgroupFolders,
    made: Vec<PathBuf>,
    refused: Option<io::Error>,
}

impl Maker {
    /// Creates a group in this hierarchy if it has a useful controller.
    fn join(&mut self, group: &GroupMembership) {
        let has = |name: &str| {
            group
                .controllers
                .iter()
                .any(|controller| controller == name)
        };
        let is_unified = group.controllers.is_empty();
        if is_unified && self.folders.unified.is_some() {
            // The hierarchy is mounted twice. A second group would take the target out of the first, which is read.
            return;
        }
        let is_useful = is_unified || has("cpuacct") || has("memory") || has("cpuset");
        if !is_useful {
            return;
        }
        let made = if is_unified {
            self.group_in_unified(group)
        } else {
            self.group_in(&group.folder)
        };
        let folder = match made {
            Ok(folder) => folder,
            Err(error) => {
                self.refused = Some(error);
                return;
            }
        };
        if has("cpuset") && !fill_cpuset(&folder) {
            // A cpuset without CPUs accepts no process.
            drop(fs::remove_dir(&folder));
            return;
        }
        let if_useful = |is_useful: bool| is_useful.then(|| folder.clone());
        self.folders.unified = self
            .folders
            .unified
            .take()
            .or_else(|| if_useful(is_unified));
        self.folders.cpuacct = self
            .folders
            .cpuacct
            .take()
            .or_else(|| if_useful(has("cpuacct")));
        self.folders.memory = self
            .folders
            .memory
            .take()
            .or_else(|| if_useful(has("memory")));
        self.folders.cpuset = self
            .folders
            .cpuset
            .take()
            .or_else(|| if_useful(has("cpuset")));
        self.made.push(folder);
    }

    /// v2 enables controllers only in groups whose parent has no processes. This process's group has, but its
    /// parent may be writable.
    fn group_in_unified(&self, group: &GroupMembership) -> io::Result<PathBuf> {
        let first = self.group_in(&group.folder);
        if let Ok(folder) = &first
            && has_controller(folder, "memory")
        {
            return first;
        }
        let parent = group
            .folder
            .parent()
            .filter(|_| group.folder != group.mount);
        if let Some(parent) = parent
            && let Ok(second) = self.group_in(parent)
        {
            if has_controller(&second, "memory") {
                if let Ok(folder) = &first {
                    remove(folder);
                }
                return Ok(second);
            }
            remove(&second);
        }
        first
    }

    /// Creates the group below `folder`. Another Stillwell that ends removes the folder [`PARENT`] while that is
    /// empty, also after it was created here.
    fn group_in(&self, folder: &Path) -> io::Result<PathBuf> {
        retry_while_missing(|| self.try_group_in(folder))
    }

    fn try_group_in(&self, folder: &Path) -> io::Result<PathBuf> {
        let parent = folder.join(PARENT);
        match fs::create_dir(&parent) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        sweep(&parent, self.owner);
        for folder in [folder, &parent] {
            for controller in ["+memory", "+cpuset", "+cpu"] {
                // Each that is refused is missed, and noted, later.
                drop(fs::write(folder.join("cgroup.subtree_control"), controller));
            }
        }
        if parent.join("cpuset.cpus").exists() && !parent.join("cgroup.type").exists() {
            fill_cpuset(&parent);
        }
        let folder = parent.join(&self.name);
        fs::create_dir(&folder)?;
        Ok(folder)
    }

    fn limit(&self, limits: &Limits, notes: &mut Vec<Note>) {
        if let Some(memory) = limits.memory {
            let bytes = memory.bytes().to_string();
            let file = match (&self.folders.memory, &self.folders.unified) {
                (Some(old), _) => Some((
                    old,
                    "memory.limit_in_bytes",
                    "memory.memsw.limit_in_bytes",
                    &*bytes,
                )),
                (None, Some(unified)) => Some((unified, "memory.max", "memory.swap.max", "0")),
                (None, None) => None,
            };
            let written = file.map(|(folder, name, swap, swap_value)| {
                fs::write(folder.join(name), &bytes)?;
                // Without swap accounting the file does not exist.
                drop(fs::write(folder.join(swap), swap_value));
                Ok(())
            });
            let feature = format!("a memory limit of {memory}");
            note_unless_written(feature, written, notes);
        }
        if let Some(cpus) = &limits.cpus {
            let list: Vec<String> = cpus.iter().map(u16::to_string).collect();
            let unified = self.folders.unified.as_ref();
            let unified = unified.filter(|folder| has_controller(folder, "cpuset"));
            // CPU affinity also limits a target that does not change it, so a missing cpuset needs no note.
            if let Some(folder) = self.folders.cpuset.as_ref().or(unified) {
                drop(fs::write(folder.join("cpuset.cpus"), list.join(",")));
            }
        }
    }
}

/// Repeats `attempt` while a folder is missing.
fn retry_while_missing<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..RETRIES_MAX {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
    }
    attempt()
}

fn note_unless_written(feature: String, written: Option<io::Result<()>>, notes: &mut Vec<Note>) {
    match written {
        Some(Ok(())) => {}
        Some(Err(error)) => notes.push(Note::new(feature, error)),
        None => notes.push(Note::new(feature, "no cgroup has the controller")),
    }
}

/// Copies the parent's settings into a v1 cpuset; a new one is empty.
fn fill_cpuset(folder: &Path) -> bool {
    ["cpuset.cpus", "cpuset.mems"].iter().all(|name| {
        let read = |folder: &Path| fs::read_to_string(folder.join(name)).unwrap_or_default();
        if !read(folder).trim().is_empty() {
            return true;
        }
        let above = folder.parent().map(read).unwrap_or_default();
        fs::write(folder.join(name), above.trim()).is_ok()
    })
}

fn has_controller(folder: &Path, name: &str) -> bool {
    let text = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    text.split_whitespace().any(|controller| controller == name)
}

fn remove(folder: &Path) {
    drop(fs::remove_dir(folder));
    if let Some(parent) = folder.parent() {
        drop(fs::remove_dir(parent));
    }
}

/// Ends and removes the groups whose makers were killed before they could.
fn sweep(parent: &Path, this_process: Owner) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let leftovers = entries.filter(|entry| {
        let name = entry.file_name();
        let owner = name.to_str().and_then(owner_of);
        owner.is_some_and(|owner| owner.is_gone(this_process))
    });
    for entry in leftovers {
        let group = [entry.path()];
        if pids_in(&group).contains(&std::process::id()) {
            // An ended run's target has started this process: keep its group.
            continue;
        }
        // Remaining processes are left to the next sweep.
        kill_all(&group, SWEEP_MAX);
        remove_before(&group[0], clock::now() + SWEEP_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_above_that_of_the_host_is_capped_with_a_note() {
        let meminfo = "MemFree: 1 kB\nMemTotal:       2048 kB\n";
        let mut notes = Vec::new();
        let mut limit = |requested| capped(ByteSize::mib(requested), meminfo, &mut notes);
        assert_eq!([limit(1), limit(2), limit(3)], [1, 2, 2].map(ByteSize::mib));
        assert_eq!(notes.len(), 1);
        assert_eq!(capped(ByteSize::mib(3), "", &mut notes), ByteSize::mib(3));
    }

    /// Plain folders have the places of two mount points.
    #[test]
    fn a_hierarchy_that_is_mounted_twice_has_one_group() {
        let root = tempfile::tempdir().unwrap();
        let (owner, run) = (Owner::this_process(), RunId::from_bytes([0xa5; 16]));
        let mut maker = Maker {
            name: group_name(owner, run),
            owner,
            folders: CgroupFolders::default(),
            made: Vec::new(),
            refused: None,
        };
        for name in ["first", "second"] {
            let mount = root.path().join(name);
            fs::create_dir(&mount).unwrap();
            maker.join(&GroupMembership {
                controllers: Vec::new(),
                folder: mount.clone(),
                mount,
            });
        }
        assert_eq!(maker.made.len(), 1, "{:?}", maker.refused);
        assert_eq!(maker.folders.unified.as_ref(), maker.made.first());
        assert!(maker.made[0].starts_with(root.path().join("first")));
        assert!(!root.path().join("second").join(PARENT).exists());
    }

    #[test]
    fn a_group_is_created_although_the_folder_above_is_removed_meanwhile() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join(PARENT);
        // So many times another Stillwell ends between the creation of the two folders.
        let create = |mut ends: usize| {
            retry_while_missing(|| {
                fs::create_dir_all(&parent)?;
                if ends > 0 {
                    ends -= 1;
                    fs::remove_dir(&parent)?;
                }
                fs::create_dir(parent.join("run"))
            })
        };
        create(RETRIES_MAX).unwrap();
        let error = create(0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        fs::remove_dir_all(&parent).unwrap();
        let error = create(RETRIES_MAX + 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    /// Plain folders have the places of groups.
    #[test]
    fn a_leftover_group_is_removed_with_the_groups_below_it() {
        let root = tempfile::tempdir().unwrap();
        let (this_process, run) = (Owner::this_process(), RunId::from_bytes([0xa5; 16]));
        // A process with the number of this one that was started earlier.
        let text = this_process.to_string();
        let (process, _) = text.rsplit_once('-').unwrap();
        let ended = Owner::parse(&format!("{process}-0000000000000000")).unwrap();
        for owner in [ended, this_process] {
            let group = root.path().join(group_name(owner, run));
            fs::create_dir_all(group.join("inner/deepest")).unwrap();
            fs::create_dir(group.join("beside")).unwrap();
        }
        sweep(root.path(), this_process);
        let left = fs::read_dir(root.path()).unwrap().flatten();
        let left: Vec<PathBuf> = left.map(|entry| entry.path()).collect();
        assert_eq!(left, [root.path().join(group_name(this_process, run))]);
        assert!(left[0].join("inner/deepest").exists());
    }

    #[test]
    fn only_generated_names_have_an_owner() {
        let (owner, run) = (Owner::this_process(), RunId::from_bytes([0xa5; 16]));
        let name = group_name(owner, run);
        assert_eq!(owner_of(&name), Some(owner));
        for name in [
            String::new(),
            run.to_string(),
            format!("run-{run}"),
            format!("run-{owner}"),
            format!("{owner}-{run}"),
            format!("run-{owner}-{run}.scope"),
            format!("run-{owner}-{run}-2"),
            format!("Run-{owner}-{run}"),
            format!("run-u42-{run}"),
        ] {
            assert_eq!(owner_of(&name), None, "{name}");
        }
    }
}
