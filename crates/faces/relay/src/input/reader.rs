//! Reading one connection.

use std::io::ErrorKind;
use std::pin::Pin;

use stillwell_scope::Stopping;
use stillwell_wire::Stream;
use tokio::io::{AsyncRead, ReadBuf};

use crate::core::Core;

/// Size of a read.
const BUFFER_BYTES: usize = 64 << 10;

/// Reads one connection until its peer closes it, or until the relay is to end
/// and nothing more has arrived.
#[derive(Debug)]
pub(crate) struct InputReader {
    buffer: Vec<u8>,
    stopping: Stopping,
    closed: bool,
}

impl InputReader {
    pub(crate) fn new(core: &Core) -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES],
            stopping: core.stopping(),
            closed: false,
        }
    }

    /// Returns true if the peer closed its side in good order.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns the next bytes; `None` after the end.
    pub(crate) async fn read(&mut self, stream: &mut Stream) -> Option<&[u8]> {
        loop {
            let buffer = &mut self.buffer;
            let read = self.stopping.next(|context| {
                let mut read = ReadBuf::new(buffer);
                let polled = Pin::new(&mut *stream).poll_read(context, &mut read);
                polled.map_ok(|()| read.filled().len())
            });
            match read.await? {
                Ok(0) => {
                    self.closed = true;
                    return None;
                }
                Ok(length) => return Some(&self.buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
