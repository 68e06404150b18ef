//! Sizes of answers: how many, how large in the mean, how different.

use serde::{Deserialize, Serialize};

use crate::cell::Cell;

/// Summary of many sizes, in bytes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Sizes {
    /// Number of sizes.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The sum of their squares.
    pub squares: u128,
    /// The smallest; `u64::MAX` where there is none.
    pub smallest: u64,
    /// The largest.
    pub largest: u64,
}

/// The same, as a shard shows it.
#[derive(Debug, Default)]
pub struct SizeCells {
    count: Cell,
    sum: Cell,
    squares_low: Cell,
    squares_high: Cell,
    smallest: Cell,
    largest: Cell,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0,
            squares: 0,
            smallest: u64::MAX,
            largest: 0,
        }
    }
}

impl Sizes {
    /// One more.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(bytes);
        self.squares += u128::from(bytes) * u128::from(bytes);
        self.smallest = self.smallest.min(bytes);
        self.largest = self.largest.max(bytes);
    }
}

impl SizeCells {
    /// Shows `sizes`; only the owning worker may.
    pub fn set(&self, sizes: &Sizes) {
        self.count.set(sizes.count);
        self.sum.set(sizes.sum);
        let halves = |value: u128| [value >> 64, value & u128::from(u64::MAX)];
        let [high, low] = halves(sizes.squares).map(|half| u64::try_from(half).unwrap_or(0));
        self.squares_high.set(high);
        self.squares_low.set(low);
        // A cell begins at zero, which would be the smallest of all.
        self.smallest.set(!sizes.smallest);
        self.largest.set(sizes.largest);
    }

    /// Returns the last published summary.
    #[must_use]
    pub fn read(&self) -> Sizes {
        Sizes {
            count: self.count.total(),
            sum: self.sum.total(),
            squares: u128::from(self.squares_high.total()) << 64
                | u128::from(self.squares_low.total()),
            smallest: !self.smallest.total(),
            largest: self.largest.total(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_was_added() {
        let cells = SizeCells::default();
        assert_eq!(cells.read(), Sizes::default());
        let mut sizes = Sizes::default();
        for bytes in [2, u64::MAX / 2, 4] {
            sizes.add(bytes);
        }
        cells.set(&sizes);
        assert_eq!(cells.read(), sizes);
        assert_eq!((sizes.smallest, sizes.largest), (2, u64::MAX / 2));
    }
}
