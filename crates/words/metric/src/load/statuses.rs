//! Counts of responses by status code.

use std::collections::BTreeMap;

use crate::cell::Cell;

/// Lowest status code that is counted by itself.
const FIRST: u16 = 100;
/// Number of status codes that are counted by themselves: 100 to 599.
const CODES: usize = 500;

/// A counter for each status code from 100 to 599; other codes are counted by their
/// outcome alone.
#[derive(Debug)]
pub struct StatusCells(Box<[Cell]>);

impl Default for StatusCells {
    fn default() -> Self {
        Self((0..CODES).map(|_| Cell::default()).collect())
    }
}

impl StatusCells {
    /// Counts one response; only the owning worker may.
    pub fn count(&self, status: u16) {
        if let Some(cell) = self.cell(status) {
            cell.add(1);
        }
    }

    /// Returns the number of responses with `status`.
    #[must_use]
    pub fn of(&self, status: u16) -> u64 {
        self.cell(status).map_or(0, Cell::total)
    }

    /// Returns the status codes that occurred, with their numbers of responses.
    #[must_use]
    pub fn read(&self) -> BTreeMap<u16, u64> {
        let counts = (FIRST..).zip(self.0.iter().map(Cell::total));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    fn cell(&self, status: u16) -> Option<&Cell> {
        self.0.get(usize::from(status.checked_sub(FIRST)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_counted_one_by_one_and_unknown_ones_are_ignored() {
        let cells = StatusCells::default();
        for status in [100, 204, 503, 503, 599, 99, 600, 0] {
            cells.count(status);
        }
        assert_eq!(
            cells.read(),
            [(100, 1), (204, 1), (503, 2), (599, 1)].into()
        );
        assert_eq!((cells.of(503), cells.of(500), cells.of(999)), (2, 0, 0));
    }
}
