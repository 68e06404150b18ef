//! Runs a command and makes it slower by a known share, to test that the change is detected.
//!
//! [`Slowdown::Burn`] spins until this process has used a share of the CPU time of the command's
//! process tree. It reads the tree's time from the kernel every 10 ms, exact over time though
//! counted in ticks. The CPU time of its reads counts towards the share. It spins on one CPU, and
//! cannot add more than that one gives.
//!
//! [`Slowdown::Pause`] stops the tree for a part of every 20 ms, and corrects for the true length
//! of each stop.
//!
//! The command stays in our process group and cgroups, gets the signals that we get, and is
//! killed when we end.

mod tree;

use std::ffi::OsString;
use std::fs;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::Poll;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{Moment, Nanos};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::oneshot;

use self::tree::Tree;

/// Interval at which the usage of the tree is read.
const LOOK: Nanos = Nanos::from_millis(10);

/// After so many looks it is looked at who belongs to the tree.
const LOOKS_FOR_MEMBERS: u32 = 10;

/// One time of running and being stopped.
const PERIOD: Nanos = Nanos::from_millis(20);

/// Signals that the command gets when this process gets them.
const PASSED: [Signal; 6] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
];

/// A way to make a command slower, by a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slowdown {
    /// Use so much CPU time for what the command and its descendants use.
    Burn(f64),
    /// Stop the command and its descendants for so much of the time.
    Pause(f64),
}

