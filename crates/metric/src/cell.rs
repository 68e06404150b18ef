//! A counter with one writer and any number of readers.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter with one writer and any number of readers.
///
/// The writer adds by a plain load and store, which on every machine costs what
/// an ordinary variable costs; two writers would lose counts, so a cell belongs
/// to one worker.
#[derive(Debug, Default)]
pub struct Cell(AtomicU64);

impl Cell {
    /// Adds `amount`; only the owning worker may.
    pub fn add(&self, amount: u64) {
        self.set(self.total().wrapping_add(amount));
    }

    /// Replaces the total; only the owning worker may.
    pub fn set(&self, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    /// The total so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
