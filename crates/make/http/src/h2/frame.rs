//! Frames (RFC 9113, 4 and 6).

mod parse;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use parse::SettingsFrame;
pub use read::FrameReader;
pub use write::{
    write_data, write_frame, write_go_away, write_headers, write_ping, write_reset, write_settings,
    write_settings_ack, write_window_update,
};

use super::error::H2ErrorCode;

/// Size of the head before each frame's payload, in bytes.
pub const FRAME_HEAD_BYTES: usize = 9;

/// The payload that every peer takes, in bytes.
pub const FRAME_BYTES_DEFAULT: u32 = 16 << 10;

/// The types of frames.
pub mod kind {
    /// Part of a body.
    pub const DATA: u8 = 0;
    /// The beginning of a header block.
    pub const HEADERS: u8 = 1;
    /// Without meaning since RFC 9113.
    pub const PRIORITY: u8 = 2;
    /// Ends a stream.
    pub const RST_STREAM: u8 = 3;
    /// The sender's settings.
    pub const SETTINGS: u8 = 4;
    /// A request that the server makes up.
    pub const PUSH_PROMISE: u8 = 5;
    /// Is answered by the same.
    pub const PING: u8 = 6;
    /// No new streams.
    pub const GOAWAY: u8 = 7;
    /// More may be sent.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a header block.
    pub const CONTINUATION: u8 = 9;
}

/// The flags of frames.
pub mod flag {
    /// The sender has finished the stream.
    pub const END_STREAM: u8 = 0x1;
    /// SETTINGS or PING answer the peer's.
    pub const ACK: u8 = 0x1;
    /// No CONTINUATION follows.
    pub const END_HEADERS: u8 = 0x4;
    /// The payload begins with the length of what fills its end.
    pub const PADDED: u8 = 0x8;
    /// HEADERS begin with five bytes of priority.
    pub const PRIORITY: u8 = 0x20;
}

/// One frame. Bodies come in parts as they arrive, everything else whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Frame<'i> {
    /// Part of a DATA frame.
    Data {
        /// The stream.
        stream: u32,
        /// Received bytes, without padding. Empty only at the frame's beginning or end.
        bytes: &'i [u8],
        /// Size of the whole frame in the windows: with its first part, in bytes. 0 with the
        /// others.
        charged_bytes: u32,
        /// The data of the whole frame: with its first part, in bytes. Nothing
        /// with the others.
        data_bytes: u32,
        /// True if this ends the frame.
        end_frame: bool,
        /// True if this ends the stream.
        end_stream: bool,
    },
    /// A whole header block, which [`FrameReader::block`] holds.
    Headers {
        /// The stream.
        stream: u32,
        /// True if it ends the stream.
        end_stream: bool,
    },
    /// A promise, its header block as with `Headers`.
    PushPromise {
        /// The stream that the promise was sent on.
        stream: u32,
        /// The stream that is promised.
        promised: u32,
    },
    /// Without meaning since RFC 9113.
    Priority {
        /// The stream.
        stream: u32,
    },
    /// The stream is over.
    Reset {
        /// The stream.
        stream: u32,
        /// Why.
        code: H2ErrorCode,
    },
    /// The peer's settings; to be acknowledged.
    Settings(SettingsFrame),
    /// The peer has taken our settings in.
    SettingsAck,
    /// To be answered unless it is an answer.
    Ping {
        /// Any bytes of the sender.
        payload: [u8; 8],
        /// True for an answer.
        ack: bool,
    },
    /// No new streams.
    GoAway {
        /// The last stream that was or will be looked at.
        last_stream: u32,
        /// Why.
        code: H2ErrorCode,
    },
    /// More may be sent.
    WindowUpdate {
        /// The stream; 0 is the connection.
        stream: u32,
        /// Increase in bytes; 0 is an error.
        increment_bytes: u32,
    },
    /// A frame of a type that means nothing here.
    Ignored {
        /// Its type.
        kind: u8,
    },
}

/// The bytes `HTT` as the length of a frame: the beginning of a response in HTTP/1.1.
const HTTP1_LENGTH: u32 = 0x48_5454;

fn too_large(bytes: u32, bytes_max: u32) -> String {
    match bytes {
        HTTP1_LENGTH => "the peer answered in HTTP/1.1, not in HTTP/2".to_owned(),
        _ => format!("a frame of {bytes} bytes exceeds the {bytes_max} allowed"),
    }
}

/// Reasons for which bytes are no frames. A reader that has failed stays failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// Longer than was allowed.
    #[error("{}", too_large(*bytes, *bytes_max))]
    TooLarge {
        /// The payload.
        bytes: u32,
        /// The limit of our settings.
        bytes_max: u32,
    },
    /// A length that frames of the type cannot have.
    #[error("a frame of type {kind} cannot have {bytes} bytes")]
    Length {
        /// Its type.
        kind: u8,
        /// The payload.
        bytes: u32,
    },
    /// A frame for the connection on a stream, or the other way round.
    #[error("a frame of type {kind} cannot be on stream {stream}")]
    Stream {
        /// Its type.
        kind: u8,
        /// The stream.
        stream: u32,
    },
    /// More padding than payload.
    #[error("the padding is longer than the frame")]
    Padding,
    /// A header block that is interrupted, or continued without beginning.
    #[error("a CONTINUATION frame is missing or misplaced")]
    Continuation,
    /// A header block above the limit, in bytes or in frames.
    #[error("a header block exceeds the limit")]
    BlockTooLarge,
    /// A stream that is to wait for itself (RFC 7540, 5.3.1; priorities mean
    /// nothing any more, but this is still no priority).
    #[error("stream {stream} depends on itself")]
    SelfDependency {
        /// The stream.
        stream: u32,
    },
    /// A setting with a value that it cannot have.
    #[error("setting {identifier} cannot be {value}")]
    Setting {
        /// Its number.
        identifier: u16,
        /// Its value.
        value: u32,
    },
}

impl FrameError {
    /// Returns the code to send to the peer.
    #[must_use]
    pub const fn code(&self) -> H2ErrorCode {
        match self {
            Self::TooLarge { .. } | Self::Length { .. } => H2ErrorCode::FRAME_SIZE_ERROR,
            Self::Setting { identifier: 4, .. } => H2ErrorCode::FLOW_CONTROL_ERROR,
            Self::BlockTooLarge => H2ErrorCode::ENHANCE_YOUR_CALM,
            Self::Stream { .. }
            | Self::Padding
            | Self::Continuation
            | Self::SelfDependency { .. }
            | Self::Setting { .. } => H2ErrorCode::PROTOCOL_ERROR,
        }
    }
}
