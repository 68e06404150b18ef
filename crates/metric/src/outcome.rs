//! How one send can end.

/// How one request, datagram or connection ended: a closed list, so that a
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
    /// Nobody listens there.
    ConnectRefused,
    /// No connection for any other reason.
    ConnectFailed,
    /// The peer closed or reset the connection.
    PeerClosed,
    /// No answer in time.
    TimedOut,
    /// An answer that is not HTTP.
    Malformed,
    /// The kernel refused the send for any other reason.
    SendFailed,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Ok,
        Self::Status3xx,
        Self::Status4xx,
        Self::Status5xx,
        Self::ConnectRefused,
        Self::ConnectFailed,
        Self::PeerClosed,
        Self::TimedOut,
        Self::Malformed,
        Self::SendFailed,
    ];

    /// The value of the `outcome` label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Status3xx => "status_3xx",
            Self::Status4xx => "status_4xx",
            Self::Status5xx => "status_5xx",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectFailed => "connect_failed",
            Self::PeerClosed => "peer_closed",
            Self::TimedOut => "timed_out",
            Self::Malformed => "malformed",
            Self::SendFailed => "send_failed",
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
            _ => Self::Malformed,
        }
    }

    /// Its place in an array over all outcomes.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_own_place() {
        for (index, outcome) in Outcome::ALL.iter().enumerate() {
            assert_eq!(outcome.index(), index);
        }
    }

    #[test]
    fn statuses_fall_into_classes() {
        assert_eq!(Outcome::of_status(204), Outcome::Ok);
        assert_eq!(Outcome::of_status(404), Outcome::Status4xx);
        assert_eq!(Outcome::of_status(999), Outcome::Malformed);
    }
}
