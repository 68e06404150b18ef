//! Reasons for which connections and messages end.

use super::qpack::QpackError;

/// A reason as it is sent (RFC 9114, 8.1; RFC 9204, 6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H3ErrorCode(pub u64);

/// The codes by name, in order.
const NAMES: [(u64, &str); 20] = [
    (0x100, "H3_NO_ERROR"),
    (0x101, "H3_GENERAL_PROTOCOL_ERROR"),
    (0x102, "H3_INTERNAL_ERROR"),
    (0x103, "H3_STREAM_CREATION_ERROR"),
    (0x104, "H3_CLOSED_CRITICAL_STREAM"),
    (0x105, "H3_FRAME_UNEXPECTED"),
    (0x106, "H3_FRAME_ERROR"),
    (0x107, "H3_EXCESSIVE_LOAD"),
    (0x108, "H3_ID_ERROR"),
    (0x109, "H3_SETTINGS_ERROR"),
    (0x10a, "H3_MISSING_SETTINGS"),
    (0x10b, "H3_REQUEST_REJECTED"),
    (0x10c, "H3_REQUEST_CANCELLED"),
    (0x10d, "H3_REQUEST_INCOMPLETE"),
    (0x10e, "H3_MESSAGE_ERROR"),
    (0x10f, "H3_CONNECT_ERROR"),
    (0x110, "H3_VERSION_FALLBACK"),
    (0x200, "QPACK_DECOMPRESSION_FAILED"),
    (0x201, "QPACK_ENCODER_STREAM_ERROR"),
    (0x202, "QPACK_DECODER_STREAM_ERROR"),
];

impl H3ErrorCode {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0x100);
    /// The sender failed.
    pub const INTERNAL_ERROR: Self = Self(0x102);
    /// A stream that the other side may not open.
    pub const STREAM_CREATION_ERROR: Self = Self(0x103);
    /// A stream ended that lasts as long as its connection.
    pub const CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    /// A frame where it may not be.
    pub const FRAME_UNEXPECTED: Self = Self(0x105);
    /// A frame that is not laid out as it must be.
    pub const FRAME_ERROR: Self = Self(0x106);
    /// The peer causes too much work.
    pub const EXCESSIVE_LOAD: Self = Self(0x107);
    /// A number that is used wrongly.
    pub const ID_ERROR: Self = Self(0x108);
    /// Settings that cannot be.
    pub const SETTINGS_ERROR: Self = Self(0x109);
    /// No settings at the beginning.
    pub const MISSING_SETTINGS: Self = Self(0x10a);
    /// Nothing was done yet: the request may be sent again.
    pub const REQUEST_REJECTED: Self = Self(0x10b);
    /// It is not wanted any more.
    pub const REQUEST_CANCELLED: Self = Self(0x10c);
    /// A request ended before it was whole.
    pub const REQUEST_INCOMPLETE: Self = Self(0x10d);
    /// A message that is none.
    pub const MESSAGE_ERROR: Self = Self(0x10e);
    /// A section of fields cannot be read.
    pub const DECOMPRESSION_FAILED: Self = Self(0x200);
    /// An instruction to a table that was not offered.
    pub const ENCODER_STREAM_ERROR: Self = Self(0x201);
    /// Word of a table that is not kept.
    pub const DECODER_STREAM_ERROR: Self = Self(0x202);
}

impl std::fmt::Display for H3ErrorCode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match NAMES.iter().find(|(code, _)| *code == self.0) {
            Some((_, name)) => formatter.write_str(name),
            None => write!(formatter, "error code {:#x}", self.0),
        }
    }
}

/// Reasons for which a connection cannot go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum H3ConnectionError {
    /// A section of fields that cannot be read.
    #[error("failed to read a header block")]
    Compression(#[source] QpackError),
    /// The peer did what it may not.
    #[error("the peer broke the protocol: {what}")]
    Protocol {
        /// The peer's mistake.
        what: &'static str,
        /// The code to send to it.
        code: H3ErrorCode,
    },
}

impl H3ConnectionError {
    pub(super) const fn new(code: H3ErrorCode, what: &'static str) -> Self {
        Self::Protocol { what, code }
    }

    /// Returns the code to send to the peer.
    #[must_use]
    pub const fn code(&self) -> H3ErrorCode {
        match self {
            Self::Compression(_) => H3ErrorCode::DECOMPRESSION_FAILED,
            Self::Protocol { code, .. } => *code,
        }
    }
}

/// Reasons for which one message is given up while its connection goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum H3StreamFailure {
    /// The peer sent no valid message.
    #[error("the peer sent {what}")]
    Malformed {
        /// The mistake.
        what: &'static str,
    },
    /// It ended before it was whole.
    #[error("the message ended before it was complete")]
    Incomplete,
    /// The peer's headers are above the limit.
    #[error("the peer's headers are above the limit")]
    HeadersTooLarge,
}

impl H3StreamFailure {
    /// Returns the code to send to the peer.
    #[must_use]
    pub const fn code(&self) -> H3ErrorCode {
        match self {
            Self::Malformed { .. } => H3ErrorCode::MESSAGE_ERROR,
            Self::Incomplete => H3ErrorCode::REQUEST_INCOMPLETE,
            Self::HeadersTooLarge => H3ErrorCode::EXCESSIVE_LOAD,
        }
    }
}

/// The effect of a message that cannot be read on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum H3MessageError {
    /// The connection is to be closed.
    #[error(transparent)]
    Connection(#[from] H3ConnectionError),
    /// The stream is to be given up.
    #[error(transparent)]
    Stream(#[from] H3StreamFailure),
}

impl H3MessageError {
    pub(super) const fn connection(code: H3ErrorCode, what: &'static str) -> Self {
        Self::Connection(H3ConnectionError::new(code, what))
    }
}
