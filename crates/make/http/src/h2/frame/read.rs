//! Bytes to frames.

use super::parse::{H2FrameHead, check_dependency, parse_control};
use super::{FRAME_HEAD_BYTES, Frame, FrameError, flag, kind};
use stillwell_units::as_usize;

/// CONTINUATION frames that one header block may take.
const CONTINUATIONS_MAX: u32 = 64;

/// Reads the frames of one direction of a connection, cut anywhere. Holds at most
/// one payload and one header block.
#[derive(Debug)]
pub struct FrameReader {
    state: FrameReaderState,
    /// The received part of a head or a payload.
    partial: Vec<u8>,
    /// The last header block, or what has arrived of it.
    block: Vec<u8>,
    /// The header block that must be continued.
    open_block: Option<OpenBlock>,
    frame_bytes_max: u32,
    block_bytes_max: usize,
}

#[derive(Clone, Copy, Debug)]
enum FrameReaderState {
    Head,
    /// Wants the whole payload.
    Payload(H2FrameHead),
    /// Passes the payload over.
    Skip {
        kind: u8,
        left: u32,
    },
    /// Wants the length of the padding.
    PaddingLength(H2FrameHead),
    Data(Data),
    Failed(FrameError),
}

#[derive(Clone, Copy, Debug)]
struct Data {
    stream: u32,
    end_stream: bool,
    charged_bytes: u32,
    data_bytes: u32,
    data_left: u32,
    padding_left: u32,
}

#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    stream: u32,
    end_stream: bool,
    promised: Option<u32>,
    continuations: u32,
}

impl FrameReader {
    /// Takes payloads of up to `frame_bytes_max` and header blocks of up to
    /// `block_bytes_max`.
    #[must_use]
    pub const fn new(frame_bytes_max: u32, block_bytes_max: usize) -> Self {
        Self {
            state: FrameReaderState::Head,
            partial: Vec::new(),
            block: Vec::new(),
            open_block: None,
            frame_bytes_max,
            block_bytes_max,
        }
    }

    /// The header block of the last `Headers` or `PushPromise`.
    #[must_use]
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// Returns true if the last frame is whole and no header block is open.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, FrameReaderState::Head)
            && self.partial.is_empty()
            && self.open_block.is_none()
    }

    /// Returns the number of bytes taken from `input`, and the frame that they completed.
    /// Without a frame all of `input` was taken.
    ///
    /// # Errors
    /// [`FrameError`] for bytes that are no valid frame here, and ever after.
    pub fn advance<'i>(
        &mut self,
        input: &'i [u8],
    ) -> Result<(usize, Option<Frame<'i>>), FrameError> {
        let mut rest = input;
        loop {
            match self.step(&mut rest) {
                Ok(FrameReadStep::Frame(frame)) => {
                    return Ok((input.len() - rest.len(), Some(frame)));
                }
                Ok(FrameReadStep::Next) => {}
                Ok(FrameReadStep::Starved) => return Ok((input.len(), None)),
                Err(error) => {
                    self.state = FrameReaderState::Failed(error);
                    return Err(error);
                }
            }
        }
    }

    fn step<'i>(&mut self, rest: &mut &'i [u8]) -> Result<FrameReadStep<'i>, FrameError> {
        match self.state {
            FrameReaderState::Head => self.read_head(rest),
            FrameReaderState::Payload(head) => self.read_payload(&head, rest),
            FrameReaderState::Skip { kind, left } => {
                let skipped = take(rest, left);
                let left = left - length(skipped);
                self.state = FrameReaderState::Skip { kind, left };
                if left > 0 {
                    return Ok(FrameReadStep::Starved);
                }
                self.state = FrameReaderState::Head;
                Ok(FrameReadStep::Frame(Frame::Ignored { kind }))
            }
            FrameReaderState::PaddingLength(head) => {
                let Some((padding, after)) = rest.split_first() else {
                    return Ok(FrameReadStep::Starved);
                };
                *rest = after;
                let data = head.payload_bytes - 1;
                let padding = u32::from(*padding);
                let data_left = data.checked_sub(padding).ok_or(FrameError::Padding)?;
                self.state = FrameReaderState::Data(Data::new(&head, data_left, padding));
                Ok(FrameReadStep::Next)
            }
            FrameReaderState::Data(mut data) => {
                let frame = data.advance(rest);
                self.state = FrameReaderState::Data(data);
                let Some(frame) = frame else {
                    return Ok(FrameReadStep::Starved);
                };
                if matches!(
                    frame,
                    Frame::Data {
                        end_frame: true,
                        ..
                    }
                ) {
                    self.state = FrameReaderState::Head;
                }
                Ok(FrameReadStep::Frame(frame))
            }
            FrameReaderState::Failed(error) => Err(error),
        }
    }

    fn read_head<'i>(&mut self, rest: &mut &'i [u8]) -> Result<FrameReadStep<'i>, FrameError> {
        let bytes = match rest.split_first_chunk::<FRAME_HEAD_BYTES>() {
            Some((bytes, after)) if self.partial.is_empty() => {
                *rest = after;
                *bytes
            }
            _ => {
                let missing = FRAME_HEAD_BYTES - self.partial.len();
                let (now, after) = rest.split_at(missing.min(rest.len()));
                *rest = after;
                self.partial.extend_from_slice(now);
                let Some(bytes) = self.partial.first_chunk().copied() else {
                    return Ok(FrameReadStep::Starved);
                };
                self.partial.clear();
                bytes
            }
        };
        let head = H2FrameHead::parse(bytes);
        let (bytes, bytes_max) = (head.payload_bytes, self.frame_bytes_max);
        if bytes > bytes_max {
            return Err(FrameError::TooLarge { bytes, bytes_max });
        }
        head.check()?;
        let continued = match self.open_block {
            Some(open) => head.kind == kind::CONTINUATION && head.stream == open.stream,
            None => head.kind != kind::CONTINUATION,
        };
        if !continued {
            return Err(FrameError::Continuation);
        }
        self.state = match head.kind {
            kind::DATA if head.has(flag::PADDED) && bytes == 0 => return Err(FrameError::Padding),
            kind::DATA if head.has(flag::PADDED) => FrameReaderState::PaddingLength(head),
            kind::DATA => FrameReaderState::Data(Data::new(&head, bytes, 0)),
            kind::HEADERS..=kind::CONTINUATION => FrameReaderState::Payload(head),
            kind => FrameReaderState::Skip { kind, left: bytes },
        };
        Ok(FrameReadStep::Next)
    }

    fn read_payload<'i>(
        &mut self,
        head: &H2FrameHead,
        rest: &mut &'i [u8],
    ) -> Result<FrameReadStep<'i>, FrameError> {
        let missing = head.payload_bytes - length(&self.partial);
        let now = take(rest, missing);
        if length(now) < missing {
            self.partial.extend_from_slice(now);
            return Ok(FrameReadStep::Starved);
        }
        self.state = FrameReaderState::Head;
        if self.partial.is_empty() {
            return self.interpret(head, now);
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(now);
        let step = self.interpret(head, &partial);
        partial.clear();
        self.partial = partial;
        step
    }

    /// A whole payload, which is not part of a body.
    fn interpret<'i>(
        &mut self,
        head: &H2FrameHead,
        payload: &[u8],
    ) -> Result<FrameReadStep<'i>, FrameError> {
        let (open, fragment) = match (head.kind, self.open_block) {
            (kind::CONTINUATION, Some(mut open)) => {
                open.continuations += 1;
                (open, payload)
            }
            (kind::HEADERS | kind::PUSH_PROMISE, _) => {
                self.block.clear();
                begin_block(head, payload)?
            }
            _ => return parse_control(head, payload).map(FrameReadStep::Frame),
        };
        if self.block.len() + fragment.len() > self.block_bytes_max
            || open.continuations > CONTINUATIONS_MAX
        {
            return Err(FrameError::BlockTooLarge);
        }
        self.block.extend_from_slice(fragment);
        if !head.has(flag::END_HEADERS) {
            self.open_block = Some(open);
            return Ok(FrameReadStep::Next);
        }
        self.open_block = None;
        Ok(FrameReadStep::Frame(match open.promised {
            Some(promised) => Frame::PushPromise {
                stream: open.stream,
                promised,
            },
            None => Frame::Headers {
                stream: open.stream,
                end_stream: open.end_stream,
            },
        }))
    }
}

