//! The room in the kernel's queue of a UDP socket.

use std::cell::Cell;
use std::os::fd::AsFd;

use rustix::net::sockopt::socket_recv_buffer_size;

use super::eager::COLLECTED;

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
    /// Returns the queue of `socket`; `None` if its size cannot be read.
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

    /// Returns true if a part of it holds the datagrams of a pause, even if all are as large as the largest so far.
    pub(super) fn has_room(&self) -> bool {
        let each = self.largest_bytes.get() * 2 + OVERHEAD_BYTES;
        self.bytes / PART / each >= COLLECTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_datagrams_of_a_pause_fill_a_quarter_of_the_queue_at_most() {
        // The bytes of the queue are what privileged and other users get.
        for (bytes, largest_bytes, has_room) in [
            (16 << 20, 65_507, true),
            (425_984, 2_816, true),
            (425_984, 2_817, false),
            (425_984, 65_507, false),
        ] {
            let queue = Queue {
                bytes,
                largest_bytes: Cell::new(0),
            };
            queue.note(largest_bytes);
            queue.note(1);
            assert_eq!(queue.has_room(), has_room, "{bytes} {largest_bytes}");
        }
    }
}
