//! Outcomes of gRPC calls and the number of their messages.

use crate::cell::Cell;
use stillwell_units::as_usize;

/// End of one call: its status, or the fault of an answer without a status. A closed
/// list; each call that was answered or that missed its deadline counts once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CallEnd {
    /// Status 0.
    Ok,
    /// Status 1.
    Cancelled,
    /// Status 2.
    Unknown,
    /// Status 3.
    InvalidArgument,
    /// Status 4, from the client or the server.
    DeadlineExceeded,
    /// Status 5.
    NotFound,
    /// Status 6.
    AlreadyExists,
    /// Status 7.
    PermissionDenied,
    /// Status 8.
    ResourceExhausted,
    /// Status 9.
    FailedPrecondition,
    /// Status 10.
    Aborted,
    /// Status 11.
    OutOfRange,
    /// Status 12.
    Unimplemented,
    /// Status 13.
    Internal,
    /// Status 14.
    Unavailable,
    /// Status 15.
    DataLoss,
    /// Status 16.
    Unauthenticated,
    /// A status that gRPC does not have.
    StatusOther,
    /// The answer is whole and has no status.
    NoStatus,
    /// The answer is HTTP and no more than that.
    NotGrpc,
    /// The answer has bytes that are no message.
    BadFrame,
    /// The answer ends well and within a message.
    CutShort,
    /// A method that gives one message ended well without one, or with several.
    WrongCount,
}

impl CallEnd {
    /// All of them; first the statuses, by their numbers.
    pub const ALL: [Self; 23] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
        Self::StatusOther,
        Self::NoStatus,
        Self::NotGrpc,
        Self::BadFrame,
        Self::CutShort,
        Self::WrongCount,
    ];

    /// Numbers of statuses that gRPC has: 0 and on.
    const STATUSES: u32 = 17;

    /// The end of a call with this status.
    #[must_use]
    pub fn of_status(number: u32) -> Self {
        let index = as_usize(number);
        let known = Self::ALL.get(index).filter(|_| number < Self::STATUSES);
        known.copied().unwrap_or(Self::StatusOther)
    }

    /// True for a status that gRPC has, and not for a fault of an answer without one.
    #[must_use]
    pub const fn is_status(self) -> bool {
        self.index() < Self::StatusOther.index()
    }

    /// The name of its counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "grpc_ok",
            Self::Cancelled => "grpc_cancelled",
            Self::Unknown => "grpc_unknown",
            Self::InvalidArgument => "grpc_invalid_argument",
            Self::DeadlineExceeded => "grpc_deadline_exceeded",
            Self::NotFound => "grpc_not_found",
            Self::AlreadyExists => "grpc_already_exists",
            Self::PermissionDenied => "grpc_permission_denied",
            Self::ResourceExhausted => "grpc_resource_exhausted",
            Self::FailedPrecondition => "grpc_failed_precondition",
            Self::Aborted => "grpc_aborted",
            Self::OutOfRange => "grpc_out_of_range",
            Self::Unimplemented => "grpc_unimplemented",
            Self::Internal => "grpc_internal",
            Self::Unavailable => "grpc_unavailable",
            Self::DataLoss => "grpc_data_loss",
            Self::Unauthenticated => "grpc_unauthenticated",
            Self::StatusOther => "grpc_status_other",
            Self::NoStatus => "grpc_no_status",
            Self::NotGrpc => "grpc_not_grpc",
            Self::BadFrame => "grpc_bad_frame",
            Self::CutShort => "grpc_cut_short",
            Self::WrongCount => "grpc_wrong_count",
        }
    }

    /// Its place in an array over all of them.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Messages of calls.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CallMessages {
    /// Given to a connection, wholly.
    Sent,
    /// Come, wholly.
    Received,
    /// Those of them that were compressed.
    Compressed,
}

impl CallMessages {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sent, Self::Received, Self::Compressed];

    /// The name of its counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "grpc_messages_sent",
            Self::Received => "grpc_messages_received",
            Self::Compressed => "grpc_messages_compressed",
        }
    }
}

/// Counters of one worker for calls that were due in the measured time.
#[derive(Debug, Default)]
pub struct CallCells {
    ends: [Cell; CallEnd::ALL.len()],
    messages: [Cell; CallMessages::ALL.len()],
}

impl CallCells {
    /// Returns the number of calls with this end.
    #[must_use]
    pub const fn ended(&self, end: CallEnd) -> &Cell {
        &self.ends[end.index()]
    }

    /// Returns the number of messages.
    #[must_use]
    pub const fn messages(&self, which: CallMessages) -> &Cell {
        &self.messages[which as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_place_and_every_name_is_one_of_its_own() {
        for (index, end) in CallEnd::ALL.iter().enumerate() {
            assert_eq!(end.index(), index);
            let names = CallEnd::ALL
                .iter()
                .filter(|candidate| candidate.name() == end.name());
            assert_eq!(names.count(), 1, "{end:?}");
        }
        assert_eq!(CallEnd::of_status(14), CallEnd::Unavailable);
        assert_eq!(CallEnd::of_status(16), CallEnd::Unauthenticated);
        for number in [17, 18, 22, u32::MAX] {
            assert_eq!(CallEnd::of_status(number), CallEnd::StatusOther, "{number}");
        }
    }
}
