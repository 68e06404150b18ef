//! One call, as whoever answers it sees it.

use std::pin::Pin;
use std::rc::Rc;

use stillwell_http::h2::Stream;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender};

use super::status::{Code, Ended};

/// A call's whole answer: its end, once all messages were sent.
pub(crate) type Handler = Pin<Box<dyn Future<Output = Result<(), Ended>>>>;

/// The methods that a server answers.
pub(crate) trait Methods {
    /// Returns the answer of `call` to the method at `path`.
    fn open(&self, path: &str, call: Call) -> Result<Handler, Ended>;
}

/// One call: messages in, messages out.
#[derive(Debug)]
pub(crate) struct Call {
    pub(super) stream: Stream,
    pub(super) incoming: Receiver<Vec<u8>>,
    pub(super) outgoing: Sender<Out>,
    /// Wakes the connection.
    pub(super) wake: Rc<Notify>,
    /// Whether the client wants to put results together itself.
    pub(crate) wants_samples: bool,
}

/// What goes out on a call.
#[derive(Debug)]
pub(super) enum Out {
    Message(Stream, Vec<u8>),
    End(Stream, Result<(), Ended>),
}

impl Call {
    /// The next message; `None` once the client sends no more. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        let message = self.incoming.recv().await;
        self.wake.notify_one();
        message
    }

    /// The one message of a call that has one. More are thrown away: nobody would
    /// take them, and the connection would wait for that with all its other calls.
    pub(crate) async fn only(&mut self) -> Result<Vec<u8>, Ended> {
        let message = self.next().await;
        self.incoming.close();
        self.wake.notify_one();
        message.ok_or_else(|| Ended::new(Code::InvalidArgument, "the call has no message"))
    }

    /// Sends a message, once there is room for it.
    ///
    /// # Errors
    /// Where the client has gone.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), Ended> {
        let sent = self.outgoing.send(Out::Message(self.stream, message)).await;
        self.wake.notify_one();
        sent.map_err(|_| Ended::new(Code::Cancelled, "the client has gone"))
    }
}
