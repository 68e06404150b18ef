//! Walking a set over and over.

use stillwell_plan::RateUnit;

use crate::{Block, BlockSet, Counts};

/// The position of one worker in its set. After the last block it begins again at the first and
/// never ends.
///
/// Every call must be given the set that the cursor was made for.
#[derive(Clone, Debug)]
pub struct Cursor {
    next: usize,
    len: usize,
}

impl Cursor {
    /// Before the first block of `set`.
    #[must_use]
    pub fn new(set: &BlockSet) -> Self {
        Self {
            next: 0,
            len: set.len(),
        }
    }

    /// The next blocks as one: as many neighbours as stay within `limit`, at
    /// least one even where that one does not. Ends at the last block of the
    /// set at the latest, so what is given is one slice.
    pub fn take<'s>(&mut self, set: &'s BlockSet, limit: Limit) -> Block<'s> {
        debug_assert_eq!(self.len, set.len(), "a cursor belongs to one set");
        let end = set.run_end(self.next, limit);
        let block = set.run(self.next, end);
        self.next = if end < self.len { end } else { 0 };
        block
    }

    /// Returns the counts of the next block alone.
    #[must_use]
    pub fn peek_next(&self, set: &BlockSet) -> Counts {
        set.block(self.next).counts()
    }
}

/// Maximum amount to take at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit {
    /// Bytes, at most.
    pub bytes_max: usize,
    /// As many of `unit`, at most.
    pub units_max: u64,
    /// The unit of `units_max`.
    pub unit: RateUnit,
}

impl Limit {
    /// At most `bytes_max` bytes.
    #[must_use]
    pub const fn bytes(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            units_max: bytes_max as u64,
            unit: RateUnit::Bytes,
        }
    }

    /// One block.
    #[must_use]
    pub const fn one_block() -> Self {
        Self {
            bytes_max: usize::MAX,
            units_max: 1,
            unit: RateUnit::Blocks,
        }
    }
}
