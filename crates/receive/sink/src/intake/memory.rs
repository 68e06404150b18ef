//! Memory for bodies that are not whole yet: bounded over all connections of an intake.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most bytes of unfinished bodies at one time, beyond the first of each body.
const BODIES_BYTES_MAX: usize = 256 << 20;

/// The first bytes of each body, which always have room: large bodies that never end do not lock out small ones.
const FREE_BYTES: usize = 64 << 10;

/// The bytes that all connections of one intake may still reserve.
#[derive(Clone, Debug)]
pub(crate) struct BodyMemory(Arc<AtomicUsize>);

impl Default for BodyMemory {
    fn default() -> Self {
        Self::new(BODIES_BYTES_MAX)
    }
}

impl BodyMemory {
    fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Reserves nothing yet.
    pub(super) fn reservation(&self) -> Reservation {
        Reservation {
            memory: self.clone(),
            bytes: 0,
        }
    }
}

/// The memory of one body beyond its first bytes. Dropping it gives the memory back.
#[derive(Debug)]
pub(super) struct Reservation {
    memory: BodyMemory,
    bytes: usize,
}

impl Reservation {
    /// Makes this a reservation of `bytes` in all. Returns false, and keeps what it had, where
    /// there is no room.
    #[must_use]
    pub(super) fn resize(&mut self, bytes: usize) -> bool {
        let bytes = bytes.saturating_sub(FREE_BYTES);
        let left = &self.memory.0;
        if let Some(more) = bytes.checked_sub(self.bytes) {
            let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(more)
            });
            if taken.is_err() {
                return false;
            }
        } else {
            left.fetch_add(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_sizes_the_sum_stays_below_the_bound(
            sizes in prop::collection::vec((0..4_usize, 0..100_usize), 0..50),
        ) {
            let memory = BodyMemory::new(150 * FREE_BYTES);
            let mut bodies: Vec<Reservation> = (0..4).map(|_| memory.reservation()).collect();
            for (index, size) in sizes {
                let remaining: usize = bodies.iter().map(|body| body.bytes).sum::<usize>() - bodies[index].bytes;
                let fits = remaining + size.saturating_sub(1) * FREE_BYTES <= 150 * FREE_BYTES;
                prop_assert_eq!(bodies[index].resize(size * FREE_BYTES), fits);
                // A small body always has room.
                prop_assert!(memory.reservation().resize(FREE_BYTES));
            }
            drop(bodies);
            prop_assert_eq!(memory.0.load(Ordering::Relaxed), 150 * FREE_BYTES);
        }
    }
}
