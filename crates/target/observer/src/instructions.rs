//! CPU instructions of the target's process tree, from counters of the CPU.
//!
//! One counter is opened for each thread that the tree has, with `inherit`: the kernel then counts threads and
//! processes that these start from then on as well, also those that end between two beats. It needs no
//! privilege beyond that of tracing the target. Threads may start while counters are opened, and it is not known
//! whether those are counted already. Therefore the list of threads is read before and after: if it has new
//! ones, all counters are closed and opened again. ADR 0099 has the reasons, and why it is not the cgroup.
//!
//! The count includes the kernel's work for the target if that is permitted, else user mode alone.

mod growth;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use stillwell_metric::{CountingObstacle, CountingState, Labels, Sample, catalogue as metric};

use growth::{CounterTotals, Reading};

/// Largest number of counters, for any limit on open files.
const COUNTERS_MAX: u64 = 2048;
/// Share of the files that may be open which counters take at most; sockets need the others.
const FILES_SHARE: u64 = 4;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
/// Up to this level a process may count user mode of its own processes.
const PARANOID_USER_MAX: i64 = 2;

/// Event that is counted.
#[derive(Clone, Copy, Debug)]
enum CountedEvent {
    Instructions,
    /// CPU time as the scheduler counts it, which every machine has. It goes the same way through the kernel.
    #[cfg(test)]
    TaskClock,
}

/// Modes of the CPU in which events are counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CountedModes {
    All,
    User,
}

/// Reads the counters of one tree, beat after beat.
#[derive(Debug)]
pub(crate) struct InstructionReader {
    event: CountedEvent,
    /// Counters by thread, with their last readings.
    counters: BTreeMap<u32, (Counter, Reading)>,
    totals: CounterTotals,
    /// `None` until the first counter was opened.
    modes: Option<CountedModes>,
    /// Counters of all threads are open.
    is_attached: bool,
    obstacle: Option<CountingObstacle>,
    limit: u64,
}

/// Returns the state of a counter of this process's own instructions: what a target of the same user would have.
#[must_use]
pub fn instruction_counting() -> CountingState {
    let mut modes = None;
    match open(CountedEvent::Instructions, None, &mut modes) {
        Ok(_) => state_of(modes.unwrap_or(CountedModes::User)),
        Err(error) => CountingState::None(obstacle(&error, paranoid(), CountedProcess::Itself)),
    }
}

impl InstructionReader {
    pub(crate) fn new() -> Self {
        Self::of_event(CountedEvent::Instructions)
    }

    fn of_event(event: CountedEvent) -> Self {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let files = files.map_or(COUNTERS_MAX, |files| files / FILES_SHARE);
        Self {
            event,
            counters: BTreeMap::new(),
            totals: CounterTotals::default(),
            modes: None,
            is_attached: false,
            obstacle: None,
            limit: files.clamp(1, COUNTERS_MAX),
        }
    }

    /// Returns true if counters are to be opened. Only an obstacle that passes is tried again.
    pub(crate) const fn is_waiting(&self) -> bool {
        // A process that has just started may not be traced before its `exec`.
        let may_pass = matches!(
            self.obstacle,
            None | Some(CountingObstacle::ThreadsStarting | CountingObstacle::OtherUser)
        );
        !self.is_attached && may_pass
    }

    /// Counts the threads of another tree from now on. What was counted stays in the totals.
    pub(crate) fn detach(&mut self) {
        self.read();
        self.counters.clear();
        self.is_attached = false;
    }

