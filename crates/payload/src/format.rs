//! One file for each format: a writer of single events.

use std::fmt;

pub(crate) mod apache_common;
pub(crate) mod ascii;
pub(crate) mod datadog_log;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod syslog5424;

/// Gives one event after the other.
pub(crate) trait Writer: fmt::Debug {
    /// The next event, without its frame; none where they have an end.
    fn next(&mut self) -> Option<Event<'_>>;
}

/// One event.
#[derive(Debug)]
pub(crate) struct Event<'w> {
    /// The event, with its line feed in formats of lines.
    pub(crate) bytes: &'w [u8],
    /// Where its slot begins in `bytes`.
    pub(crate) slot: Option<usize>,
    /// Log records and the like in it.
    pub(crate) units: u32,
}

/// What stands around and between the events of a block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Frame {
    /// Nothing: each event ends with a line feed of its own.
    Lines,
    /// One JSON array a block.
    JsonArray,
}

impl Frame {
    /// What stands before an event of the block.
    pub(crate) const fn before(self, is_first: bool) -> &'static [u8] {
        match (self, is_first) {
            (Self::Lines, _) => b"",
            (Self::JsonArray, true) => b"[",
            (Self::JsonArray, false) => b",",
        }
    }

    /// What stands after the last event of the block.
    pub(crate) const fn close(self) -> &'static [u8] {
        match self {
            Self::Lines => b"",
            Self::JsonArray => b"]",
        }
    }

    /// Bytes that the frame adds to a block of one event.
    pub(crate) const fn overhead(self) -> usize {
        self.before(true).len() + self.close().len()
    }
}
