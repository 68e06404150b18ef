//! Bodies: of a given length, in chunks, or until the connection closes.

use super::ParseError;
use super::head::HEAD_BYTES_MAX;
use stillwell_units::as_usize;

/// The rest of a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    /// So many bytes; none for messages without a body.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

/// One step through a body.
#[derive(Debug)]
pub(super) enum BodyEvent<'i> {
    Part(&'i [u8]),
    End,
}

impl Body {
    /// The bytes taken from `input`, and what they were. All of `input` is taken
    /// where that is nothing.
    pub(super) fn advance<'i>(
        &mut self,
        input: &'i [u8],
    ) -> Result<(usize, Option<BodyEvent<'i>>), ParseError> {
        match self {
            Self::Length(0) => Ok((0, Some(BodyEvent::End))),
            Self::Length(left) => Ok(part(take(left, input))),
            Self::Chunked(chunks) => chunks.advance(input),
            Self::UntilClose => Ok(part(input)),
        }
    }
}

fn part(bytes: &[u8]) -> (usize, Option<BodyEvent<'_>>) {
    let event = (!bytes.is_empty()).then_some(BodyEvent::Part(bytes));
    (bytes.len(), event)
}

/// As much of `input` as belongs to the `left` bytes, which become fewer.
fn take<'i>(left: &mut u64, input: &'i [u8]) -> &'i [u8] {
    // What is longer than memory is longer than any input.
    let length = input.len().min(as_usize(*left));
    *left -= length as u64;
    &input[..length]
}

/// The chunked coding (RFC 9112, 7.1), byte by byte outside of the data. Extensions and
/// trailers are skipped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunks {
    state: ChunkState,
    /// Bytes of extensions and trailers since the last data.
    overhead: usize,
}

#[derive(Clone, Copy, Debug)]
enum ChunkState {
    Size { size: u64, digits: u8 },
    Extension { size: u64 },
    SizeFeed { size: u64 },
    Data { left: u64 },
    DataReturn,
    DataFeed,
    TrailerStart,
    Trailer,
    TrailerFeed,
    LastFeed,
    End,
}

impl Chunks {
    pub(super) const fn new() -> Self {
        Self {
            state: ChunkState::Size { size: 0, digits: 0 },
            overhead: 0,
        }
    }

    fn advance<'i>(
        &mut self,
        input: &'i [u8],
    ) -> Result<(usize, Option<BodyEvent<'i>>), ParseError> {
        for (index, byte) in input.iter().enumerate() {
            if let ChunkState::Data { left } = &mut self.state {
                let bytes = take(left, &input[index..]);
                if *left == 0 {
                    self.state = ChunkState::DataReturn;
                }
                return Ok((index + bytes.len(), Some(BodyEvent::Part(bytes))));
            }
            self.state = self.next(*byte)?;
            if matches!(self.state, ChunkState::End) {
                return Ok((index + 1, Some(BodyEvent::End)));
            }
        }
        Ok((input.len(), None))
    }

    fn next(&mut self, byte: u8) -> Result<ChunkState, ParseError> {
        use ChunkState::{
            Data, DataFeed, DataReturn, End, Extension, LastFeed, Size, SizeFeed, Trailer,
            TrailerFeed, TrailerStart,
        };
        let next = match (self.state, byte) {
            (Size { size, digits }, _) if byte.is_ascii_hexdigit() && digits < 16 => Size {
                size: size << 4 | hex_value(byte),
                digits: digits + 1,
            },
            (Size { size, digits: 1.. } | Extension { size }, b'\r') => SizeFeed { size },
            (Size { size, digits: 1.. }, b';' | b' ' | b'\t') => Extension { size },
            (Extension { size }, b'\t' | b' '..) => Extension { size },
            (SizeFeed { size: 0 }, b'\n') | (TrailerFeed, b'\n') => TrailerStart,
            (SizeFeed { size }, b'\n') => {
                self.overhead = 0;
                Data { left: size }
            }
            (DataReturn, b'\r') => DataFeed,
            (DataFeed, b'\n') => Size { size: 0, digits: 0 },
            (TrailerStart, b'\r') => LastFeed,
            (Trailer, b'\r') => TrailerFeed,
            (TrailerStart | Trailer, b'\t' | b' '..) => Trailer,
            (LastFeed, b'\n') => End,
            _ => return Err(ParseError::Chunk),
        };
        if matches!(next, Extension { .. } | Trailer | TrailerStart) {
            self.overhead += 1;
            if self.overhead > HEAD_BYTES_MAX {
                return Err(ParseError::ChunkOverhead);
            }
        }
        Ok(next)
    }
}

/// The value of a hexadecimal digit.
const fn hex_value(digit: u8) -> u64 {
    let value = match digit {
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => digit - b'0',
    };
    value as u64
}
