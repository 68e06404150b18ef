//! One thread for work that blocks: reading captures and making reports. The server continues meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use stillwell_scope::{Place, Scope};
use tokio::sync::oneshot;

/// Maximum number of waiting tasks.
const WAITING_MAX: usize = 32;
/// Time between two looks at the token.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

type Work = Box<dyn FnOnce() + Send>;

/// Access to the thread.
#[derive(Clone, Debug)]
pub(crate) struct WorkQueue(SyncSender<Work>);

/// Effects of work, which decide if it is started after its browser went away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WorkKind {
    /// It makes a page only: it is not started.
    Read,
    /// It changes a file as the user requested: it is done.
    Write,
}

/// Reasons why work was not done.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum WorkQueueError {
    /// Too much work waits.
    #[error("the server is busy: {WAITING_MAX} reports are being made; try again in a moment")]
    Busy,
    /// The work panicked, or the server ends.
    #[error(
        "the page could not be made; this is a defect of Stillwell unless the server is ending"
    )]
    Failed,
}

impl WorkQueue {
    /// Starts the thread in `scope`.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads.
    pub(crate) fn start(scope: &mut Scope) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel::<Work>(WAITING_MAX);
        scope.thread(Place::default(), "pages", move |token| {
            while !token.is_cancelled() && work_once(&receiver) {}
            Ok(())
        })?;
        Ok(Self(sender))
    }

    /// Does `work` on the thread and returns its result. If this future is dropped before the work starts,
    /// `kind` decides.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        kind: WorkKind,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkQueueError> {
        let (sender, receiver) = oneshot::channel();
        let boxed: Work = Box::new(move || {
            // The receiver is gone if the browser went away.
            if kind == WorkKind::Write || !sender.is_closed() {
                sender.send(work()).ok();
            }
        });
        match self.0.try_send(boxed) {
            Ok(()) => receiver.await.map_err(|_| WorkQueueError::Failed),
            Err(TrySendError::Full(_)) => Err(WorkQueueError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(WorkQueueError::Failed),
        }
    }
}

/// Returns false if no work can be sent any more.
fn work_once(receiver: &Receiver<Work>) -> bool {
    match receiver.recv_timeout(LOOK_PERIOD) {
        // A panic drops the sender of the result, which is an error there.
        Ok(work) => {
            catch_unwind(AssertUnwindSafe(work)).ok();
            true
        }
        Err(RecvTimeoutError::Timeout) => true,
        Err(RecvTimeoutError::Disconnected) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn pages_whose_browser_went_away_are_not_made_and_changes_are() {
        let (sender, receiver) = sync_channel::<Work>(WAITING_MAX);
        let queue = WorkQueue(sender);
        let (started, starts) = sync_channel(WAITING_MAX);
        let run = |kind: WorkKind, name: &'static str| {
            let started = started.clone();
            Box::pin(queue.run(kind, move || started.send(name).is_ok()))
        };
        let mut context = Context::from_waker(Waker::noop());
        let mut left = [
            run(WorkKind::Read, "page left"),
            run(WorkKind::Write, "change left"),
        ];
        let mut waiting = run(WorkKind::Read, "page");
        for request in left.iter_mut().chain([&mut waiting]) {
            assert!(request.as_mut().poll(&mut context).is_pending());
        }
        drop(left);
        for _ in 0..3 {
            assert!(work_once(&receiver));
        }
        let result = waiting.as_mut().poll(&mut context);
        assert_eq!(result, Poll::Ready(Ok(true)));
        let starts: Vec<&str> = starts.try_iter().collect();
        assert_eq!(starts, ["change left", "page"]);
    }
}
