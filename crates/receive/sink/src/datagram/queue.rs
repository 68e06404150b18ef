//! The room in the kernel's queue of a UDP socket.

use std::cell::Cell;
use std::os::fd::AsFd;

use rustix::net::sockopt::socket_recv_buffer_size;

/// A pause may fill this part of the queue: the rest is for times in which the sink does not run.
const PART: usize = 4;

/// Bytes that the kernel counts for a datagram beside its own; large ones count up to double.
const OVERHEAD_BYTES: usize = 1_024;

/// The queue of one socket, and the largest datagram that it had.
#[derive(Debug)]
pub(super) struct Queue {
    bytes: usize,
    largest_bytes: Cell<usize>,
}

impl Queue {
    /// Of `socket`; `None` where the kernel does not tell its size.
    pub(super) fn of(socket: &impl AsFd) -> Option<Self> {
        let bytes = socket_recv_buffer_size(socket).ok()?;
        Some(Self {
            bytes,
            largest_bytes: Cell::new(0),
        })
    }

    /// Records the length of a datagram.
    pub(super) fn note(&self, bytes: usize) {
        self.largest_bytes.set(self.largest_bytes.get().max(bytes));
    }

    /// Returns the number of the largest datagrams that may be queued in a pause.
    pub(super) fn room(&self) -> u64 {
        let each = self.largest_bytes.get() * 2 + OVERHEAD_BYTES;
        (self.bytes / PART / each) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_fills_a_quarter_of_the_queue_at_most() {
        let queue = Queue {
            bytes: 16 << 20,
            largest_bytes: Cell::new(0),
        };
        queue.note(65_507);
        queue.note(1_024);
        let each = 2 * 65_507 + 1_024_u64;
        assert_eq!(queue.room(), (16_u64 << 20) / 4 / each);
        // What a user without rights gets: a few large datagrams, or a hundred small ones.
        let small = Queue {
            bytes: 425_984,
            ..queue
        };
        assert!(small.room() < 16);
    }
}