enum FrameReadStep<'i> {
    Frame(Frame<'i>),
    Next,
    Starved,
}

impl Data {
    const fn new(head: &H2FrameHead, data_left: u32, padding_left: u32) -> Self {
        Self {
            stream: head.stream,
            end_stream: head.has(flag::END_STREAM),
            charged_bytes: head.payload_bytes,
            data_bytes: data_left,
            data_left,
            padding_left,
        }
    }

    /// The next part; nothing where none has arrived.
    fn advance<'i>(&mut self, rest: &mut &'i [u8]) -> Option<Frame<'i>> {
        let bytes = take(rest, self.data_left);
        self.data_left -= length(bytes);
        let padding = match self.data_left {
            0 => take(rest, self.padding_left),
            _ => &[],
        };
        self.padding_left -= length(padding);
        let end_frame = self.data_left == 0 && self.padding_left == 0;
        if bytes.is_empty() && !end_frame {
            return None;
        }
        Some(Frame::Data {
            stream: self.stream,
            bytes,
            charged_bytes: std::mem::take(&mut self.charged_bytes),
            data_bytes: std::mem::take(&mut self.data_bytes),
            end_frame,
            end_stream: self.end_stream && end_frame,
        })
    }
}

/// The block that HEADERS or PUSH_PROMISE begin, and its first fragment.
fn begin_block<'p>(
    head: &H2FrameHead,
    payload: &'p [u8],
) -> Result<(OpenBlock, &'p [u8]), FrameError> {
    let (kind, bytes) = (head.kind, head.payload_bytes);
    let mut fragment = payload;
    let mut padding = 0;
    if head.has(flag::PADDED) {
        let (first, after) = fragment.split_first().ok_or(FrameError::Padding)?;
        padding = usize::from(*first);
        fragment = after;
    }
    let mut promised = None;
    if kind == kind::PUSH_PROMISE {
        let (number, after) = fragment
            .split_first_chunk()
            .ok_or(FrameError::Length { kind, bytes })?;
        promised = Some(u32::from_be_bytes(*number) & 0x7fff_ffff);
        fragment = after;
    } else if head.has(flag::PRIORITY) {
        let (priority, after) = fragment
            .split_at_checked(5)
            .ok_or(FrameError::Length { kind, bytes })?;
        check_dependency(head.stream, priority)?;
        fragment = after;
    }
    let fragment_bytes = fragment.len().checked_sub(padding);
    let fragment = &fragment[..fragment_bytes.ok_or(FrameError::Padding)?];
    let open = OpenBlock {
        stream: head.stream,
        end_stream: head.has(flag::END_STREAM),
        promised,
        continuations: 0,
    };
    Ok((open, fragment))
}

/// At most `bytes_max` bytes from the front.
fn take<'i>(rest: &mut &'i [u8], bytes_max: u32) -> &'i [u8] {
    let bytes = as_usize(bytes_max);
    let (taken, after) = rest.split_at(bytes.min(rest.len()));
    *rest = after;
    taken
}

/// For parts of payloads, which are shorter than 2²⁴.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}
