//! `stillwell hinder`: runs a command and makes it worse by a known share, so
//! that it can be seen whether the change is found.
//!
//! `--burn 5%` spins until this process has used 5 % of the CPU time that the
//! command's process tree has. The tree's time is read from the kernel every 10 ms,
//! exact over time though told in ticks; this process's own looking counts towards
//! the share, so what is added in the end is the share and nothing else. It spins
//! on one CPU, and cannot add more than that one gives.
//!
//! `--pause 5%` stops the tree for a millisecond of every 20, and keeps account of
//! how long that really was.
//!
//! The command stays in our process group and groups of control, gets the signals
//! that we get, and is killed when we end. How it ends, we end.

mod tree;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{Moment, Nanos};
use tokio::signal::unix::{SignalKind, signal};

use self::tree::Tree;
use crate::arguments::HinderArguments;
use crate::exit::{CommandError, Exit};

/// How often what the tree has used is looked at.
const LOOK: Nanos = Nanos::from_millis(10);

/// After so many looks it is looked at who belongs to the tree.
const LOOKS_FOR_MEMBERS: u32 = 10;

/// One time of running and being stopped.
const PERIOD: Nanos = Nanos::from_millis(20);

/// Runs the command to its end, and ends as it did.
pub(crate) fn run(arguments: &HinderArguments) -> Result<ExitCode, CommandError> {
    let failed = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    if let Some(parent) = arguments.how.tied_to {
        return Err(failed(become_tied(arguments, parent)));
    }
    hinder(arguments).map_err(failed)
}

fn hinder(arguments: &HinderArguments) -> anyhow::Result<ExitCode> {
    let own = std::env::current_exe().context("find this program")?;
    let mut child = Command::new(own)
        .args(["hinder", "--tied-to", &std::process::id().to_string(), "--"])
        .args(&arguments.command)
        .spawn()
        .context("start the command")?;
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let number = number.context("the command has no number")?;
    let descriptor =
        Arc::new(pidfd_open(number, PidfdFlags::empty()).context("watch the command")?);
    let signals = pass_signals_on(Arc::clone(&descriptor)).context("listen for signals")?;
    let mut tree = Tree::new(child.id());
    match (arguments.how.burn, arguments.how.pause) {
        (Some(share), _) => burn(share.share(), &mut tree, &descriptor),
        (None, Some(share)) => pause(share.share(), &mut tree, &descriptor),
        (None, None) => while !has_ended(&descriptor, Nanos::SECOND) {},
    }
    let status = child.wait().context("wait for the command")?;
    signals.close(Nanos::SECOND);
    Ok(exit_code(status))
}

/// Becomes the command; comes back only with the reason why not.
fn become_tied(arguments: &HinderArguments, parent: u32) -> anyhow::Error {
    let tied = || {
        set_parent_process_death_signal(Some(Signal::KILL)).context("die with our parent")?;
        // It may have ended before we were tied to it.
        let now = getppid().map_or(0, |pid| pid.as_raw_pid().unsigned_abs());
        if now != parent {
            bail!("process {parent} has ended");
        }
        let [program, words @ ..] = arguments.command.as_slice() else {
            bail!("there is no command");
        };
        let error = Command::new(program).args(words).exec();
        Err(error).with_context(|| format!("run {}", program.display()))
    };
    match tied() {
        Ok(()) => anyhow::anyhow!("the command was not run"),
        Err(error) => error,
    }
}

/// What a shell would say.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => Exit::Interrupted(signal).code(),
        (None, None) => u8::MAX,
    };
    code.into()
}

/// Passes on what asks a program for something. A thread of the returned scope
/// does so.
fn pass_signals_on(child: Arc<OwnedFd>) -> io::Result<Scope> {
    let mut scope = Scope::new(&Token::new());
    scope.worker(Place::default(), "signals", move |token| async move {
        let mut hangup = signal(SignalKind::hangup())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut quit = signal(SignalKind::quit())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut first = signal(SignalKind::user_defined1())?;
        let mut second = signal(SignalKind::user_defined2())?;
        loop {
            // All are cancel-safe: a signal that came stays noted.
            let came = tokio::select! {
                () = token.cancelled() => return Ok(()),
                _ = hangup.recv() => Signal::HUP,
                _ = interrupt.recv() => Signal::INT,
                _ = quit.recv() => Signal::QUIT,
                _ = terminate.recv() => Signal::TERM,
                _ = first.recv() => Signal::USR1,
                _ = second.recv() => Signal::USR2,
            };
            // It may have ended meanwhile.
            pidfd_send_signal(&*child, came).ok();
        }
    })?;
    Ok(scope)
}

/// Uses `share` of the CPU time that the tree uses, until its root has ended.
fn burn(share: f64, tree: &mut Tree, root: &OwnedFd) {
    let own_before = clock::process_cpu();
    let mut looks = 0;
    while !has_ended(root, LOOK) {
        if looks % LOOKS_FOR_MEMBERS == 0 {
            tree.look();
        }
        looks += 1;
        let own = Nanos::new(clock::process_cpu().as_u64() - own_before.as_u64());
        spin(owed(share, tree.cpu(), own, LOOK));
    }
}

/// Stops the tree for `share` of the time, until its root has ended.
fn pause(share: f64, tree: &mut Tree, root: &OwnedFd) {
    let start = clock::now();
    let mut stopped = Nanos::ZERO;
    while !has_ended(root, PERIOD) {
        let length = owed(share, clock::now().since(start), stopped, PERIOD);
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

/// What is still owed of `share` of `of`, where `paid` has been; at most
/// `longest` at a time.
fn owed(share: f64, of: Nanos, paid: Nanos, longest: Nanos) -> Nanos {
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

/// Waits until the process behind `descriptor` has ended, at most so long; whether
/// it has.
fn has_ended(descriptor: &OwnedFd, at_most: Nanos) -> bool {
    let until = clock::now() + at_most;
    let descriptor = descriptor.as_fd();
    let mut watched = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    loop {
        match poll(&mut watched, Some(&timespec(until))) {
            Ok(ready) if ready > 0 => return true,
            Ok(_) if clock::now() >= until => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Nothing can be told of it any more.
            Err(_) => return true,
        }
    }
}

/// From now until then.
fn timespec(until: Moment) -> Timespec {
    let left = until.since(clock::now()).as_duration();
    Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_owed_is_the_share_less_what_was_paid() {
        let millis = Nanos::from_millis;
        for (of, paid, expected) in [
            (0, 0, 0),
            (1000, 0, 10),
            (1000, 45, 5),
            (1000, 50, 0),
            (1000, 51, 0),
            (100, 0, 5),
        ] {
            let found = owed(0.05, millis(of), millis(paid), millis(10));
            assert_eq!(found, millis(expected), "{of} {paid}");
        }
    }

    #[test]
    fn the_account_is_settled_within_the_last_slice() {
        for percent in [1_u32, 5, 20, 49] {
            let share = f64::from(percent) / 100.0;
            let (mut used, mut paid) = (Nanos::ZERO, Nanos::ZERO);
            for step in 0..500 {
                used += Nanos::from_millis(step * 7 % 11);
                paid += owed(share, used, paid, LOOK);
            }
            let wanted = used.as_secs_f64() * share;
            assert!(
                (paid.as_secs_f64() - wanted).abs() < 1e-6,
                "{paid} {wanted}"
            );
        }
    }
}
