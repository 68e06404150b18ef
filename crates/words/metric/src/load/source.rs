//! Counters of requests that a load takes from an external source.

use std::sync::OnceLock;

use crate::cell::{Cell, PhasedCell};

/// Count of the source of one worker. A closed list.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SourceCount {
    /// Calls that were begun on a connection.
    Calls,
    /// Those of them that the source began to answer.
    Answered,
    /// Requests that it handed out.
    Requests,
    /// Calls for which there was no connection.
    Unconnected,
    /// These, calls that ended other than well, and those that handed out what is no
    /// request.
    Failures,
    /// Calls that the source ended well.
    Ended,
    /// Times at which a request was due and none was there.
    Waits,
}

impl SourceCount {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Calls,
        Self::Answered,
        Self::Requests,
        Self::Unconnected,
        Self::Failures,
        Self::Ended,
        Self::Waits,
    ];

    /// The name of its counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calls => "source_calls",
            Self::Answered => "source_answered",
            Self::Requests => "source_requests",
            Self::Unconnected => "source_unconnected",
            Self::Failures => "source_failures",
            Self::Ended => "source_ended",
            Self::Waits => "source_waits",
        }
    }
}

/// Counters of the source of one worker. The reader of the source writes them, except
/// for the waits of the worker.
#[derive(Debug, Default)]
pub struct SourceCells {
    /// Calls that were begun on a connection.
    pub calls: Cell,
    /// Those of them that the source began to answer.
    pub answered: Cell,
    /// Requests that it handed out.
    pub requests: Cell,
    /// Calls for which there was no connection.
    pub unconnected: Cell,
    /// These, calls that ended other than well, and those that handed out what is no
    /// request.
    pub failures: Cell,
    /// Calls that the source ended well.
    pub ended: Cell,
    /// Times at which a request was due and none was there; the worker's own.
    pub waits: PhasedCell,
    /// Nanoseconds of them; the worker's own.
    pub waited: PhasedCell,
    /// Text of the first failure.
    pub trouble: OnceLock<String>,
}

impl SourceCells {
    /// Returns true if the source has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ended.total() + self.failures.total() > 0
    }

    /// Returns the reported value of a counter.
    #[must_use]
    pub fn value(&self, count: SourceCount) -> u64 {
        match count {
            SourceCount::Calls => self.calls.total(),
            SourceCount::Answered => self.answered.total(),
            SourceCount::Requests => self.requests.total(),
            SourceCount::Unconnected => self.unconnected.total(),
            SourceCount::Failures => self.failures.total(),
            SourceCount::Ended => self.ended.total(),
            SourceCount::Waits => self.waits.measured(),
        }
    }
}
