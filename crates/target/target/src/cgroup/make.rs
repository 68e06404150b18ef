//! Making groups, with what limits can be had.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stillwell_scope::clock;
use stillwell_units::{ByteSize, Nanos, RunId};

use super::locate::{Own, own_groups};
use super::{Cgroup, CgroupFolders, Limits, kill_all, pids_in, remove_before};
use crate::Note;
use crate::owner::Owner;

/// The folder of all our groups, below our own group.
const PARENT: &str = "stillwell";
/// How the name of every group of ours begins.
const PREFIX: &str = "run-";
/// How long to wait for the end of one group that a killed run left.
const SWEEP_MAX: Nanos = Nanos::SECOND;

pub(super) fn make(run: RunId, limits: &Limits) -> (Option<Cgroup>, Vec<Note>) {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let own = own_groups(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
    let owner = Owner::ourselves();
    let mut maker = Maker {
        name: group_name(owner, run),
        owner,
        folders: CgroupFolders::default(),
        made: Vec::new(),
        refused: None,
    };
    for own in &own {
        maker.join(own);
    }
    let mut notes = Vec::new();
    let host = read("/proc/meminfo");
    let memory = limits.memory.map(|asked| capped(asked, &host, &mut notes));
    let limits = Limits {
        memory,
        cpus: limits.cpus.clone(),
    };
    maker.limit(&limits, &mut notes);
    if maker.made.is_empty() {
        let refused = maker.refused.map(|error| error.to_string());
        let why = refused.unwrap_or_else(|| "this host has no cgroups".to_owned());
        return (None, vec![Note::new("a cgroup of its own", why)]);
    }
    let cgroup = Cgroup {
        folders: maker.folders,
        made: maker.made,
    };
    if cgroup.cpu_nanos().is_none() {
        let why = "the cgroup counts none: the sum over its processes is used";
        notes.push(Note::new("CPU time of the cgroup", why));
    }
    if cgroup.memory_bytes().is_none() {
        let why = "no memory controller can be had here";
        notes.push(Note::new("memory of the cgroup", why));
    }
    (Some(cgroup), notes)
}

/// No more memory than this host has, of which `meminfo` tells.
fn capped(asked: ByteSize, meminfo: &str, notes: &mut Vec<Note>) -> ByteSize {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    let host = kilobytes.map_or(asked, |kilobytes: u64| {
        ByteSize::new(kilobytes.saturating_mul(1024))
    });
    if asked <= host {
        return asked;
    }
    let why = format!("this host has {host}, and nothing is held back above that");
    notes.push(Note::new(format!("{asked} of memory"), why));
    host
}

/// `run-OWNER-RUN`.
fn group_name(owner: Owner, run: RunId) -> String {
    format!("{PREFIX}{owner}-{run}")
}

/// Whose the group `name` is, if it is one of ours.
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
    /// Makes a group in this hierarchy if it gives anything that is of use.
    fn join(&mut self, own: &Own) {
        let has = |name: &str| own.controllers.iter().any(|controller| controller == name);
        let is_unified = own.controllers.is_empty();
        let is_useful = is_unified || has("cpuacct") || has("memory") || has("cpuset");
        if !is_useful {
            return;
        }
        let made = if is_unified {
            self.group_in_unified(own)
        } else {
            self.group_in(&own.folder)
        };
        let folder = match made {
            Ok(folder) => folder,
            Err(error) => {
                self.refused = Some(error);
                return;
            }
        };
        if has("cpuset") && !fill_cpuset(&folder) {
            // A group without CPUs lets nobody in.
            drop(fs::remove_dir(&folder));
            return;
        }
        let wanted = |is_wanted: bool| is_wanted.then(|| folder.clone());
        self.folders.unified = self.folders.unified.take().or_else(|| wanted(is_unified));
        self.folders.cpuacct = self
            .folders
            .cpuacct
            .take()
            .or_else(|| wanted(has("cpuacct")));
        self.folders.memory = self.folders.memory.take().or_else(|| wanted(has("memory")));
        self.folders.cpuset = self.folders.cpuset.take().or_else(|| wanted(has("cpuset")));
        self.made.push(folder);
    }

    /// v2 gives controllers only to groups whose parent holds no process itself,
    /// which our own group does; its parent may be ours as well.
    fn group_in_unified(&self, own: &Own) -> io::Result<PathBuf> {
        let first = self.group_in(&own.folder);
        if let Ok(folder) = &first
            && has_controller(folder, "memory")
        {
            return first;
        }
        let parent = own.folder.parent().filter(|_| own.folder != own.mount);
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

    fn group_in(&self, own: &Path) -> io::Result<PathBuf> {
        let parent = own.join(PARENT);
        match fs::create_dir(&parent) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        sweep(&parent, self.owner);
        for folder in [own, &parent] {
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
                // Without swap accounting there is nothing to write to.
                drop(fs::write(folder.join(swap), swap_value));
                Ok(())
            });
            let what = format!("a memory limit of {memory}");
            note_unless_written(what, written, notes);
        }
        if let Some(cpus) = &limits.cpus {
            let list: Vec<String> = cpus.iter().map(u16::to_string).collect();
            let unified = self.folders.unified.as_ref();
            let unified = unified.filter(|folder| has_controller(folder, "cpuset"));
            // Affinity holds the subject too unless it changes that itself, so a
            // missing cpuset is not worth a note.
            if let Some(folder) = self.folders.cpuset.as_ref().or(unified) {
                drop(fs::write(folder.join("cpuset.cpus"), list.join(",")));
            }
        }
    }
}

fn note_unless_written(what: String, written: Option<io::Result<()>>, notes: &mut Vec<Note>) {
    match written {
        Some(Ok(())) => {}
        Some(Err(error)) => notes.push(Note::new(what, error)),
        None => notes.push(Note::new(what, "there is no cgroup that could hold it")),
    }
}

/// Gives a v1 cpuset what its parent has; a new one has nothing.
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
fn sweep(parent: &Path, ourselves: Owner) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let left = entries.filter(|entry| {
        let name = entry.file_name();
        let owner = name.to_str().and_then(owner_of);
        owner.is_some_and(|owner| owner.is_gone(ourselves))
    });
    for entry in left {
        let group = [entry.path()];
        if pids_in(&group).contains(&std::process::id()) {
            // Somebody below a subject of the dead has started us: not ours to end.
            continue;
        }
        // What resists both is left to the next sweep.
        kill_all(&group, SWEEP_MAX);
        remove_before(&group[0], clock::now() + SWEEP_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_above_that_of_the_host_is_capped_and_told() {
        let meminfo = "MemFree: 1 kB\nMemTotal:       2048 kB\n";
        let mut notes = Vec::new();
        let mut given = |asked| capped(ByteSize::mib(asked), meminfo, &mut notes);
        assert_eq!([given(1), given(2), given(3)], [1, 2, 2].map(ByteSize::mib));
        assert_eq!(notes.len(), 1);
        assert_eq!(capped(ByteSize::mib(3), "", &mut notes), ByteSize::mib(3));
    }

    #[test]
    fn only_names_that_we_give_are_ours() {
        let (owner, run) = (Owner::ourselves(), RunId::from_bytes([0xa5; 16]));
        let name = group_name(owner, run);
        assert_eq!(owner_of(&name), Some(owner));
        for other in [
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
            assert_eq!(owner_of(&other), None, "{other}");
        }
    }
}
