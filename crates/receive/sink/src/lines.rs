//! Counting lines, cut anywhere.

use memchr::memchr_iter;

/// Counts lines in what comes in parts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Lines {
    /// True if something came after the last line end.
    unfinished: bool,
}

impl Lines {
    /// The lines that end within `bytes`.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> u64 {
        if let Some(last) = bytes.last() {
            self.unfinished = *last != b'\n';
        }
        memchr_iter(b'\n', bytes).count() as u64
    }

    /// The lines that the end of all ends: one where the last was not ended.
    pub(crate) const fn finish(self) -> u64 {
        self.unfinished as u64
    }

    /// Returns true if a line has begun and not ended.
    pub(crate) const fn is_within_line(self) -> bool {
        self.unfinished
    }
}
