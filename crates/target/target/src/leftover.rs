//! Processes of targets and builds that a killed Stillwell has left running.
//!
//! The kernel kills a target with the thread that started it, but neither the target's children nor a build. Leftover
//! cgroups are ended where cgroups are created; this module finds processes by their mark, and works without cgroups.

use std::fs;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::cgroup;
use crate::owner::Owner;
use crate::tree::{self, Stat};

/// Largest number of rounds: processes may be started in the meantime.
const ROUNDS_MAX: u32 = 4;

/// Environment variable that marks a build's processes; children inherit it.
const BUILD_MARK: &str = "STILLWELL_BUILD_OWNER";

/// Returns the environment variable that marks a build's command, and its value. The command must lead a process
/// group in the session of this process. If this process is killed, [`end_leftovers`] kills that group. A daemon
/// that the build has started is in its own session and stays: it may serve builds of this user.
#[must_use]
pub fn build_mark() -> (&'static str, String) {
    let session = Stat::read(std::process::id()).map_or(0, |stat| stat.session);
    (BUILD_MARK, fresh_mark(u64::from(session)))
}

/// Ends all processes and groups that a Stillwell which has ended left behind, where permitted.
pub fn end_leftovers() {
    end_all();
    cgroup::end_leftovers();
}

/// Kills all leftover processes of a Stillwell that has ended, if permitted.
pub(crate) fn end_all() {
    end_marked(tree::MARK, |_, _, _| true, kill_process);
    end_marked(BUILD_MARK, leads_build, kill_process_group);
}

/// Returns true if the process `pid`, marked with `session`, leads a process group of a build, and is no daemon.
fn leads_build(pid: u32, stat: Stat, session: u64) -> bool {
    stat.group == pid && u64::from(stat.session) == session
}

/// Kills the processes with a mark in `variable` whose owner has ended, if `is_wanted` of their process id, their
/// state and the number in their mark.
fn end_marked(
    variable: &str,
    is_wanted: impl Fn(u32, Stat, u64) -> bool,
    kill: impl Fn(Pid, Signal) -> rustix::io::Result<()>,
) {
    let this_process = Owner::this_process();
    // Processes with this process's own mark are kept: they started it.
    let self_mark = std::env::var_os(variable).unwrap_or_default();
    let leftover = |pid: u32| {
        let mark = mark_of(pid, variable).filter(|mark| mark != self_mark.as_encoded_bytes())?;
        let (owner, number) = std::str::from_utf8(&mark).ok().and_then(parse)?;
        let stat = Stat::read(pid).filter(|stat| !stat.is_zombie())?;
        let is_left = owner.is_gone(this_process) && is_wanted(pid, stat, number);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        is_left.then_some(pid)
    };
    for _ in 0..ROUNDS_MAX {
        let leftovers: Vec<Pid> = tree::processes().filter_map(&leftover).collect();
        if leftovers.is_empty() {
            return;
        }
        for pid in leftovers {
            // It may have ended since, or be another user's.
            kill(pid, Signal::KILL).ok();
        }
    }
}

/// Returns a mark: its owner and a number. The length is constant, because the length of the environment
/// moves a program's stack and changes its speed.
pub(crate) fn fresh_mark(number: u64) -> String {
    format!("{}-{number:016x}", Owner::this_process())
}

/// Returns the owner and the number of a mark.
fn parse(mark: &str) -> Option<(Owner, u64)> {
    let (owner, number) = mark.rsplit_once('-')?;
    Some((Owner::parse(owner)?, u64::from_str_radix(number, 16).ok()?))
}

fn mark_of(pid: u32, variable: &str) -> Option<Vec<u8>> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let named = |entry: &[u8]| {
        let mark = entry.strip_prefix(variable.as_bytes())?;
        mark.strip_prefix(b"=").map(<[u8]>::to_vec)
    };
    entries.find_map(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_owner_and_has_one_length() {
        for number in [0, 7, u64::MAX] {
            let mark = fresh_mark(number);
            assert_eq!(mark.len(), 59);
            assert_eq!(parse(&mark), Some((Owner::this_process(), number)));
        }
        assert_eq!(parse("0000053900000000000012ab"), None);
    }
}
