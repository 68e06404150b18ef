//! The streams of one direction that last as long as their connection.

use super::error::{H3ConnectionError, H3ErrorCode};
use super::frame::{H3FrameHead, Partial, kind, write_head};
use super::varint;
use crate::h2::hpack::{HpackError, integer};
use stillwell_units::as_usize;

/// Maximum size of settings, in bytes: there are few of them.
const SETTINGS_BYTES_MAX: u64 = 4096;

/// The longest instruction: two integers of five bytes.
const INSTRUCTION_BYTES_MAX: usize = 10;

const SETTING_SECTION_BYTES_MAX: u64 = 0x6;

/// Settings of HTTP/2 that have no place here.
const SETTINGS_OF_HTTP2: [u64; 4] = [0x2, 0x3, 0x4, 0x5];

/// Returns the first bytes of a control stream, of a side that takes sections of up to
/// `section_bytes_max`.
pub(super) fn opening(section_bytes_max: usize) -> Vec<u8> {
    let mut settings = Vec::new();
    varint::write(SETTING_SECTION_BYTES_MAX, &mut settings);
    varint::write(section_bytes_max as u64, &mut settings);
    let mut out = vec![0];
    write_head(kind::SETTINGS, settings.len(), &mut out);
    out.extend_from_slice(&settings);
    out
}

/// Reads the peer's control stream.
#[derive(Debug, Default)]
pub(super) struct Control {
    partial: Partial,
    frame: Option<H3FrameHead>,
    /// The received part of a frame that is read as a whole.
    payload: Vec<u8>,
    has_settings: bool,
    /// From which request on the peer takes none.
    pub(super) going_away: Option<u64>,
    push_id_max: u64,
}

impl Control {
    /// Takes the next part of the stream; `is_server` is whether we are one.
    pub(super) fn take(
        &mut self,
        mut input: &[u8],
        is_server: bool,
    ) -> Result<(), H3ConnectionError> {
        while !input.is_empty() || self.frame.is_some() {
            let Some(frame) = &mut self.frame else {
                let (taken, head) = self.partial.head(input);
                input = &input[taken..];
                if let Some(head) = head {
                    self.check(head, is_server)?;
                    self.frame = Some(head);
                }
                continue;
            };
            let length = as_usize(frame.length);
            let (part, rest) = input.split_at(length.min(input.len()));
            input = rest;
            frame.length -= part.len() as u64;
            let head = *frame;
            if is_known(head.kind) {
                self.payload.extend_from_slice(part);
            }
            if head.length > 0 {
                return Ok(());
            }
            self.frame = None;
            let payload = std::mem::take(&mut self.payload);
            self.take_frame(head.kind, &payload, is_server)?;
        }
        Ok(())
    }

    fn check(&mut self, head: H3FrameHead, is_server: bool) -> Result<(), H3ConnectionError> {
        let error = |code, what| Err(H3ConnectionError::new(code, what));
        if head.kind != kind::SETTINGS && !self.has_settings {
            return error(H3ErrorCode::MISSING_SETTINGS, "a frame before its settings");
        }
        let misplaced = match head.kind {
            kind::SETTINGS => std::mem::replace(&mut self.has_settings, true),
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => true,
            kind::MAX_PUSH_ID => !is_server,
            other => kind::OF_HTTP2.contains(&other),
        };
        if misplaced {
            let what =
                "a frame that is not allowed on a control stream, or a second SETTINGS frame";
            return error(H3ErrorCode::FRAME_UNEXPECTED, what);
        }
        match head.kind {
            kind::SETTINGS if head.length > SETTINGS_BYTES_MAX => {
                error(H3ErrorCode::EXCESSIVE_LOAD, "settings above the limit")
            }
            kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID
                if !(1..=8).contains(&head.length) =>
            {
                error(H3ErrorCode::FRAME_ERROR, "a frame of an invalid length")
            }
            _ => Ok(()),
        }
    }

    fn take_frame(
        &mut self,
        kind: u64,
        payload: &[u8],
        is_server: bool,
    ) -> Result<(), H3ConnectionError> {
        let error = |code, what| Err(H3ConnectionError::new(code, what));
        match kind {
            kind::SETTINGS => return check_settings(payload),
            kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID => {}
            _ => return Ok(()),
        }
        let Some((number, _)) = varint::read(payload).filter(|(_, read)| *read == payload.len())
        else {
            return error(
                H3ErrorCode::FRAME_ERROR,
                "a frame that does not contain exactly one number",
            );
        };
        let is_wrong = match kind {
            kind::GOAWAY => {
                let is_request = is_server || number.is_multiple_of(4);
                let grows = self
                    .going_away
                    .replace(number)
                    .is_some_and(|old| number > old);
                grows || !is_request
            }
            kind::MAX_PUSH_ID => number < std::mem::replace(&mut self.push_id_max, number),
            // Nothing was ever promised.
            _ => true,
        };
        if is_wrong {
            return error(H3ErrorCode::ID_ERROR, "an invalid ID");
        }
        Ok(())
    }
}

/// Returns true if a frame on a control stream is read.
const fn is_known(kind: u64) -> bool {
    matches!(
        kind,
        kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID
    )
}

fn check_settings(mut payload: &[u8]) -> Result<(), H3ConnectionError> {
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let setting = varint::read(payload).and_then(|(name, first)| {
            let (_, second) = varint::read(&payload[first..])?;
            Some((name, first + second))
        });
        let Some((name, read)) = setting else {
            let what = "truncated settings";
            return Err(H3ConnectionError::new(H3ErrorCode::FRAME_ERROR, what));
        };
        payload = &payload[read..];
        if seen.contains(&name) || SETTINGS_OF_HTTP2.contains(&name) {
            let what = "a setting that is given twice, or a setting of HTTP/2";
            return Err(H3ConnectionError::new(H3ErrorCode::SETTINGS_ERROR, what));
        }
        seen.push(name);
    }
    Ok(())
}

/// The two streams of header compression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Compression {
    Encoder,
    Decoder,
}

/// Reads one of the peer's streams of header compression. No table was offered and
/// none is kept, so hardly anything can be said there.
#[derive(Debug)]
pub(super) struct Instructions {
    which: Compression,
    partial: Vec<u8>,
}

impl Instructions {
    pub(super) const fn new(which: Compression) -> Self {
        Self {
            which,
            partial: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, input: &[u8]) -> Result<(), H3ConnectionError> {
        for byte in input {
            self.partial.push(*byte);
            let mut rest = self.partial.as_slice();
            let prefix_bits = match (self.which, self.partial[0]) {
                (Compression::Encoder, 0x20..0x40) => 5,
                // A stream was given up.
                (Compression::Decoder, 0x40..0x80) => 6,
                _ => return Err(self.wrong()),
            };
            match integer::read(&mut rest, prefix_bits) {
                Ok(0) => self.partial.clear(),
                Ok(_) if self.which == Compression::Decoder => self.partial.clear(),
                Err(HpackError::Truncated) if self.partial.len() < INSTRUCTION_BYTES_MAX => {}
                _ => return Err(self.wrong()),
            }
        }
        Ok(())
    }

    const fn wrong(&self) -> H3ConnectionError {
        match self.which {
            Compression::Encoder => H3ConnectionError::new(
                H3ErrorCode::ENCODER_STREAM_ERROR,
                "an instruction to a dynamic table that was not offered",
            ),
            Compression::Decoder => H3ConnectionError::new(
                H3ErrorCode::DECODER_STREAM_ERROR,
                "an instruction about a dynamic table that is not used",
            ),
        }
    }
}
