//! Processes that the targets of a killed Stillwell have left running.
//!
//! The kernel kills a target with the thread that started it, but not the target's children. Leftover groups
//! are ended where groups are created; this module finds processes by their mark, and works without groups.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::cgroup;
use crate::owner::Owner;
use crate::tree;

/// Largest number of rounds: processes may be started in the meantime.
const ROUNDS_MAX: u32 = 4;

/// Ends all processes and groups that a Stillwell which has ended left behind, where permitted.
pub fn end_leftovers() {
    end_all();
    cgroup::end_leftovers();
}

/// Kills all leftover processes of a Stillwell that has ended, if permitted.
pub(crate) fn end_all() {
    let this_process = Owner::this_process();
    // Processes with this process's own mark are kept: they started it.
    let self_mark = std::env::var_os(tree::MARK).unwrap_or_default();
    let self_mark = self_mark.as_encoded_bytes();
    let is_left = |mark: &[u8]| {
        let owner = std::str::from_utf8(mark).ok().and_then(owner_of);
        mark != self_mark && owner.is_some_and(|owner| owner.is_gone(this_process))
    };
    for _ in 0..ROUNDS_MAX {
        let leftovers = tree::processes()
            .filter(|pid| mark_of(*pid).is_some_and(|mark| is_left(&mark)))
            .filter(|pid| tree::Stat::read(*pid).is_some_and(|stat| !stat.is_zombie()));
        let leftovers: Vec<u32> = leftovers.collect();
        if leftovers.is_empty() {
            return;
        }
        for pid in leftovers {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // It may have ended since, or be another user's.
                kill_process(pid, Signal::KILL).ok();
            }
        }
    }
}

/// Returns a unique mark: its owner and a number. The length is constant, because the length of the environment
/// moves a program's stack and changes its speed.
pub(crate) fn fresh_mark(number: u64) -> String {
    format!("{}-{number:016x}", Owner::this_process())
}

fn owner_of(mark: &str) -> Option<Owner> {
    Owner::parse(mark.rsplit_once('-')?.0)
}

fn mark_of(pid: u32) -> Option<Vec<u8>> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let named = |variable: &[u8]| {
        let mark = variable.strip_prefix(tree::MARK.as_bytes())?;
        mark.strip_prefix(b"=").map(<[u8]>::to_vec)
    };
    variables.find_map(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_owner_and_has_one_length() {
        for number in [0, 7, u64::MAX] {
            let mark = fresh_mark(number);
            assert_eq!(mark.len(), 59);
            assert_eq!(owner_of(&mark), Some(Owner::this_process()));
        }
        assert_eq!(owner_of("0000053900000000000012ab"), None);
    }
}
