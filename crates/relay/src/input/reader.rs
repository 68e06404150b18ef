//! Reading one connection.

use std::io::ErrorKind;

use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Stream;
use tokio::select;
use tokio::task::yield_now;

use crate::core::Core;

/// What is read in one go.
const BUFFER_BYTES: usize = 64 << 10;

/// So long a relay that is to end goes on reading what has arrived.
const DRAIN_MAX: Nanos = Nanos::SECOND;

/// Reads one connection until its peer closes it, or until the relay is to end
/// and nothing more has arrived.
#[derive(Debug)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
    /// Set when the relay is to end.
    drained_by: Option<Moment>,
    closed: bool,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES],
            drained_by: None,
            closed: false,
        }
    }

    /// Whether the peer closed its side in good order.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// What came next; `None` once that is all.
    pub(crate) async fn read(&mut self, core: &Core, stream: &Stream) -> Option<&[u8]> {
        loop {
            if self.drained_by.is_none() {
                select! {
                    biased;
                    readable = stream.readable() => readable.ok()?,
                    () = core.token.cancelled() => {
                        self.drained_by = Some(clock::now() + DRAIN_MAX);
                    }
                }
            }
            if let Some(drained_by) = self.drained_by {
                if clock::now() > drained_by {
                    return None;
                }
                // Lets the runtime learn what has arrived.
                yield_now().await;
            }
            match stream.try_read(&mut self.buffer) {
                Ok(0) => {
                    self.closed = true;
                    return None;
                }
                Ok(length) => return Some(&self.buffer[..length]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock if self.drained_by.is_none() => {}
                    ErrorKind::Interrupted => {}
                    _ => return None,
                },
            }
        }
    }
}