    /// Opens counters of `threads`, and closes all others. [`accept`](Self::accept) has to follow.
    pub(crate) fn open(&mut self, threads: &BTreeSet<u32>) {
        self.counters.clear();
        self.obstacle = None;
        if u64::try_from(threads.len()).unwrap_or(u64::MAX) > self.limit {
            self.obstacle = Some(CountingObstacle::TooManyThreads { limit: self.limit });
            return;
        }
        for thread in threads {
            match open(self.event, Some(*thread), &mut self.modes) {
                Ok(counter) => {
                    self.counters.insert(*thread, (counter, Reading::default()));
                }
                // It ended in the meantime.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    self.counters.clear();
                    self.obstacle = Some(obstacle(&error, paranoid(), CountedProcess::Target));
                    return;
                }
            }
        }
    }

    /// Accepts the opened counters if `now` has no thread that `before` lacks. Returns false if they have to be
    /// opened again.
    pub(crate) fn accept(&mut self, before: &BTreeSet<u32>, now: &BTreeSet<u32>) -> bool {
        if self.obstacle.is_some() {
            return true;
        }
        self.is_attached = now.is_subset(before) && !self.counters.is_empty();
        if !self.is_attached {
            self.counters.clear();
            self.obstacle = Some(CountingObstacle::ThreadsStarting);
        }
        self.is_attached
    }

    /// Adds samples of the state, and of what was counted.
    pub(crate) fn sample(&mut self, samples: &mut Vec<Sample>) {
        self.read();
        match (&self.obstacle, self.modes) {
            (Some(obstacle), _) => samples.push(CountingState::None(obstacle.clone()).sample()),
            (None, Some(modes)) => samples.push(state_of(modes).sample()),
            // No thread was there yet.
            (None, None) => return,
        }
        if self.is_attached {
            let none = Labels::none();
            let totals = self.totals;
            for (metric, value) in [
                (metric::TARGET_INSTRUCTIONS, totals.count),
                (metric::TARGET_COUNTER_ENABLED, totals.enabled),
                (metric::TARGET_COUNTER_RUNNING, totals.running),
            ] {
                samples.push(Sample::int(metric, &none, value));
            }
        }
    }

    fn read(&mut self) {
        if !self.is_attached {
            return;
        }
        for (counter, last) in self.counters.values_mut() {
            if let Some(now) = reading(counter) {
                self.totals.add(*last, now);
                *last = now;
            }
        }
    }
}

fn reading(counter: &mut Counter) -> Option<Reading> {
    let data = counter.read_full().ok()?;
    Some(Reading {
        count: data.count(),
        enabled: u64::try_from(data.time_enabled()?.as_nanos()).ok()?,
        running: u64::try_from(data.time_running()?.as_nanos()).ok()?,
    })
}

/// Opens a counter of `thread` and what it starts, or of this thread. The first one that opens decides `modes`.
fn open(
    event: CountedEvent,
    thread: Option<u32>,
    modes: &mut Option<CountedModes>,
) -> io::Result<Counter> {
    let with = |modes: CountedModes| {
        let mut builder = match event {
            CountedEvent::Instructions => Builder::new(Hardware::INSTRUCTIONS),
            #[cfg(test)]
            CountedEvent::TaskClock => Builder::new(perf_event::events::Software::TASK_CLOCK),
        };
        if let Some(thread) = thread {
            let thread = i32::try_from(thread);
            builder.observe_pid(thread.map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?);
        }
        let is_user = modes == CountedModes::User;
        builder.inherit(true).enabled(true);
        builder.exclude_kernel(is_user).exclude_hv(is_user).build()
    };
    if let Some(modes) = *modes {
        return with(modes);
    }
    let (counter, opened) = match with(CountedModes::All) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            (with(CountedModes::User)?, CountedModes::User)
        }
        counter => (counter?, CountedModes::All),
    };
    *modes = Some(opened);
    Ok(counter)
}

fn state_of(modes: CountedModes) -> CountingState {
    match modes {
        CountedModes::All => CountingState::All,
        CountedModes::User => CountingState::User {
            paranoid: paranoid(),
        },
    }
}

/// Level of `perf_event_paranoid`: 2 permits user mode alone, more permits nothing.
fn paranoid() -> Option<i64> {
    fs::read_to_string(PARANOID).ok()?.trim().parse().ok()
}

/// Process whose counter was to be opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CountedProcess {
    Itself,
    Target,
}

/// The reason behind an error of `perf_event_open`.
fn obstacle(error: &io::Error, paranoid: Option<i64>, of: CountedProcess) -> CountingObstacle {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => CountingObstacle::NoCounter,
        Some(libc::ENOSYS) => CountingObstacle::NoKernelSupport,
        Some(libc::EACCES) => match paranoid {
            Some(paranoid) if paranoid > PARANOID_USER_MAX => {
                CountingObstacle::NotPermitted { paranoid }
            }
            _ if of == CountedProcess::Target => CountingObstacle::OtherUser,
            _ => CountingObstacle::Sandboxed,
        },
        Some(libc::EPERM) => CountingObstacle::Sandboxed,
        Some(libc::EMFILE | libc::ENFILE) => CountingObstacle::TooManyFiles,
        _ => CountingObstacle::Refused {
            message: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests;
