//! Reasons for which connections and streams end.

use super::frame::FrameError;
use super::hpack::HpackError;

/// A reason as it is sent (RFC 9113, 7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H2ErrorCode(pub u32);

impl H2ErrorCode {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0x0);
    /// The protocol was broken.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// The sender failed.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// More data than the window allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// Settings were not acknowledged.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame on a stream that is closed.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame of a length that it cannot have.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// Nothing was done yet: the request may be sent again.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// It is not wanted any more.
    pub const CANCEL: Self = Self(0x8);
    /// Header compression failed.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The tunnel was cut.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// The peer causes too much work.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// The transport is not safe enough.
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// HTTP/1.1 is to be used.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);
}

impl std::fmt::Display for H2ErrorCode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        let name = usize::try_from(self.0)
            .ok()
            .and_then(|code| NAMES.get(code));
        match name {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "error code {:#x}", self.0),
        }
    }
}

/// Reasons for which a connection cannot go on. A connection that has failed stays failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum H2ConnectionError {
    /// Frames that cannot be read.
    #[error("failed to read a frame")]
    Frame(#[source] FrameError),
    /// A header block that cannot be read.
    #[error("failed to read a header block")]
    Compression(#[source] HpackError),
    /// The connection does not begin as HTTP/2 does.
    #[error("the connection does not begin with HTTP/2's preface")]
    Preface,
    /// The peer did what it may not.
    #[error("the peer broke the protocol: {what}")]
    Protocol {
        /// The peer's mistake.
        what: &'static str,
        /// The code to send to it.
        code: H2ErrorCode,
    },
    /// The peer makes work and gives none.
    #[error("the peer sends too many {what}")]
    Flood {
        /// Of what.
        what: &'static str,
    },
    /// The connection ended while streams were open, or within a frame.
    #[error("the connection ended with open streams or within a frame")]
    Truncated,
}

impl H2ConnectionError {
    pub(super) const fn protocol(what: &'static str) -> Self {
        Self::Protocol {
            what,
            code: H2ErrorCode::PROTOCOL_ERROR,
        }
    }

    /// Returns the code to send to the peer.
    #[must_use]
    pub const fn code(&self) -> H2ErrorCode {
        match self {
            Self::Frame(error) => error.code(),
            Self::Compression(_) => H2ErrorCode::COMPRESSION_ERROR,
            Self::Preface => H2ErrorCode::PROTOCOL_ERROR,
            Self::Protocol { code, .. } => *code,
            Self::Flood { .. } => H2ErrorCode::ENHANCE_YOUR_CALM,
            Self::Truncated => H2ErrorCode::NO_ERROR,
        }
    }
}

/// Reasons for which one stream ended early: data, not an error of this side.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum H2StreamFailure {
    /// The peer reset it.
    #[error("the peer reset the stream: {0}")]
    Reset(H2ErrorCode),
    /// The peer has not begun with it: it may be sent again elsewhere.
    #[error("the peer refused the stream")]
    Refused,
    /// The peer sent no valid message; the stream was reset.
    #[error("the peer sent {what}")]
    Malformed {
        /// The mistake.
        what: &'static str,
    },
    /// The peer's headers are above the limit; it was reset.
    #[error("the peer's headers are above the limit")]
    HeadersTooLarge,
    /// The connection failed or ended.
    #[error("the connection failed or ended")]
    ConnectionLost,
}

/// The stream has ended; nothing more can be sent on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the stream has ended")]
pub struct StreamEnded;
