//! The token itself: what is in it, how it is written and how it is read.

use stillwell_units::{Moment, Nanos, RunId};

use crate::code::{checksum, decode, encode, low_half};
use crate::span::{GUARD_BITS, Span, fold};

/// Characters of a stamp.
pub const STAMP_WIDTH: usize = 64;

/// Sequence numbers lie below this: 2⁴⁰.
pub const SEQUENCE_LIMIT: u64 = 1 << 40;

/// Numbers of streams lie below this: 2¹⁶.
pub const STREAM_LIMIT: u32 = 1 << 16;

/// What every stamp begins with. Its digits and letters occur nowhere else in a
/// stamp, so that no stamp holds a second beginning, and some of them are rare in
/// text: on these the search jumps.
pub(crate) const MAGIC: &[u8; 8] = b"0qz8x1v9";

/// Intended times are written modulo this many nanoseconds, which is 78 hours.
const TIME_LIMIT: u64 = 1 << 48;

/// A run as stamps name it: 24 bits made from its id.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RunMark(u32);

impl RunMark {
    /// The mark of a run.
    #[must_use]
    pub fn of(run: &RunId) -> Self {
        let wide = u128::from_le_bytes(*run.bytes());
        let half = |shift: u32| u64::try_from(wide >> shift & u128::from(u64::MAX));
        let (low, high) = (half(0).unwrap_or_default(), half(64).unwrap_or_default());
        let folded = fold(low ^ 0x9e37_79b9_7f4a_7c15, high ^ 0xbf58_476d_1ce4_e5b9);
        Self(low_half((folded ^ low ^ high.rotate_left(32)) & 0xff_ffff))
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
    /// What it vouches for.
    pub span: Span,
    /// When the schedule said to send it, in nanoseconds modulo [`TIME_LIMIT`].
    pub(crate) time: u64,
}

impl Stamp {
    /// Reads a stamp; `None` unless each of the characters is as some
    /// [`Stamper`] wrote it.
    #[must_use]
    #[inline(always)]
    pub fn read(characters: &[u8; STAMP_WIDTH]) -> Option<Self> {
        let (words, _) = characters.as_chunks::<8>();
        let mut values = [0; 6];
        let mut wrong = 0;
        for (value, word) in values.iter_mut().zip(&words[1..]) {
            let (decoded, fault) = decode(u64::from_le_bytes(*word));
            *value = decoded;
            wrong |= fault;
        }
        // The checksum is compared as it is written: no second form of it passes.
        let sum = u64::from_le_bytes(words[7]) ^ encode(checksum(&values));
        let magic = u64::from_le_bytes(words[0]) ^ u64::from_le_bytes(*MAGIC);
        (wrong | sum | magic == 0).then(|| Self::from_values(&values))
    }

    #[inline]
    fn from_values(values: &[u32; 6]) -> Self {
        let [first, sequence, hash, fourth, time, sixth] = *values;
        Self {
            run: RunMark(first & 0xff_ffff),
            stream: StreamId(fourth & 0xffff),
            sequence: u64::from(sequence) | u64::from(first >> 24) << 32,
            span: Span {
                length: low_u16(sixth >> GUARD_BITS),
                hash,
                guard: sixth & ((1 << GUARD_BITS) - 1),
            },
            time: u64::from(time) | u64::from(fourth >> 16) << 32,
        }
    }

    /// How long after its intended time `now` is, on the clock of whoever wrote
    /// the stamp; 0 if before. Right for up to 39 hours.
    #[must_use]
    #[inline]
    pub const fn latency(&self, now: Moment) -> Nanos {
        let past = now.as_u64().wrapping_sub(self.time) % TIME_LIMIT;
        Nanos::new(if past < TIME_LIMIT / 2 { past } else { 0 })
    }

    /// When the schedule said to send it, if that was up to 39 hours before `now`
    /// or after it.
    #[must_use]
    pub const fn intended(&self, now: Moment) -> Moment {
        let half = TIME_LIMIT / 2;
        let earliest = now.as_u64().saturating_sub(half - 1);
        let ahead = self.time.wrapping_sub(earliest) % TIME_LIMIT;
        Moment::new(earliest.saturating_add(ahead))
    }
}

/// Writes the stamps of one stream.
#[derive(Clone, Copy, Debug)]
pub struct Stamper {
    run: u32,
    stream: u32,
}

impl Stamper {
    /// Writes stamps of `stream` in `run`.
    #[must_use]
    pub const fn new(run: RunMark, stream: StreamId) -> Self {
        Self {
            run: run.0,
            stream: stream.0,
        }
    }

    /// Writes the stamp of event `sequence` into `slot`. Sequence numbers from
    /// [`SEQUENCE_LIMIT`] on begin again at 0.
    ///
    /// `span` is taken from what follows the slot and does not depend on what is
    /// in the slot: for bytes that are sent again and again it is made once.
    #[inline]
    pub fn write(&self, slot: &mut [u8; STAMP_WIDTH], sequence: u64, intended: Moment, span: Span) {
        let time = intended.as_u64();
        let values = [
            self.run | low_half(sequence >> 32) << 24,
            low_half(sequence),
            span.hash,
            self.stream | low_half(time >> 32) << 16,
            low_half(time),
            span.guard | u32::from(span.length) << GUARD_BITS,
        ];
        let (words, _) = slot.as_chunks_mut::<8>();
        words[0] = *MAGIC;
        for (word, value) in words[1..].iter_mut().zip(&values) {
            *word = encode(*value).to_le_bytes();
        }
        words[7] = encode(checksum(&values)).to_le_bytes();
    }
}

/// The lower 16 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "callers shift away what does not fit"
)]
const fn low_u16(value: u32) -> u16 {
    value as u16
}

#[cfg(test)]
mod tests;
