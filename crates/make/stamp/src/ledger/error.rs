//! Ledgers that cannot be made or read.

use stillwell_units::ByteSize;

use crate::stamp::STREAM_LIMIT;

/// The most copies of an event that can be declared.
pub(super) const COPIES_LIMIT: u8 = 8;

/// Version of the form of ledgers in files.
pub(super) const VERSION: u8 = 1;

/// A ledger that cannot be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LedgerError {
    /// No stream, or more than stamps can name.
    #[error("a ledger has 1 to {STREAM_LIMIT} streams, not {streams}")]
    Streams {
        /// The requested number.
        streams: usize,
    },
    /// No copy, or too many.
    #[error("an event is expected 1 to {COPIES_LIMIT} times, not {copies}")]
    Copies {
        /// The requested number.
        copies: u8,
    },
    /// Not even the fixed part would fit.
    #[error("the ledger of {streams} streams needs {needed} at least")]
    Memory {
        /// The number of streams.
        streams: usize,
        /// Memory that is enough.
        needed: ByteSize,
    },
    /// Two ledgers that expect different things cannot be joined.
    #[error("the ledgers expect another run, other streams or other copies")]
    Unlike,
}

/// Bytes that are no ledger.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LedgerReadError {
    /// They begin with something else.
    #[error("it is not a delivery ledger: its first bytes differ")]
    NoLedger,
    /// They are of another version.
    #[error("it is a delivery ledger of version {version}, and version {VERSION} was expected")]
    Version {
        /// Its version.
        version: u8,
    },
    /// They are not what was written.
    #[error("the delivery ledger is damaged: {what}")]
    Damaged {
        /// The part that is wrong.
        what: &'static str,
    },
    /// They need more memory than the ledger has.
    #[error("the delivery ledger needs more memory than it may have")]
    Memory,
    /// The ledger to read into cannot be made, or expects something else.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl LedgerReadError {
    pub(super) const fn damaged(what: &'static str) -> Self {
        Self::Damaged { what }
    }
}
