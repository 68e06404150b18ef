//! One call, for its handler.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::service::access::Caller;

use super::status::{CallFailed, StatusCode};

/// Maximum number of bytes of a call's messages that wait for the connection; more block their
/// sender. A longer message waits alone.
pub(super) const OUTGOING_BYTES_MAX: u32 = 256 << 10;

/// A call's whole answer: its end, once all messages were sent.
pub(crate) type Handler = Pin<Box<dyn Future<Output = Result<(), CallFailed>>>>;

/// The methods that a server answers.
pub(crate) trait Methods {
    /// Returns the answer of `call` to the method at `path`. `authorization` is the value of that
    /// header, if any.
    fn open(
        &self,
        path: &str,
        authorization: Option<&[u8]>,
        call: Call,
    ) -> Result<Handler, CallFailed>;
}

/// One call: messages in, messages out.
#[derive(Debug)]
pub(crate) struct Call {
    pub(super) incoming: Receiver<Vec<u8>>,
    pub(super) outgoing: Sender<CallOutput>,
    /// Room for messages that wait for the connection, in bytes.
    pub(super) room: Arc<Semaphore>,
    /// Wakes the connection.
    pub(super) wake: Rc<Notify>,
    pub(super) loads: Loads,
    /// True if the client merges results itself.
    pub(crate) includes_samples: bool,
    /// The source of the call.
    pub(crate) caller: Caller,
}

/// The number of loads in progress for the calls of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads(Rc<Cell<usize>>);

impl Loads {
    pub(super) fn is_empty(&self) -> bool {
        self.0.get() == 0
    }
}

/// A load in progress for a call. Its connection is not idle until it is dropped.
#[derive(Debug)]
pub(crate) struct LoadMark {
    loads: Loads,
    wake: Rc<Notify>,
}

impl Drop for LoadMark {
    fn drop(&mut self) {
        let loads = &self.loads.0;
        loads.set(loads.get() - 1);
        self.wake.notify_one();
    }
}

#[cfg(test)]
impl LoadMark {
    /// Returns a mark without a connection.
    pub(crate) fn detached() -> Self {
        let loads = Loads::default();
        loads.0.set(1);
        Self {
            loads,
            wake: Rc::default(),
        }
    }
}

/// Output of a call.
#[derive(Debug)]
pub(super) enum CallOutput {
    /// A message and its reserved room.
    Message(Vec<u8>, OwnedSemaphorePermit),
    End(Result<(), CallFailed>),
}

impl Call {
    /// The next message; `None` once the client sends no more. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        let message = self.incoming.recv().await;
        self.wake.notify_one();
        message
    }

    /// Returns the only message of a call. Further ones are discarded: they would wait until the
    /// call ends.
    pub(crate) async fn only(&mut self) -> Result<Vec<u8>, CallFailed> {
        let message = self.next().await;
        self.incoming.close();
        self.wake.notify_one();
        message
            .ok_or_else(|| CallFailed::new(StatusCode::InvalidArgument, "the call has no message"))
    }

    /// Marks the connection of the call: a load begins.
    pub(crate) fn mark_load(&self) -> LoadMark {
        let loads = &self.loads.0;
        loads.set(loads.get() + 1);
        self.wake.notify_one();
        LoadMark {
            loads: self.loads.clone(),
            wake: Rc::clone(&self.wake),
        }
    }

    /// Sends a message, once there is room for it.
    ///
    /// # Errors
    /// Where the client has gone.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), CallFailed> {
        let gone = || CallFailed::new(StatusCode::Cancelled, "the client disconnected");
        let bytes = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let bytes = bytes.min(OUTGOING_BYTES_MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(bytes).await;
        let message = CallOutput::Message(message, room.map_err(|_| gone())?);
        let sent = self.outgoing.send(message).await;
        self.wake.notify_one();
        sent.map_err(|_| gone())
    }
}
