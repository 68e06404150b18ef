//! Who makes loads, one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use crate::wire::ExecutionResponse;
use crate::{CommandLineOptions, WorkerResult};
use stillwell_run::Interrupt;
use tokio::sync::{oneshot, watch};

/// The signal as which an interrupt counts that a client asked for.
const SIGTERM: i32 = 15;

/// Makes loads.
pub trait Executor: Send + 'static {
    /// Makes the load that `options` ask for, tells `task` of it while it goes on,
    /// and ends early where that asks for it. What goes wrong is part of the
    /// response.
    fn execute(&mut self, options: &CommandLineOptions, task: &Task) -> ExecutionResponse;
}

/// A load under way, as whoever makes it sees it.
#[derive(Debug)]
pub struct Task {
    interrupt: Interrupt,
    wants_samples: bool,
    progress: watch::Sender<WorkerResult>,
}

/// A load that is to be made.
#[derive(Debug)]
pub(crate) struct Job {
    options: Box<CommandLineOptions>,
    task: Task,
    done: oneshot::Sender<ExecutionResponse>,
}

/// A load under way, as whoever asked for it sees it; dropping it asks for its end.
#[derive(Debug)]
pub(crate) struct Running {
    interrupt: Interrupt,
    progress: watch::Receiver<WorkerResult>,
    done: oneshot::Receiver<ExecutionResponse>,
}

/// The one place that there is for a load.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    is_taken: Arc<AtomicBool>,
    jobs: SyncSender<Job>,
}

impl Task {
    /// Raised when the load is to end.
    #[must_use]
    pub const fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Whether all that the result is made of is to come with it; see
    /// [`attach_samples`](crate::service::attach_samples).
    #[must_use]
    pub const fn wants_samples(&self) -> bool {
        self.wants_samples
    }

    /// Tells what was found until now, for whoever asks.
    pub fn tell(&self, found: WorkerResult) {
        self.progress.send_replace(found);
    }
}

impl Place {
    pub(crate) fn new(jobs: SyncSender<Job>) -> Self {
        Self {
            is_taken: Arc::default(),
            jobs,
        }
    }

    /// Has a load made; `None` while another one is on.
    pub(crate) fn start(
        &self,
        options: Box<CommandLineOptions>,
        wants_samples: bool,
    ) -> Option<Running> {
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
            task: Task {
                interrupt: interrupt.clone(),
                wants_samples,
                progress,
            },
            done,
        };
        // There is room: nobody else has the place.
        self.jobs.try_send(job).ok()?;
        Some(Running {
            interrupt,
            progress: progresses,
            done: ended,
        })
    }

    /// What frees the place again.
    pub(crate) fn freer(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_taken)
    }
}

impl Running {
    /// Asks for the end; what was found until then is the answer.
    pub(crate) fn cancel(&self) {
        self.interrupt.raise(SIGTERM);
    }

    /// What was found until now.
    pub(crate) fn so_far(&self) -> WorkerResult {
        self.progress.borrow().clone()
    }

    /// The answer; `None` where whoever makes loads is gone. Cancel-safe.
    pub(crate) async fn answer(&mut self) -> Option<ExecutionResponse> {
        (&mut self.done).await.ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Makes one load after the other until nobody can ask for one any more.
pub(crate) fn work(mut executor: impl Executor, jobs: &Receiver<Job>, place: &AtomicBool) {
    while let Ok(Job {
        options,
        task,
        done,
    }) = jobs.recv()
    {
        let response = executor.execute(&options, &task);
        // Whoever has the answer may ask for the next load at once.
        place.store(false, Ordering::SeqCst);
        // Nobody hears of it where the client has gone.
        drop(done.send(response));
    }
}
