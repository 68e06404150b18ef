//! From bytes, cut anywhere, to whole lines.

use bytes::Bytes;
use memchr::{memchr, memrchr};

/// The longest line that is an event.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;

/// Puts the lines of one connection together.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    unfinished: Vec<u8>,
    /// True within a line that was too long.
    skipping: bool,
}

/// The events that a piece of input completed.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Lines {
    /// Whole lines with their ends, in one piece.
    pub(crate) bytes: Bytes,
    /// Lines that were too long.
    pub(crate) dropped: u64,
}

impl Splitter {
    /// Takes in what was read.
    pub(crate) fn take(&mut self, input: &[u8]) -> Lines {
        let input = if self.skipping {
            let Some(end) = memchr(b'\n', input) else {
                return Lines::default();
            };
            self.skipping = false;
            &input[end + 1..]
        } else {
            input
        };
        let (whole, rest) = input.split_at(memrchr(b'\n', input).map_or(0, |last| last + 1));
        let bytes = if whole.is_empty() {
            Bytes::new()
        } else {
            let mut lines = Vec::with_capacity(self.unfinished.len() + whole.len());
            lines.append(&mut self.unfinished);
            lines.extend_from_slice(whole);
            Bytes::from(lines)
        };
        self.unfinished.extend_from_slice(rest);
        self.skipping = self.unfinished.len() > LINE_BYTES_MAX;
        if self.skipping {
            self.unfinished = Vec::new();
        }
        Lines {
            bytes,
            dropped: u64::from(self.skipping),
        }
    }

    /// The last line, if it has no end; with one.
    pub(crate) fn finish(&mut self) -> Option<Bytes> {
        if self.unfinished.is_empty() {
            return None;
        }
        self.unfinished.push(b'\n');
        Some(Bytes::from(std::mem::take(&mut self.unfinished)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_cuts_the_lines_come_out_as_they_were(
            text in "[a\r\n]{0,80}",
            part_bytes in 1..30_usize,
        ) {
            let mut splitter = Splitter::default();
            let mut out = Vec::new();
            for part in text.as_bytes().chunks(part_bytes) {
                let lines = splitter.take(part);
                prop_assert!(lines.bytes.is_empty() || lines.bytes.ends_with(b"\n"));
                prop_assert_eq!(lines.dropped, 0);
                out.extend_from_slice(&lines.bytes);
            }
            let unfinished = splitter.finish();
            prop_assert_eq!(unfinished.is_some(), !(text.is_empty() || text.ends_with('\n')));
            out.extend_from_slice(&unfinished.unwrap_or_default());
            prop_assert_eq!(&out[..text.len()], text.as_bytes());
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_alone() {
        let mut splitter = Splitter::default();
        let mut dropped = 0;
        let mut out = Vec::new();
        let long = vec![b'x'; LINE_BYTES_MAX + 10];
        for part in [b"first\n".as_slice(), &long, b"more", b"end\nlast\n"] {
            let lines = splitter.take(part);
            dropped += lines.dropped;
            out.extend_from_slice(&lines.bytes);
        }
        assert_eq!((out.as_slice(), dropped), (b"first\nlast\n".as_slice(), 1));
    }
}
