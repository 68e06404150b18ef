//! A target that is running or has ended.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use stillwell_plan::step::TargetSignal;
use stillwell_plan::target::StopPlan;
use stillwell_scope::{Place, Scope, clock};
use stillwell_units::Moment;

use crate::stop::{self, Stopped};
use crate::{Cgroup, Exit, kernel, logs, tree};

/// A target that Stillwell started, that ran before, or none. Clones are the same target. Dropping the last
/// clone kills a target that Stillwell started.
#[derive(Clone, Debug)]
pub struct TargetProcess {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) process: Option<Process>,
    pub(crate) started: Moment,
    pub(crate) stdout: Option<Log>,
    pub(crate) stderr: Option<Log>,
    /// All of its processes have ended, so nothing is killed on drop: its cgroup may belong to another target
    /// by then.
    pub(crate) is_retired: AtomicBool,
}

/// A file for the target's output.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) path: PathBuf,
    /// Offset at which this target's output begins.
    pub(crate) from: u64,
}

impl Log {
    pub(crate) fn of(path: &Path, from: u64) -> Self {
        Self {
            path: path.to_owned(),
            from,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) descriptor: OwnedFd,
    /// Set once it has ended and was reaped.
    pub(crate) exit: Mutex<Option<Exit>>,
    pub(crate) owned: Option<Owned>,
}

/// State of a target that Stillwell started.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) mark: String,
    pub(crate) cgroup: Option<Arc<Cgroup>>,
}

/// An error while sending a signal.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    /// There is no process, or Stillwell did not start it. Such a process is never signalled.
    #[error("cannot signal a target that Stillwell did not start")]
    NotOurs,
    /// The kernel refused.
    #[error("send {signal:?} to the target")]
    Refused {
        /// The signal.
        signal: TargetSignal,
        /// The operating system's error; `ESRCH` if it has ended.
        source: io::Error,
    },
}

impl TargetProcess {
    /// Returns a target without a process: load goes to any listener.
    #[must_use]
    pub fn none() -> Self {
        Self::new(None, None, None)
    }

    /// Attaches to a running process.
    ///
    /// # Errors
    /// The operating system's error, usually that the process does not exist.
    pub(crate) fn attached(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let process = Process {
            pid,
            descriptor: pidfd_open(pid, PidfdFlags::empty())?,
            exit: Mutex::new(None),
            owned: None,
        };
        Ok(Self::new(Some(process), None, None))
    }

    pub(crate) fn new(process: Option<Process>, stdout: Option<Log>, stderr: Option<Log>) -> Self {
        Self {
            inner: Arc::new(Inner {
                process,
                started: clock::now(),
                stdout,
                stderr,
                is_retired: AtomicBool::new(false),
            }),
        }
    }