/// The reason why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SlowdownError {
    /// The command does not start.
    #[error("start the command")]
    Start(#[source] io::Error),
    /// The kernel's number of the command is none.
    #[error("the command has no process ID")]
    NoNumber,
    /// The command cannot be watched.
    #[error("watch the command")]
    Watch(#[source] io::Error),
    /// Signals cannot be listened for.
    #[error("listen for signals")]
    Signals(#[source] io::Error),
    /// The end of the command cannot be waited for.
    #[error("wait for the command")]
    Wait(#[source] io::Error),
    /// The command cannot be tied to its parent.
    #[error("end with the parent process")]
    Tie(#[source] io::Error),
    /// The parent ended before the command was tied to it.
    #[error("process {parent} has ended")]
    ParentEnded {
        /// The parent.
        parent: u32,
    },
    /// There is nothing to run.
    #[error("there is no command")]
    NoCommand,
    /// The program does not run.
    #[error("run {}", program.display())]
    Run {
        /// The program.
        program: OsString,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Runs the command to its end, slowed down as requested.
///
/// # Errors
///
/// [`SlowdownError`] where it does not start or cannot be watched.
pub fn run_slowed(
    command: &mut Command,
    how: Option<Slowdown>,
) -> Result<ExitStatus, SlowdownError> {
    let process = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_ignored = |signal: &Signal| ignores(&process, *signal);
    let (ignored, early) = PASSED.into_iter().partition(is_ignored);
    // Before the command starts: an early signal would end this process alone.
    let passing = pass_signals_on(early, ignored);
    let (pass_to, signals) = passing.map_err(SlowdownError::Signals)?;
    let mut child = command.spawn().map_err(SlowdownError::Start)?;
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let number = number.ok_or(SlowdownError::NoNumber)?;
    let descriptor = pidfd_open(number, PidfdFlags::empty());
    let descriptor = descriptor.map_err(|error| SlowdownError::Watch(error.into()))?;
    let descriptor = Arc::new(descriptor);
    // The thread is gone only where it could not listen.
    pass_to.send(Arc::clone(&descriptor)).ok();
    let mut tree = Tree::new(child.id());
    match how {
        Some(Slowdown::Burn(share)) => burn(share, &mut tree, &descriptor),
        Some(Slowdown::Pause(share)) => pause(share, &mut tree, &descriptor),
        None => while !has_ended(&descriptor, Nanos::SECOND) {},
    }
    let status = child.wait().map_err(SlowdownError::Wait)?;
    signals.close(Nanos::SECOND);
    Ok(status)
}

/// Becomes the command, which the kernel kills when `parent` ends; comes back only with
/// the reason why not.
#[must_use]
pub fn become_tied(command: &[OsString], parent: u32) -> SlowdownError {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return SlowdownError::Tie(error.into());
    }
    // It may have ended before we were tied to it.
    let now = getppid().map_or(0, |pid| pid.as_raw_pid().unsigned_abs());
    if now != parent {
        return SlowdownError::ParentEnded { parent };
    }
    let [program, words @ ..] = command else {
        return SlowdownError::NoCommand;
    };
    let source = Command::new(program).args(words).exec();
    SlowdownError::Run {
        program: program.clone(),
        source,
    }
}

/// Forwards signals to the command whose descriptor is sent, also those of `early` that came before
/// it. Signals that this process ignores, as under `nohup`, are `ignored`: they get their handlers
/// after the command has started, which then ignores them, too. A thread of the returned scope
/// forwards them.
fn pass_signals_on(
    early: Vec<Signal>,
    ignored: Vec<Signal>,
) -> io::Result<(oneshot::Sender<Arc<OwnedFd>>, Scope)> {
    let mut scope = Scope::new(&Token::new());
    let (pass_to, started) = oneshot::channel::<Arc<OwnedFd>>();
    // Nothing is ever sent: that the sender has gone says that all is in place.
    let (installing, installed) = sync_channel::<()>(1);
    scope.worker(Place::default(), "signals", move |token| async move {
        let mut listeners = listen_for(&early)?;
        drop(installing);
        let Ok(child) = started.await else {
            // No command was started.
            return Ok(());
        };
        listeners.extend(listen_for(&ignored)?);
        loop {
            // Both are cancel-safe: a signal that came stays noted.
            let came = tokio::select! {
                () = token.cancelled() => return Ok(()),
                came = next_signal(&mut listeners) => came,
            };
            // It may have ended meanwhile.
            pidfd_send_signal(&*child, came).ok();
        }
    })?;
    installed.recv().unwrap_or_default();
    Ok((pass_to, scope))
}

/// Installs the handlers of `signals`.
fn listen_for(signals: &[Signal]) -> io::Result<Vec<(unix::Signal, Signal)>> {
    let mut listeners = Vec::new();
    for signal in signals {
        let listener = unix::signal(SignalKind::from_raw(signal.as_raw()))?;
        listeners.push((listener, *signal));
    }
    Ok(listeners)
}

/// Waits for the next signal. Cancel-safe.
async fn next_signal(listeners: &mut [(unix::Signal, Signal)]) -> Signal {
    let next = poll_fn(|task| {
        for (listener, signal) in &mut *listeners {
            if listener.poll_recv(task).is_ready() {
                return Poll::Ready(*signal);
            }
        }
        Poll::Pending
    });
    next.await
}

/// Returns true if the process with this `/proc/PID/status` ignores `signal`.
fn ignores(status: &str, signal: Signal) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// Uses `share` of the CPU time that the tree uses, until its root has ended.
fn burn(share: f64, tree: &mut Tree, root: &OwnedFd) {
    let cpu_before = clock::process_cpu();
    let mut looks = 0;
    while !has_ended(root, LOOK) {
        if looks % LOOKS_FOR_MEMBERS == 0 {
            tree.look();
        }
        looks += 1;
        let self_cpu = Nanos::new(clock::process_cpu().as_u64() - cpu_before.as_u64());
        spin(unpaid_share(share, tree.cpu(), self_cpu, LOOK));
    }
}

/// Stops the tree for `share` of the time, until its root has ended.
fn pause(share: f64, tree: &mut Tree, root: &OwnedFd) {
    let start = clock::now();
    let mut stopped = Nanos::ZERO;
    while !has_ended(root, PERIOD) {
        let length = unpaid_share(share, clock::now().since(start), stopped, PERIOD);
        if length == Nanos::ZERO {
            continue;
        }
        tree.look();
        let before = clock::now();
        tree.signal(Signal::STOP);
        let ended = has_ended(root, length);
        tree.signal(Signal::CONT);
        stopped += clock::now().since(before);
        if ended {
            break;
        }
    }
}

/// The part of `share` of `of` that is not yet `paid`; at most `longest` at a time.
fn unpaid_share(share: f64, of: Nanos, paid: Nanos, longest: Nanos) -> Nanos {
    let whole = of.as_secs_f64() * share;
    Nanos::from_secs_f64((whole - paid.as_secs_f64()).max(0.0)).min(longest)
}

/// Uses so much CPU time.
fn spin(length: Nanos) {
    let until = clock::thread_cpu() + length;
    while clock::thread_cpu() < until {
        std::hint::spin_loop();
    }
}

/// Waits until the process behind `descriptor` has ended, at most `at_most`. Returns true if it
/// has.
fn has_ended(descriptor: &OwnedFd, at_most: Nanos) -> bool {
    let until = clock::now() + at_most;
    let descriptor = descriptor.as_fd();
    let mut watched = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    loop {
        match poll(&mut watched, Some(&timespec(until))) {
            Ok(ready) if ready > 0 => return true,
            Ok(_) if clock::now() >= until => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Its state is no longer known.
            Err(_) => return true,
        }
    }
}

/// From now until then.
fn timespec(until: Moment) -> Timespec {
    let (tv_sec, nanos) = until.since(clock::now()).split_seconds();
    Timespec {
        tv_sec,
        tv_nsec: nanos.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use rustix::process::{getpid, kill_process};

    use super::*;

    /// Set in a process that ignores SIGUSR2.
    const IGNORING: &str = "STILLWELL_TEST_IGNORING";

    /// Such a signal ended this process alone, and the command went on.
    #[test]
    fn a_signal_that_comes_before_the_command_starts_is_passed_on() {
        let (pass_to, signals) = pass_signals_on(vec![Signal::USR1], Vec::new()).unwrap();
        kill_process(getpid(), Signal::USR1).unwrap();
        let mut command = Command::new("tail");
        let mut child = command.args(["-f", "/dev/null"]).spawn().unwrap();
        let descriptor = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        assert!(pass_to.send(Arc::new(descriptor)).is_ok());
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::USR1.as_raw()));
        signals.close(Nanos::SECOND);
    }

    /// A handler that was there before the command became the default action in it: under `nohup`,
    /// SIGHUP ended it.
    #[test]
    fn a_command_ignores_the_signals_that_this_process_ignores() {
        if std::env::var_os(IGNORING).is_some() {
            let mut command = Command::new("sh");
            command.args(["-c", "kill -USR2 $$; exit 7"]);
            let status = run_slowed(&mut command, None).unwrap();
            assert_eq!(status.code(), Some(7), "{status}");
            return;
        }
        let name = "slowdown::tests::a_command_ignores_the_signals_that_this_process_ignores";
        let mut again = Command::new("sh");
        again
            .args(["-c", "trap '' USR2; exec \"$@\"", "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(IGNORING, "1");
        let ended = again.output().unwrap();
        let output = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{output}");
        assert!(output.contains("1 passed"), "{output}");
    }

    #[test]
    fn the_unpaid_share_is_the_share_less_what_was_paid() {
        let millis = Nanos::from_millis;
        for (of, paid, expected) in [
            (0, 0, 0),
            (1000, 0, 10),
            (1000, 45, 5),
            (1000, 50, 0),
            (1000, 51, 0),
            (100, 0, 5),
        ] {
            let slice = unpaid_share(0.05, millis(of), millis(paid), millis(10));
            assert_eq!(slice, millis(expected), "{of} {paid}");
        }
    }

    #[test]
    fn the_debt_is_paid_within_the_last_slice() {
        for percent in [1_u32, 5, 20, 49] {
            let share = f64::from(percent) / 100.0;
            let (mut used, mut paid) = (Nanos::ZERO, Nanos::ZERO);
            for step in 0..500 {
                used += Nanos::from_millis(step * 7 % 11);
                paid += unpaid_share(share, used, paid, LOOK);
            }
            let expected = used.as_secs_f64() * share;
            assert!(
                (paid.as_secs_f64() - expected).abs() < 1e-6,
                "{paid} {expected}"
            );
        }
    }
}
