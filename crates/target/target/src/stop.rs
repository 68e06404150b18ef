//! Stopping a target with all its descendants.

use std::os::fd::AsFd;

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group, pidfd_send_signal};
use stillwell_plan::target::StopPlan;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos, count};

use crate::pause::{pause, readable_before};
use crate::target_process::{Owned, Process, number};
use crate::{Exit, TargetProcess, kernel, tree};

/// Time limit of the kernel for ending killed processes.
const KILL_MAX: Nanos = Nanos::from_secs(5);
const LOOK_AGAIN: Nanos = Nanos::from_millis(5);

/// Result of a stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stopped {
    /// Exit status of the first process; `None` if Stillwell did not start it, or the kernel did not end it.
    pub exit: Option<Exit>,
    /// It had to be killed.
    pub killed: bool,
    /// Number of remaining descendants, which were killed too.
    pub left_behind: u32,
}

pub(crate) fn stop(target_process: &TargetProcess, plan: StopPlan) -> Stopped {
    let owned = target_process.inner.process.as_ref();
    let owned = owned.and_then(|process| Some((process, process.owned.as_ref()?)));
    let Some((process, owned)) = owned else {
        return Stopped {
            exit: target_process.exited(),
            killed: false,
            left_behind: 0,
        };
    };
    if process.exited().is_none() {
        // It may end between the look and the signal.
        pidfd_send_signal(&process.descriptor, number(plan.signal)).ok();
        continue_stopped(process, owned);
        readable_before(process.descriptor.as_fd(), clock::now() + plan.grace);
    }
    let killed = process.exited().is_none();
    let left_behind = kill_tree(process, owned);
    Stopped {
        exit: process.exited(),
        killed,
        left_behind,
    }
}

/// Continues the stopped processes of the tree: the first one may wait for the others to end.
fn continue_stopped(process: &Process, owned: &Owned) {
    let is_stopped = |pid: &u32| tree::Stat::read(*pid).is_some_and(tree::Stat::is_stopped);
    let stopped = survivors(process, owned).into_iter().filter(is_stopped);
    for pid in stopped.filter_map(as_pid) {
        // A stopped process receives no other signal before this one. It may have ended since.
        kill_process(pid, Signal::CONT).ok();
    }
}

/// Kills the whole tree and waits for its end, but not longer than
/// [`KILL_MAX`]. Gives the number of processes killed besides the first.
pub(crate) fn kill_tree(process: &Process, owned: &Owned) -> u32 {
    let until = clock::now() + KILL_MAX;
    let mut killed: Vec<u32> = Vec::new();
    loop {
        // Processes that fork in the meantime are caught in the next round, or at once by the cgroup.
        let alive = survivors(process, owned);
        for pid in &alive {
            kill(*pid);
            if !killed.contains(pid) {
                killed.push(*pid);
            }
        }
        if process.exited().is_none() {
            kill_process_group(process.pid, Signal::KILL).ok();
        }
        if let Some(cgroup) = &owned.cgroup {
            // The next round shows if it was enough.
            cgroup.kill_all(Nanos::ZERO);
        }
        let is_over = process.exited().is_some() && alive.is_empty();
        if is_over || clock::now() >= until {
            break;
        }
        wait_a_little(process, until);
        reap_all(&killed, process);
    }
    reap_all(&killed, process);
    let descendants = killed.iter().filter(|pid| **pid != process.number());
    count(descendants.count())
}

/// Sends `signal` to the whole tree.
pub(crate) fn signal_all(process: &Process, owned: &Owned, signal: Signal) {
    for pid in survivors(process, owned).into_iter().filter_map(as_pid) {
        // It may have ended since.
        kill_process(pid, signal).ok();
    }
}

/// Returns the living processes of the tree.
pub(crate) fn survivors(process: &Process, owned: &Owned) -> Vec<u32> {
    let is_reaped = process.exited().is_some();
    let this_process = getpid().as_raw_pid().unsigned_abs();
    let members = tree::members(process.number(), is_reaped, &owned.mark, this_process);
    for zombie in members.zombies {
        reap(zombie);
    }
    let mut alive = members.alive;
    if let Some(cgroup) = &owned.cgroup {
        let in_group = cgroup.pids().into_iter();
        alive.extend(in_group.filter(|pid| {
            *pid != this_process && tree::Stat::read(*pid).is_some_and(|stat| !stat.is_zombie())
        }));
    }
    alive.sort_unstable();
    alive.dedup();
    alive
}

fn wait_a_little(process: &Process, until: Moment) {
    let next = (clock::now() + LOOK_AGAIN).min(until);
    if process.exited().is_some() {
        pause(next.since(clock::now()));
    } else {
        readable_before(process.descriptor.as_fd(), next);
    }
}

/// Waits for those of `killed` that are children of this process.
fn reap_all(killed: &[u32], process: &Process) {
    let descendants = killed.iter().filter(|pid| **pid != process.number());
    descendants.for_each(|pid| reap(*pid));
}

fn reap(pid: u32) {
    if let Some(pid) = as_pid(pid) {
        // An error means that it is not a child, or was already waited for.
        drop(kernel::reap(pid));
    }
}

/// Kills the process, unless it has ended.
pub(crate) fn kill(pid: u32) {
    if let Some(pid) = as_pid(pid) {
        kill_process(pid, Signal::KILL).ok();
    }
}

fn as_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
