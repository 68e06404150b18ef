//! Payloads of whole frames.

use super::{Frame, FrameError, H2ErrorCode, flag, kind};

/// The nine bytes before a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct H2FrameHead {
    pub(super) payload_bytes: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl H2FrameHead {
    pub(super) const fn parse(bytes: [u8; 9]) -> Self {
        let [a, b, c, kind, flags, d, e, f, g] = bytes;
        Self {
            payload_bytes: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            // The highest bit means nothing.
            stream: u32::from_be_bytes([d, e, f, g]) & 0x7fff_ffff,
        }
    }

    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Refuses what can be refused before the payload is read.
    pub(super) const fn check(&self) -> Result<(), FrameError> {
        let kind = self.kind;
        let on_stream = match kind {
            kind::SETTINGS | kind::PING | kind::GOAWAY => Some(false),
            kind::DATA..=kind::PUSH_PROMISE | kind::CONTINUATION => Some(true),
            _ => None,
        };
        if let Some(on_stream) = on_stream
            && on_stream != (self.stream != 0)
        {
            let stream = self.stream;
            return Err(FrameError::Stream { kind, stream });
        }
        let bytes = self.payload_bytes;
        let fits = match kind {
            kind::PRIORITY => bytes == 5,
            kind::RST_STREAM | kind::WINDOW_UPDATE => bytes == 4,
            kind::SETTINGS if self.has(flag::ACK) => bytes == 0,
            kind::SETTINGS => bytes.is_multiple_of(6),
            kind::PING => bytes == 8,
            kind::GOAWAY => bytes >= 8,
            _ => true,
        };
        if fits {
            Ok(())
        } else {
            Err(FrameError::Length { kind, bytes })
        }
    }
}

/// A frame that is neither part of a body nor of a header block.
pub(super) fn parse_control(
    head: &H2FrameHead,
    payload: &[u8],
) -> Result<Frame<'static>, FrameError> {
    let number = |start: usize| -> u32 {
        let bytes = payload.get(start..).and_then(<[u8]>::first_chunk);
        u32::from_be_bytes(bytes.copied().unwrap_or_default())
    };
    let stream = head.stream;
    Ok(match head.kind {
        kind::PRIORITY => {
            check_dependency(stream, payload)?;
            Frame::Priority { stream }
        }
        kind::RST_STREAM => Frame::Reset {
            stream,
            code: H2ErrorCode(number(0)),
        },
        kind::SETTINGS if head.has(flag::ACK) => Frame::SettingsAck,
        kind::SETTINGS => Frame::Settings(SettingsFrame::parse(payload)?),
        kind::PING => Frame::Ping {
            payload: payload.first_chunk().copied().unwrap_or_default(),
            ack: head.has(flag::ACK),
        },
        kind::GOAWAY => Frame::GoAway {
            last_stream: number(0) & 0x7fff_ffff,
            code: H2ErrorCode(number(4)),
        },
        kind::WINDOW_UPDATE => Frame::WindowUpdate {
            stream,
            increment_bytes: number(0) & 0x7fff_ffff,
        },
        kind => Frame::Ignored { kind },
    })
}

/// Refuses a stream that depends on itself; `priority` begins with what it
/// depends on.
pub(super) fn check_dependency(stream: u32, priority: &[u8]) -> Result<(), FrameError> {
    let first = priority.first_chunk().copied().unwrap_or_default();
    // The highest bit means something else.
    if u32::from_be_bytes(first) & 0x7fff_ffff == stream {
        return Err(FrameError::SelfDependency { stream });
    }
    Ok(())
}

/// The content of one SETTINGS frame (RFC 9113, 6.5.2; RFC 8441, 3). `None` leaves a setting
/// unchanged; of a repeated setting the last value counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SettingsFrame {
    /// The most that the sender keeps for decoding headers, in bytes.
    pub header_table_bytes: Option<u32>,
    /// True if the sender takes promises.
    pub push: Option<bool>,
    /// Maximum number of streams that the receiver may have open.
    pub concurrent_streams_max: Option<u32>,
    /// The window of each new stream, in bytes: below 2³¹.
    pub initial_window_bytes: Option<u32>,
    /// The longest payload that the sender takes, in bytes: 2¹⁴ to 2²⁴ − 1.
    pub frame_bytes_max: Option<u32>,
    /// The longest list of fields that the sender takes, in bytes.
    pub header_list_bytes_max: Option<u32>,
    /// True if the sender takes `CONNECT` with a `:protocol`. It is never taken back.
    pub connect_protocol: Option<bool>,
}

impl SettingsFrame {
    /// Number and value of each setting that is said.
    pub(super) fn settings(&self) -> impl Iterator<Item = (u16, u32)> {
        [
            (1, self.header_table_bytes),
            (2, self.push.map(u32::from)),
            (3, self.concurrent_streams_max),
            (4, self.initial_window_bytes),
            (5, self.frame_bytes_max),
            (6, self.header_list_bytes_max),
            (8, self.connect_protocol.map(u32::from)),
        ]
        .into_iter()
        .filter_map(|(identifier, value)| Some((identifier, value?)))
    }

    fn parse(payload: &[u8]) -> Result<Self, FrameError> {
        let mut settings = Self::default();
        let (pairs, _) = payload.as_chunks::<6>();
        for [a, b, c, d, e, f] in pairs {
            let identifier = u16::from_be_bytes([*a, *b]);
            let value = u32::from_be_bytes([*c, *d, *e, *f]);
            let fits = match identifier {
                2 => value <= 1,
                4 => value < 1 << 31,
                5 => (1 << 14..1 << 24).contains(&value),
                8 => value == 1 || (value == 0 && settings.connect_protocol != Some(true)),
                _ => true,
            };
            if !fits {
                return Err(FrameError::Setting { identifier, value });
            }
            match identifier {
                1 => settings.header_table_bytes = Some(value),
                2 => settings.push = Some(value == 1),
                3 => settings.concurrent_streams_max = Some(value),
                4 => settings.initial_window_bytes = Some(value),
                5 => settings.frame_bytes_max = Some(value),
                6 => settings.header_list_bytes_max = Some(value),
                8 => settings.connect_protocol = Some(value == 1),
                // Settings that are not known mean nothing.
                _ => {}
            }
        }
        Ok(settings)
    }
}
