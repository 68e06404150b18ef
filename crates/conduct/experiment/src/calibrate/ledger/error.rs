//! Errors of ledgers.

use std::io;
use std::path::PathBuf;

/// Reasons why a ledger cannot be read or filled.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file cannot be read or written.
    #[error("access {}", path.display())]
    Storage {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line is not an entry.
    #[error("read {}, line {line}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// A reference experiment is missing.
    #[error("the ledger has no {0}")]
    NoReference(&'static str),
    /// A reference experiment gave no usable cost.
    #[error(
        "the measured cost of a round of work is {0} of the cost of an event, which is unusable"
    )]
    Cost(f64),
    /// An experiment did not run.
    #[error("{kind} {number}: {reason}")]
    Experiment {
        /// Its kind.
        kind: &'static str,
        /// Its number within the kind.
        number: u32,
        /// Description of the failure.
        reason: String,
    },
}
