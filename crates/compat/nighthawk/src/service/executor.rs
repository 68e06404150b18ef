//! Makes loads, one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use crate::service::access::Caller;
use crate::service::grpc::{Call, LoadMark, StatusCode};
use crate::wire::{ExecutionResponse, Status};
use crate::{CommandLineOptions, WorkerResult};
use stillwell_run::Interrupt;
use tokio::sync::{oneshot, watch};

/// Signal of an interrupt that a client requested.
const SIGTERM: i32 = 15;

/// Cause of an interrupt by the shutdown of the service, in place of a signal. No signal has this
/// number.
const SERVICE_SHUTDOWN: i32 = -1;

/// Makes loads.
pub trait Executor: Send + 'static {
    /// Makes the load of `options`, reports progress to `task`, and ends early on its interrupt. A
    /// failure is part of the response.
    fn execute(&mut self, options: &CommandLineOptions, task: &LoadTask) -> ExecutionResponse;
}

/// A load in progress, for its executor.
#[derive(Debug)]
pub struct LoadTask {
    interrupt: Interrupt,
    includes_samples: bool,
    caller: Caller,
    progress: watch::Sender<WorkerResult>,
}

/// A load to make.
#[derive(Debug)]
pub(crate) struct Job {
    options: Box<CommandLineOptions>,
    task: LoadTask,
    done: oneshot::Sender<ExecutionResponse>,
}

/// A load in progress, for its call; dropping it interrupts the load.
#[derive(Debug)]
pub(crate) struct RunningLoad {
    interrupt: Interrupt,
    progress: watch::Receiver<WorkerResult>,
    done: oneshot::Receiver<ExecutionResponse>,
    _mark: LoadMark,
}

/// The slot for a load; there is one.
#[derive(Clone, Debug)]
pub(crate) struct LoadSlot {
    is_taken: Arc<AtomicBool>,
    jobs: SyncSender<Job>,
}

/// Returns the failure of a load whose interrupt was raised with `cause`: the shutdown of the
/// service is a failure, the cancellation by a client is none.
#[must_use]
pub fn interrupt_failure(cause: i32) -> Option<Status> {
    (cause == SERVICE_SHUTDOWN).then(shutdown_failure)
}

/// Returns the failure of a load that the shutdown of the service ended.
pub(crate) fn shutdown_failure() -> Status {
    Status {
        code: StatusCode::Unavailable.number(),
        message: "the service shut down during the load".to_owned(),
    }
}

impl LoadTask {
    /// Raised when the load is to end.
    #[must_use]
    pub const fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Returns true if the result must have its histograms; see
    /// [`attach_samples`](crate::service::attach_samples).
    #[must_use]
    pub const fn includes_samples(&self) -> bool {
        self.includes_samples
    }

    /// Returns the source of the request.
    #[must_use]
    pub const fn caller(&self) -> Caller {
        self.caller
    }

    /// Stores the results so far, for updates.
    pub fn report(&self, progress: WorkerResult) {
        self.progress.send_replace(progress);
    }
}

impl LoadSlot {
    pub(crate) fn new(jobs: SyncSender<Job>) -> Self {
        Self {
            is_taken: Arc::default(),
            jobs,
        }
    }

    /// Starts a load; `None` while another one is in progress.
    pub(crate) fn start(
        &self,
        options: Box<CommandLineOptions>,
        call: &Call,
    ) -> Option<RunningLoad> {
        if self.is_taken.swap(true, Ordering::SeqCst) {
            return None;
        }
        let interrupt = Interrupt::new();
        let (progress, progresses) = watch::channel(WorkerResult {
            name: "progress".to_owned(),
            ..WorkerResult::default()
        });
        let (done, ended) = oneshot::channel();
        let job = Job {
            options,
            task: LoadTask {
                interrupt: interrupt.clone(),
                includes_samples: call.includes_samples,
                caller: call.caller,
                progress,
            },
            done,
        };
        // The queue has room: there is one slot.
        self.jobs.try_send(job).ok()?;
        Some(RunningLoad {
            interrupt,
            progress: progresses,
            done: ended,
            _mark: call.mark_load(),
        })
    }

    /// Returns the flag that frees the slot.
    pub(crate) fn freer(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_taken)
    }
}

impl RunningLoad {
    /// Interrupts the load; its results so far are the response.
    pub(crate) fn cancel(&self) {
        self.interrupt.raise(SIGTERM);
    }

    /// Interrupts the load because the service shuts down. Its response has the results so far,
    /// and is a failure unless the load was cancelled before.
    pub(crate) fn shut_down(&self) {
        self.interrupt.raise(SERVICE_SHUTDOWN);
    }

    /// Returns the results so far.
    pub(crate) fn so_far(&self) -> WorkerResult {
        self.progress.borrow().clone()
    }

    /// Waits for the response; `None` if the executor has ended. Cancel-safe.
    pub(crate) async fn answer(&mut self) -> Option<ExecutionResponse> {
        (&mut self.done).await.ok()
    }
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Makes one load after the other until all senders of jobs are gone.
pub(crate) fn work(mut executor: impl Executor, jobs: &Receiver<Job>, place: &AtomicBool) {
    while let Ok(Job {
        options,
        task,
        done,
    }) = jobs.recv()
    {
        let response = executor.execute(&options, &task);
        // A client may start the next load as soon as it has the response.
        place.store(false, Ordering::SeqCst);
        // The client may have gone.
        drop(done.send(response));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running_load(interrupt: &Interrupt) -> RunningLoad {
        let (_progress, progress) = watch::channel(WorkerResult::default());
        let (_done, done) = oneshot::channel();
        RunningLoad {
            interrupt: interrupt.clone(),
            progress,
            done,
            _mark: LoadMark::detached(),
        }
    }

    #[test]
    fn a_load_that_a_shutdown_ends_has_failed_unless_it_was_cancelled_before() {
        let cancel: fn(&RunningLoad) = RunningLoad::cancel;
        let shut_down: fn(&RunningLoad) = RunningLoad::shut_down;
        let failure = Status {
            code: 14,
            message: "the service shut down during the load".to_owned(),
        };
        for (first, second, expected) in [
            (cancel, shut_down, None),
            (shut_down, cancel, Some(failure)),
        ] {
            let interrupt = Interrupt::new();
            let load = running_load(&interrupt);
            first(&load);
            second(&load);
            drop(load);
            let cause = interrupt.signal().unwrap();
            assert_eq!(interrupt_failure(cause), expected);
        }
    }
}
