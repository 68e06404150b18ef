//! Outcomes of one send.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Outcome of one request, datagram or connection: a closed list, so a
/// measured failure is a number and never a text.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    /// Sent, and answered as it should where an answer is due.
    Ok,
    /// Answered with a status from 300 to 399.
    Status3xx,
    /// Answered with a status from 400 to 499.
    Status4xx,
    /// Answered with a status from 500 to 599.
    Status5xx,
    /// Answered with any other status.
    StatusOther,
    /// No program listens on the address.
    ConnectRefused,
    /// Connecting took too long.
    ConnectTimedOut,
    /// No connection for any other reason.
    ConnectFailed,
    /// A connection that could not be secured, or does not speak the protocol.
    HandshakeFailed,
    /// The peer closed or reset the connection, or refused the request on it.
    PeerClosed,
    /// No answer in time.
    TimedOut,
    /// An answer that is not HTTP.
    Malformed,
    /// The kernel refused the send for any other reason.
    SendFailed,
    /// Due while no connection was free, and not allowed to wait.
    Dropped,
    /// Under way when the time was up.
    Unfinished,
    /// Answered, and refused by a check of its scenario.
    UnexpectedAnswer,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Ok,
        Self::Status3xx,
        Self::Status4xx,
        Self::Status5xx,
        Self::StatusOther,
        Self::ConnectRefused,
        Self::ConnectTimedOut,
        Self::ConnectFailed,
        Self::HandshakeFailed,
        Self::PeerClosed,
        Self::TimedOut,
        Self::Malformed,
        Self::SendFailed,
        Self::Dropped,
        Self::Unfinished,
        Self::UnexpectedAnswer,
    ];

    /// Those that are answers: the first of [`Outcome::ALL`].
    pub const ANSWERS: [Self; 5] = [
        Self::Ok,
        Self::Status3xx,
        Self::Status4xx,
        Self::Status5xx,
        Self::StatusOther,
    ];

    /// Those that are ends without an answer: all others of [`Outcome::ALL`] but
    /// [`Outcome::Unfinished`], which is no end, and [`Outcome::UnexpectedAnswer`], which no load has.
    pub const FAILURES: [Self; 9] = [
        Self::ConnectRefused,
        Self::ConnectTimedOut,
        Self::ConnectFailed,
        Self::HandshakeFailed,
        Self::PeerClosed,
        Self::TimedOut,
        Self::Malformed,
        Self::SendFailed,
        Self::Dropped,
    ];

    /// The value of the `outcome` label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Status3xx => "status_3xx",
            Self::Status4xx => "status_4xx",
            Self::Status5xx => "status_5xx",
            Self::StatusOther => "status_other",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimedOut => "connect_timed_out",
            Self::ConnectFailed => "connect_failed",
            Self::HandshakeFailed => "handshake_failed",
            Self::PeerClosed => "peer_closed",
            Self::TimedOut => "timed_out",
            Self::Malformed => "malformed",
            Self::UnexpectedAnswer => "unexpected_answer",
            Self::SendFailed => "send_failed",
            Self::Dropped => "dropped",
            Self::Unfinished => "unfinished",
        }
    }

    /// Returns its meaning, in a sentence.
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::Ok => "It was sent, and answered successfully if an answer was expected.",
            Self::Status3xx => "It was answered with a status from 300 to 399.",
            Self::Status4xx => "It was answered with a status from 400 to 499.",
            Self::Status5xx => "It was answered with a status from 500 to 599.",
            Self::StatusOther => "It was answered with any other status.",
            Self::ConnectRefused => "No program listens on the address.",
            Self::ConnectTimedOut => "Connecting took longer than the timeout.",
            Self::ConnectFailed => "No connection could be made; the first error is in the report.",
            Self::HandshakeFailed => {
                "A connection could not be secured by TLS, or the peer does not speak the protocol."
            }
            Self::PeerClosed => "The peer closed or reset the connection, or refused the request.",
            Self::TimedOut => "No answer came within the timeout.",
            Self::Malformed => "The answer is not valid in its protocol.",
            Self::UnexpectedAnswer => {
                "The answer failed a check of its step, or lacks a value that the step extracts."
            }
            Self::SendFailed => "The kernel refused the send.",
            Self::Dropped => {
                "It was due while no connection was free, and was not allowed to wait."
            }
            Self::Unfinished => "It was in flight when the load ended.",
        }
    }

    /// The outcome of an answer with this HTTP status.
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            100..300 => Self::Ok,
            300..400 => Self::Status3xx,
            400..500 => Self::Status4xx,
            500..600 => Self::Status5xx,
            _ => Self::StatusOther,
        }
    }

    /// Returns true if a whole answer came.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        self.index() < Self::ANSWERS.len()
    }

    /// Its place in an array over all outcomes.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Reads counts in the order of [`Outcome::ALL`]. Earlier versions had fewer outcomes.
///
/// # Errors
/// More counts than outcomes.
pub fn read_outcome_counts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<[u64; Outcome::ALL.len()], D::Error> {
    let read = Vec::<u64>::deserialize(deserializer)?;
    let mut counts = [0; Outcome::ALL.len()];
    let known = counts.get_mut(..read.len());
    let known = known.ok_or_else(|| D::Error::custom("more counts than outcomes"))?;
    known.copy_from_slice(&read);
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use serde::de::value::{Error as ValueError, SeqDeserializer};

    use super::*;

    #[test]
    fn every_outcome_has_its_own_place() {
        for (index, outcome) in Outcome::ALL.iter().enumerate() {
            assert_eq!(outcome.index(), index);
            assert_eq!(outcome.is_answer(), Outcome::ANSWERS.contains(outcome));
            let is_other = matches!(outcome, Outcome::Unfinished | Outcome::UnexpectedAnswer);
            let is_failure = !outcome.is_answer() && !is_other;
            assert_eq!(is_failure, Outcome::FAILURES.contains(outcome));
        }
    }

    #[test]
    fn counts_of_earlier_versions_are_read() {
        let read = |counts: Vec<u64>| {
            let counts = SeqDeserializer::<_, ValueError>::new(counts.into_iter());
            read_outcome_counts(counts)
        };
        let counts = read(vec![7, 0, 3]).unwrap();
        assert_eq!((counts[0], counts[2], counts[15]), (7, 3, 0));
        assert!(read(vec![1; Outcome::ALL.len() + 1]).is_err());
    }

    #[test]
    fn statuses_fall_into_classes() {
        assert_eq!(Outcome::of_status(204), Outcome::Ok);
        assert_eq!(Outcome::of_status(404), Outcome::Status4xx);
        assert_eq!(Outcome::of_status(999), Outcome::StatusOther);
    }
}
