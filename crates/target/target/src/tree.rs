//! Processes of a target, without a cgroup.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stat {
    state: u8,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// The kernel's ticks between the boot and its start.
    pub(crate) started: u64,
}

impl Stat {
    pub(crate) fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    pub(crate) const fn is_zombie(self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    pub(crate) const fn is_stopped(self) -> bool {
        self.state == b'T'
    }

    fn parse(line: &[u8]) -> Option<Self> {
        // The name may contain brackets: the last one ends it.
        let after = line.iter().rposition(|byte| *byte == b')')? + 1;
        let text = std::str::from_utf8(line.get(after..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self {
            state,
            parent,
            group,
            session,
            started,
        })
    }
}

/// Environment variable that marks a target's processes; children inherit it.
pub(crate) const MARK: &str = "STILLWELL_TARGET";

/// Returns the living processes of the target with the process id `root` and the mark `mark`. These are its
/// descendants, all in its session, and children of this process with the mark: orphaned descendants. Once the
/// target `is_reaped`, its process id may be reused. Then a process in its session needs the mark, unless this
/// process has adopted it: some programs overwrite their environment. Adopted zombies of its session are returned
/// separately.
pub(crate) fn members(root: u32, is_reaped: bool, mark: &str, this_process: u32) -> Members {
    let stats: BTreeMap<u32, Stat> = processes()
        .filter_map(|pid| Some((pid, Stat::read(pid)?)))
        .collect();
    let is_marked = |pid: u32| {
        let entry = format!("{MARK}={mark}");
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == entry.as_bytes())
    };
    members_of(&stats, (root, is_reaped), this_process, is_marked)
}

/// [`members`] of the processes `stats`.
fn members_of(
    stats: &BTreeMap<u32, Stat>,
    (root, is_reaped): (u32, bool),
    this_process: u32,
    is_marked: impl Fn(u32) -> bool,
) -> Members {
    let mut alive: BTreeSet<u32> = BTreeSet::new();
    let mut zombies = Vec::new();
    for (pid, stat) in stats {
        let came_to_us = stat.parent == this_process && *pid != root;
        let is_adopted = came_to_us && stat.session == root;
        if stat.is_zombie() {
            if is_adopted {
                zombies.push(*pid);
            }
            continue;
        }
        let is_of_number = *pid == root || stat.session == root;
        let is_certain = is_adopted || (is_of_number && !is_reaped);
        if is_certain || ((is_of_number || came_to_us) && is_marked(*pid)) {
            alive.insert(*pid);
        }
    }
    // A child may have a lower process id than its parent: repeat until nothing is added.
    loop {
        let is_new = |pid: &u32, stat: &Stat| {
            let is_below = alive.contains(&stat.parent);
            is_below && !alive.contains(pid) && !stat.is_zombie() && *pid != this_process
        };
        let added = stats.iter().filter(|(pid, stat)| is_new(pid, stat));
        let added: Vec<u32> = added.map(|(pid, _)| *pid).collect();
        if added.is_empty() {
            break;
        }
        alive.extend(added);
    }
    Members {
        alive: alive.into_iter().collect(),
        zombies,
    }
}

/// See [`members`].
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) alive: Vec<u32>,
    pub(crate) zombies: Vec<u32>,
}

pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_may_hold_brackets() {
        let stat =
            Stat::parse(b"7 (a) Z 1 (b) S 3 7 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 8612 231 1");
        let stat = stat.unwrap();
        assert_eq!((stat.parent, stat.group, stat.session), (3, 7, 5));
        assert!(!stat.is_zombie());
        assert_eq!(stat.started, 8612);
        let zombie = Stat::parse(b"7 (a) Z 3 7 5 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0");
        assert!(zombie.unwrap().is_zombie());
        assert_eq!(Stat::parse(b"7 (a) Z 3 7 5"), None);
    }

    const THIS_PROCESS: u32 = 1;
    const ROOT: u32 = 5;

    fn process(parent: u32, session: u32) -> Stat {
        Stat {
            state: b'S',
            parent,
            group: session,
            session,
            started: 0,
        }
    }

    /// Processes that are left after the root has ended.
    fn orphans() -> BTreeMap<u32, Stat> {
        BTreeMap::from([
            (7, process(THIS_PROCESS, ROOT)),
            (8, process(7, ROOT)),
            (9, process(THIS_PROCESS, 9)),
            (10, process(2, ROOT)),
        ])
    }

    #[test]
    fn adopted_processes_of_the_session_need_no_mark() {
        let members = members_of(&orphans(), (ROOT, true), THIS_PROCESS, |_| false);
        assert_eq!(members.alive, [7, 8]);
    }

    #[test]
    fn other_processes_of_a_reaped_target_need_the_mark() {
        let members = members_of(&orphans(), (ROOT, true), THIS_PROCESS, |pid| pid >= 9);
        assert_eq!(members.alive, [7, 8, 9, 10]);
    }

    proptest! {
        #[test]
        fn for_all_bytes_nothing_panics(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            Stat::parse(&line);
        }
    }
}
