//! Outcomes of streams.

use std::io::{self, ErrorKind};

use stillwell_metric::Outcome;

/// The outcome that a failed read or write of a stream counts as.
#[must_use]
pub fn stream_outcome(error: &io::Error) -> Outcome {
    match error.kind() {
        // An end that TLS has not announced is one all the same.
        ErrorKind::BrokenPipe
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::UnexpectedEof => Outcome::PeerClosed,
        // What arrived is no TLS.
        ErrorKind::InvalidData => Outcome::Malformed,
        ErrorKind::TimedOut => Outcome::TimedOut,
        _ => Outcome::SendFailed,
    }
}
