//! Processes besides a run that use most CPU time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use stillwell_scope::clock;
use stillwell_units::{Moment, float_from_u64};

use crate::target_tree::process::{ProcessStat, numbered, parse_name, parse_stat};
use crate::text;

/// Largest number of processes that are read.
const PROCESSES_MAX: usize = 4096;

/// Smallest share of a CPU that is worth a name.
const SHARE_MIN: f64 = 0.01;

/// A process with its share of one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyProcess {
    /// Its name.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// CPU seconds per second, with those of children that it waited for.
    pub cpu_share: f64,
}

/// CPU times of all processes of the host at one moment.
#[derive(Debug)]
pub struct ProcessSnapshot {
    proc: PathBuf,
    at: Moment,
    processes: BTreeMap<u32, (ProcessStat, String)>,
}

impl ProcessSnapshot {
    /// Reads the processes of this host, 4096 at most.
    #[must_use]
    pub fn take() -> Self {
        Self::of(Path::new("/proc"))
    }

    fn of(proc: &Path) -> Self {
        let mut buffer = Vec::new();
        let processes = numbered(proc).take(PROCESSES_MAX).filter_map(|pid| {
            let line = text::read(&proc.join(pid.to_string()).join("stat"), &mut buffer)?;
            Some((pid, (parse_stat(line)?, parse_name(line)?)))
        });
        Self {
            processes: processes.collect(),
            proc: proc.to_owned(),
            at: clock::now(),
        }
    }

    /// Returns the `count` processes that used most CPU time since this snapshot, without `ours` and their
    /// descendants.
    #[must_use]
    pub fn busiest_since(&self, ours: &[u32], count: usize) -> Vec<BusyProcess> {
        let now = Self::of(&self.proc);
        let secs = now.at.since(self.at).as_secs_f64();
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        let mut all: Vec<BusyProcess> = self
            .used_until(&now)
            .into_iter()
            .filter(|(pid, _)| !now.is_of(*pid, ours))
            .filter_map(|(pid, ticks)| {
                let name = now.processes.get(&pid)?.1.clone();
                let used = float_from_u64(ticks) / float_from_u64(ticks_per_second);
                let cpu_share = used / secs;
                (cpu_share >= SHARE_MIN).then_some(BusyProcess {
                    name,
                    pid,
                    cpu_share,
                })
            })
            .collect();
        all.sort_by(|left, right| right.cpu_share.total_cmp(&left.cpu_share));
        all.truncate(count);
        all
    }

    /// Ticks of each process of `now` since this snapshot. Children that ended between count for the parent that
    /// waited for them, without the ticks that they had before.
    fn used_until(&self, now: &Self) -> BTreeMap<u32, u64> {
        let is_same = |pid: &u32, stat: &ProcessStat| {
            let later = now.processes.get(pid);
            later.is_some_and(|(later, _)| later.start_ticks == stat.start_ticks)
        };
        let mut ended_before: BTreeMap<u32, u64> = BTreeMap::new();
        for (pid, (stat, _)) in &self.processes {
            if is_same(pid, stat) {
                continue;
            }
            // The nearest ancestor that is still there has waited for all in between.
            let mut ancestor = stat.parent;
            let mut steps = self.processes.len();
            while let Some((parent, _)) = self.processes.get(&ancestor)
                && !is_same(&ancestor, parent)
                && steps > 0
            {
                ancestor = parent.parent;
                steps -= 1;
            }
            *ended_before.entry(ancestor).or_default() += ticks(stat);
        }
        let used = now.processes.iter().map(|(pid, (stat, _))| {
            let before = self.processes.get(pid).map(|(before, _)| before);
            let before = before.filter(|before| before.start_ticks == stat.start_ticks);
            let before = before.map_or(0, ticks);
            let ended = ended_before.get(pid).copied().unwrap_or(0);
            (
                *pid,
                ticks(stat).saturating_sub(before).saturating_sub(ended),
            )
        });
        used.collect()
    }

    /// Returns true if `pid` is one of `ours` or a descendant.
    fn is_of(&self, pid: u32, ours: &[u32]) -> bool {
        let mut seen = BTreeSet::new();
        let mut at = pid;
        loop {
            if ours.contains(&at) {
                return true;
            }
            let parent = self.processes.get(&at).map(|(stat, _)| stat.parent);
            match parent {
                Some(parent) if seen.insert(at) => at = parent,
                _ => return false,
            }
        }
    }
}

/// Ticks of a process and of the children that it waited for.
const fn ticks(stat: &ProcessStat) -> u64 {
    let running = stat.user_ticks.saturating_add(stat.system_ticks);
    let children = stat
        .children_user_ticks
        .saturating_add(stat.children_system_ticks);
    running.saturating_add(children)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `stat` of a process with these ticks in user mode and of its children.
    fn snapshot(processes: &[(u32, u32, u64, u64)]) -> ProcessSnapshot {
        let processes = processes
            .iter()
            .map(|(pid, parent, user_ticks, children_user_ticks)| {
                let stat = ProcessStat {
                    parent: *parent,
                    user_ticks: *user_ticks,
                    children_user_ticks: *children_user_ticks,
                    start_ticks: u64::from(*pid),
                    ..ProcessStat::default()
                };
                (*pid, (stat, format!("program-{pid}")))
            });
        ProcessSnapshot {
            proc: PathBuf::from("/nowhere"),
            at: Moment::new(0),
            processes: processes.collect(),
        }
    }

    #[test]
    fn ended_children_count_for_their_parent_from_the_snapshot_on() {
        let before = snapshot(&[(1, 0, 10, 0), (2, 1, 100, 0), (3, 1, 7, 0)]);
        // Process 2 used 30 more and ended; process 4 is new.
        let after = snapshot(&[(1, 0, 11, 130), (3, 1, 7, 0), (4, 1, 5, 0)]);
        let used = before.used_until(&after);
        assert_eq!(used, BTreeMap::from([(1, 31), (3, 0), (4, 5)]));
    }

    /// A shell that waited for a build was reported with 1,207 % of a CPU.
    #[test]
    fn ended_grandchildren_count_for_the_ancestor_that_is_left_from_the_snapshot_on() {
        let before = snapshot(&[(1, 0, 10, 0), (2, 1, 5, 0), (3, 2, 900, 0)]);
        // Process 3 used 20 more and ended, then process 2, which had waited for it.
        let after = snapshot(&[(1, 0, 10, 925)]);
        assert_eq!(before.used_until(&after), BTreeMap::from([(1, 20)]));
    }

    #[test]
    fn descendants_are_known() {
        let all = snapshot(&[(1, 0, 0, 0), (2, 1, 0, 0), (3, 2, 0, 0), (4, 1, 0, 0)]);
        let ours: Vec<u32> = (1..=4).filter(|pid| all.is_of(*pid, &[2])).collect();
        assert_eq!(ours, [2, 3]);
    }

    #[test]
    fn a_busy_process_of_this_host_is_named() {
        let before = ProcessSnapshot::take();
        let until = clock::thread_cpu() + stillwell_units::Nanos::from_millis(300);
        let mut sum = 0_u64;
        while clock::thread_cpu() < until {
            sum = sum.wrapping_add(1);
        }
        assert!(sum > 0);
        let ours = std::process::id();
        let all = before.busiest_since(&[], usize::MAX);
        assert!(all.iter().any(|process| process.pid == ours), "{all:?}");
        let processes = before.busiest_since(&[ours], 3);
        assert!(processes.len() <= 3 && processes.iter().all(|process| process.pid != ours));
    }
}
