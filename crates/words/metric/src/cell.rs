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

/// A counter that continues over a warm-up and reports the count since its end.
#[derive(Debug, Default)]
pub struct PhasedCell {
    all: Cell,
    /// Count to subtract; nothing counts while this is the largest number.
    before: Cell,
}

impl PhasedCell {
    /// Adds `amount`; only the owning worker may.
    pub fn add(&self, amount: u64) {
        self.all.add(amount);
    }

    /// Replaces the total; only the owning worker may.
    pub fn set(&self, total: u64) {
        self.all.set(total);
    }

    /// The total so far, warm-up included.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.all.total()
    }

    /// Returns the count of the measured time so far: 0 during the warm-up, and the
    /// whole count without a warm-up.
    #[must_use]
    pub fn measured(&self) -> u64 {
        self.total().saturating_sub(self.before.total())
    }

    /// A warm-up begins: nothing counts until [`PhasedCell::measure_from`].
    pub fn warm_up(&self) {
        self.before.set(u64::MAX);
    }

    /// The warm-up is over, and `before` of the total belongs to it.
    pub fn measure_from(&self, before: u64) {
        self.before.set(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_warm_up_counted_is_no_part_of_what_is_measured() {
        let cell = PhasedCell::default();
        cell.add(2);
        assert_eq!(cell.measured(), 2, "there is no warm-up");
        cell.warm_up();
        cell.add(5);
        assert_eq!((cell.total(), cell.measured()), (7, 0));
        cell.measure_from(cell.total());
        cell.add(1);
        assert_eq!((cell.total(), cell.measured()), (8, 1));
    }
}
