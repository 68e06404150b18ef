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

    /// Does `work` on the thread and returns its result.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkQueueError> {
        let (sender, receiver) = oneshot::channel();
        let boxed: Work = Box::new(move || {
            // The receiver is gone if the browser went away.
            sender.send(work()).ok();
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
