//! A process and its descendants, and the CPU time that they have used.

use std::fs;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process};
use stillwell_units::Nanos;

/// A process and its descendants. Those that have left their parents, as daemons
/// do, are not among them.
#[derive(Debug)]
pub(super) struct Tree {
    root: u32,
    members: Vec<u32>,
}

impl Tree {
    pub(super) fn new(root: u32) -> Self {
        Self {
            root,
            members: vec![root],
        }
    }

    /// Looks who belongs to it.
    pub(super) fn look(&mut self) {
        self.members.clear();
        self.members.push(self.root);
        let mut at = 0;
        while let Some(member) = self.members.get(at) {
            let children_of_member = children(*member);
            let known = &mut self.members;
            for child in children_of_member {
                if !known.contains(&child) {
                    known.push(child);
                }
            }
            at += 1;
        }
    }

    /// CPU time of its members, and of those that have ended and were waited for.
    pub(super) fn cpu(&self) -> Nanos {
        let stats = self.members.iter();
        let stats = stats.filter_map(|pid| fs::read(format!("/proc/{pid}/stat")).ok());
        let ticks: u64 = stats.filter_map(|stat| ticks(&stat)).sum();
        Nanos::new(ticks.saturating_mul(1_000_000_000 / clock_ticks_per_second().max(1)))
    }

    pub(super) fn signal(&self, signal: Signal) {
        let numbers = self.members.iter().map(|pid| i32::try_from(*pid).ok());
        for pid in numbers.flatten().filter_map(Pid::from_raw) {
            // It may have ended meanwhile.
            kill_process(pid, signal).ok();
        }
    }
}

/// The children of all threads of `pid`.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers = lists.flat_map(|list| {
        let numbers = list.split_ascii_whitespace();
        let numbers = numbers.filter_map(|number| number.parse().ok());
        numbers.collect::<Vec<u32>>()
    });
    numbers.collect()
}

/// User and system time, its own and that of the children that it waited for, in
/// the kernel's ticks.
fn ticks(stat: &[u8]) -> Option<u64> {
    // The name may hold anything, even brackets: what follows the last one counts.
    let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let text = std::str::from_utf8(stat.get(after..)?).ok()?;
    let fields = text.split_ascii_whitespace().skip(11).take(4);
    let times: Option<Vec<u64>> = fields.map(|field| field.parse().ok()).collect();
    times
        .filter(|times| times.len() == 4)
        .map(|times| times.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_the_name() {
        let stat = b"7 (a) R) S 3 7 5 0 -1 4194304 1 2 3 4 50 6 700 8000 20 0 1 0 8612 231 1";
        assert_eq!(ticks(stat), Some(8756));
        assert_eq!(ticks(b"7 (a) S 3 7"), None);
        assert_eq!(ticks(b""), None);
    }

    #[test]
    fn this_process_belongs_to_its_tree() {
        let mut tree = Tree::new(std::process::id());
        tree.look();
        assert_eq!(tree.members.first(), Some(&std::process::id()));
        assert!(children(u32::MAX).is_empty());
    }
}
