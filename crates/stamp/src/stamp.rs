//! The token itself: what is in it, how it is written and how it is read.

use stillwell_units::{Moment, RunId};

use crate::code::{WORD_MASK, checksum, decode, encode};
use crate::span::{GUARD_BITS, Span, fold};

/// Characters of a stamp.
pub const STAMP_WIDTH: usize = 64;

/// Sequence numbers lie below this: 2⁴⁸.
pub const SEQUENCE_LIMIT: u64 = 1 << 48;

/// Numbers of streams lie below this: 2²⁰.
pub const STREAM_LIMIT: u32 = 1 << 20;

/// What every stamp begins with. Its digits occur nowhere else in a stamp, so
/// that no stamp holds a second beginning; its letters are rare in text, and on
/// them the search jumps.
pub(crate) const MAGIC: &[u8; 8] = b"0qz8j1v9";

/// Intended times lie below this many nanoseconds: 36 years of uptime.
const TIME_MASK: u64 = (1 << 60) - 1;

/// The layout that this version writes and reads.
const VERSION: u64 = 1;

/// A run as stamps name it: 40 bits of its id.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RunMark(u64);

impl RunMark {
    /// The mark of a run.
    #[must_use]
    pub fn of(run: &RunId) -> Self {
        let wide = u128::from_le_bytes(*run.bytes());
        let half = |shift: u32| u64::try_from(wide >> shift & u128::from(u64::MAX));
        let (low, high) = (half(0).unwrap_or_default(), half(64).unwrap_or_default());
        let folded = fold(low ^ 0x9e37_79b9_7f4a_7c15, high ^ 0xbf58_476d_1ce4_e5b9);
        Self((folded ^ low ^ high.rotate_left(32)) & WORD_MASK)
    }
}

/// A numbered sequence of events, such as what one generator worker sends.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(u32);

impl StreamId {
    /// The stream with this number; none at or above [`STREAM_LIMIT`].
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number < STREAM_LIMIT {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// What a stamp says.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Stamp {
    /// Whose event it is.
    pub run: RunMark,
    /// Of which stream.
    pub stream: StreamId,
    /// Which of its stamped events, from 0.
    pub sequence: u64,
    /// When the schedule said to send it, on the monotonic clock of whoever
    /// wrote the stamp.
    pub intended: Moment,
    /// What it vouches for.
    pub span: Span,
}

impl Stamp {
    /// Reads a stamp; `None` unless each of the characters is as some
    /// [`Stamper`] wrote it.
    #[must_use]
    #[inline]
    pub fn read(characters: &[u8; STAMP_WIDTH]) -> Option<Self> {
        let (words, _) = characters.as_chunks::<8>();
        if words.first() != Some(MAGIC) {
            return None;
        }
        let mut values = [0; 6];
        let mut wrong = 0;
        for (value, word) in values.iter_mut().zip(&words[1..]) {
            let (decoded, fault) = decode(u64::from_le_bytes(*word));
            *value = decoded;
            wrong |= fault;
        }
        // The checksum is compared as it is written: no second form of it passes.
        let sum = encode(checksum(&values)).to_le_bytes();
        if wrong != 0 || words.last() != Some(&sum) || values[5] >> 16 & 0xf != VERSION {
            return None;
        }
        Some(Self::from_values(&values))
    }

    #[inline]
    fn from_values(values: &[u64; 6]) -> Self {
        Self {
            run: RunMark(values[0]),
            stream: StreamId(low_u32(values[3] >> GUARD_BITS)),
            sequence: values[1] | (values[2] >> 32) << 40,
            intended: Moment::new(values[4] | (values[5] >> 20) << 40),
            span: Span {
                length: low_u16(values[5] & 0xffff),
                hash: low_u32(values[2] & 0xffff_ffff),
                guard: low_u32(values[3] & ((1 << GUARD_BITS) - 1)),
            },
        }
    }
}

/// Writes the stamps of one stream.
#[derive(Clone, Copy, Debug)]
pub struct Stamper {
    run: u64,
    stream: u64,
}

impl Stamper {
    /// Writes stamps of `stream` in `run`.
    #[must_use]
    pub const fn new(run: RunMark, stream: StreamId) -> Self {
        Self {
            run: run.0,
            stream: (stream.0 as u64) << GUARD_BITS,
        }
    }

    /// Writes the stamp of event `sequence` into `slot`. Sequence numbers from
    /// [`SEQUENCE_LIMIT`] on begin again at 0, times from 2⁶⁰ ns on too.
    ///
    /// `span` is taken from what follows the slot and does not depend on what is
    /// in the slot: for bytes that are sent again and again it is made once.
    #[inline]
    pub fn write(
        &self,
        slot: &mut [u8; STAMP_WIDTH],
        sequence: u64,
        intended: Moment,
        span: Span,
    ) {
        let sequence = sequence & (SEQUENCE_LIMIT - 1);
        let time = intended.as_u64() & TIME_MASK;
        let values = [
            self.run,
            sequence & WORD_MASK,
            (sequence >> 40) << 32 | u64::from(span.hash),
            self.stream | u64::from(span.guard),
            time & WORD_MASK,
            (time >> 40) << 20 | VERSION << 16 | u64::from(span.length),
        ];
        let (words, _) = slot.as_chunks_mut::<8>();
        words[0] = *MAGIC;
        for (word, value) in words[1..].iter_mut().zip(&values) {
            *word = encode(*value).to_le_bytes();
        }
        words[7] = encode(checksum(&values)).to_le_bytes();
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "callers mask or shift away what does not fit"
)]
const fn low_u32(value: u64) -> u32 {
    value as u32
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "callers mask what does not fit"
)]
const fn low_u16(value: u64) -> u16 {
    value as u16
}

#[cfg(test)]
mod tests;