    /// The number of its first process.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        let process = self.inner.process.as_ref()?;
        Some(process.number())
    }

    /// Returns the process ids of all of its living processes; none if it has ended or there is no process.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let Some(process) = &self.inner.process else {
            return Vec::new();
        };
        match &process.owned {
            Some(owned) => stop::survivors(process, owned),
            None => {
                let (first, has_ended) = (process.number(), process.exited().is_some());
                // Only processes that Stillwell started have a mark.
                tree::members(first, has_ended, "", std::process::id()).alive
            }
        }
    }

    /// Time of the start, or of the attachment.
    #[must_use]
    pub fn start_moment(&self) -> Moment {
        self.inner.started
    }

    /// Returns the exit status, if it has ended; does not wait. The status of an attached process is unknown.
    #[must_use]
    pub fn exited(&self) -> Option<Exit> {
        self.inner.process.as_ref()?.exited()
    }

    /// Calls `on_exit` when it ends, on a thread of `scope`; never if the scope ends first or there is no
    /// process.
    ///
    /// # Errors
    /// The operating system's error if no thread can be started.
    pub fn watch(
        &self,
        scope: &mut Scope,
        on_exit: impl FnOnce(Exit) + Send + 'static,
    ) -> io::Result<()> {
        if self.inner.process.is_none() {
            return Ok(());
        }
        let target_process = self.clone();
        scope.worker(Place::default(), "target-watch", move |token| async move {
            tokio::select! {
                // Cancel-safe: only looks.
                () = token.cancelled() => {}
                // Cancel-safe: waits for a descriptor, then looks.
                exit = target_process.ended() => on_exit(exit?),
            }
            Ok(())
        })
    }

    /// Waits until it has ended; forever if there is no process. Cancel-safe. For a worker of a [`Scope`].
    ///
    /// # Errors
    /// The operating system's error if it cannot be waited for.
    pub async fn ended(&self) -> io::Result<Exit> {
        let Some(process) = &self.inner.process else {
            return std::future::pending().await;
        };
        let descriptor = kernel::watched(process.descriptor.try_clone()?)?;
        loop {
            let mut ready = descriptor.readable().await?;
            if let Some(exit) = process.exited() {
                return Ok(exit);
            }
            ready.clear_ready();
        }
    }

    /// Sends `signal` to its first process.
    ///
    /// # Errors
    /// [`SignalError`].
    pub fn signal(&self, signal: TargetSignal) -> Result<(), SignalError> {
        let process = self.inner.process.as_ref();
        let process = process.filter(|process| process.owned.is_some());
        let process = process.ok_or(SignalError::NotOurs)?;
        pidfd_send_signal(&process.descriptor, number(signal)).map_err(|errno| {
            SignalError::Refused {
                signal,
                source: errno.into(),
            }
        })
    }

    /// Stops a target that Stillwell started, with all its descendants, and waits for that: at most
    /// `plan.grace` plus five seconds. An attached process continues.
    #[must_use]
    pub fn stop(&self, plan: StopPlan) -> Stopped {
        stop::stop(self, plan)
    }

    /// Stops it like [`Self::stop`]. Afterwards another target may start in the same place and the same groups;
    /// dropping this one has no effect.
    #[must_use]
    pub fn retire(&self, plan: StopPlan) -> Stopped {
        let stopped = stop::stop(self, plan);
        self.inner.is_retired.store(true, Ordering::Release);
        stopped
    }

    /// Sends `signal` to all of its processes; ended ones are skipped.
    ///
    /// # Errors
    /// [`SignalError::NotOurs`].
    pub fn signal_all(&self, signal: TargetSignal) -> Result<(), SignalError> {
        let process = self.inner.process.as_ref();
        let owned = process.and_then(|process| Some((process, process.owned.as_ref()?)));
        let (process, owned) = owned.ok_or(SignalError::NotOurs)?;
        stop::signal_all(process, owned, number(signal));
        Ok(())
    }

    /// At most the last `count` lines that it wrote to stderr, then the same of
    /// stdout, each from the file's last 64 KiB.
    #[must_use]
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let logs = [&self.inner.stderr, &self.inner.stdout];
        let logs = logs.into_iter().flatten();
        logs.flat_map(|log| logs::last_lines(&log.path, count))
            .collect()
    }
}

impl Process {
    pub(crate) fn number(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    pub(crate) fn exited(&self) -> Option<Exit> {
        let mut exit = lock(&self.exit);
        if exit.is_none() {
            *exit = match &self.owned {
                // An error means that it was already waited for.
                Some(_) => kernel::reap(self.pid).unwrap_or_else(|_| Some(Exit::default())),
                None => self.has_ended().then(Exit::default),
            };
        }
        *exit
    }

    fn has_ended(&self) -> bool {
        crate::pause::readable_before(self.descriptor.as_fd(), Moment::new(0))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.is_retired.load(Ordering::Acquire)
            && let Some(process) = &self.process
            && let Some(owned) = &process.owned
        {
            stop::kill_tree(process, owned);
        }
    }
}

pub(crate) fn number(signal: TargetSignal) -> Signal {
    match signal {
        TargetSignal::Cont => Signal::CONT,
        TargetSignal::Hup => Signal::HUP,
        TargetSignal::Int => Signal::INT,
        TargetSignal::Kill => Signal::KILL,
        TargetSignal::Quit => Signal::QUIT,
        TargetSignal::Stop => Signal::STOP,
        TargetSignal::Term => Signal::TERM,
        TargetSignal::Usr1 => Signal::USR1,
        TargetSignal::Usr2 => Signal::USR2,
    }
}

/// Name of the signal for a container engine.
pub(crate) const fn signal_name(signal: TargetSignal) -> &'static str {
    match signal {
        TargetSignal::Cont => "SIGCONT",
        TargetSignal::Hup => "SIGHUP",
        TargetSignal::Int => "SIGINT",
        TargetSignal::Kill => "SIGKILL",
        TargetSignal::Quit => "SIGQUIT",
        TargetSignal::Stop => "SIGSTOP",
        TargetSignal::Term => "SIGTERM",
        TargetSignal::Usr1 => "SIGUSR1",
        TargetSignal::Usr2 => "SIGUSR2",
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
