//! The token itself: what is in it, how it is written and how it is read.

use stillwell_units::{Moment, Nanos, RunId};

use crate::code::{base_behind, checksum, encode, low_half};
use crate::lanes::{Lanes, Plain};
use crate::span::{HASH_BITS, Span, fold};

/// Characters of a stamp.
pub const STAMP_WIDTH: usize = 64;

/// The header of a request, or the metadata of a call, that carries a stamp.
pub const HEADER: &str = "stillwell-stamp";

/// Sequence numbers lie below this: 2³⁶.
pub const SEQUENCE_LIMIT: u64 = 1 << 36;

/// Numbers of streams lie below this: 2¹⁶.
pub const STREAM_LIMIT: u32 = 1 << 16;

/// The first characters of every stamp. Its digits and letters occur nowhere else in a stamp, so no
/// stamp has a second beginning. Some of them are rare in text: the search jumps to these.
pub(crate) const MAGIC: &[u8; 8] = b"0qz8x1v9";

/// Intended times are written modulo this many nanoseconds, which is 78 hours.
const TIME_LIMIT: u64 = 1 << 48;

/// Bits of the run's mark.
const RUN_BITS: u32 = 20;
const RUN_MASK: u32 = (1 << RUN_BITS) - 1;

/// The values of the first characters.
pub(crate) const BASE: [u16; 32] = base_behind(MAGIC);

/// A run as stamps name it: 20 bits made from its id.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RunMark(u32);

impl RunMark {
    /// A mark before it is known of which run.
    pub const NONE: Self = Self(0);

    /// The mark of a run.
    #[must_use]
    pub fn of(run: &RunId) -> Self {
        let wide = u128::from_le_bytes(*run.bytes());
        let half = |shift: u32| u64::try_from(wide >> shift & u128::from(u64::MAX));
        let (low, high) = (half(0).unwrap_or_default(), half(64).unwrap_or_default());
        let folded = fold(low ^ 0x9e37_79b9_7f4a_7c15, high ^ 0xbf58_476d_1ce4_e5b9);
        Self(low_half(folded ^ low ^ high.rotate_left(32)) & RUN_MASK)
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
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

/// The content of a stamp.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Stamp {
    /// The run of the event.
    pub run: RunMark,
    /// Of which stream.
    pub stream: StreamId,
    /// The number among its stamped events, from 0.
    pub sequence: u64,
    /// The bytes that it covers.
    pub span: Span,
    /// When the schedule said to send it, in nanoseconds modulo [`TIME_LIMIT`].
    pub(crate) time: u64,
    /// The delay from the intended time to the sending, as [`pack_lateness`] has it.
    pub(crate) lateness: u16,
}

impl Stamp {
    /// Reads a stamp; `None` unless each of the characters is as some
    /// [`Stamper`] wrote it.
    #[must_use]
    #[inline(always)]
    pub fn read(characters: &[u8; STAMP_WIDTH]) -> Option<Self> {
        Self::read_by(Plain, characters)
    }

    /// The same, with these registers.
    #[inline(always)]
    pub(crate) fn read_by(lanes: impl Lanes, characters: &[u8; STAMP_WIDTH]) -> Option<Self> {
        let (words, wrong) = lanes.decode(characters);
        let [magic, values @ .., sum] = words;
        let fault = wrong | magic | (sum ^ checksum(&values));
        (fault == 0).then(|| Self::from_values(&values))
    }

    #[inline(always)]
    fn from_values(values: &[u32; 6]) -> Self {
        let [first, sequence, third, fourth, time, sixth] = *values;
        Self {
            run: RunMark(first & RUN_MASK),
            stream: StreamId(fourth & 0xffff),
            sequence: u64::from(sequence) | u64::from(third >> HASH_BITS & 0xf) << 32,
            span: Span {
                length: low_u16(first >> RUN_BITS),
                hash: third & ((1 << HASH_BITS) - 1),
                guard: sixth >> 16 | third >> 28 << 16,
            },
            time: u64::from(time) | u64::from(fourth >> 16) << 32,
            lateness: low_u16(sixth),
        }
    }

    /// Returns the time from its intended time to `now`, on the clock of the stamp's writer; 0 if
    /// before. Right for up to 39 hours.
    #[must_use]
    #[inline]
    pub const fn latency(&self, now: Moment) -> Nanos {
        let past = now.as_u64().wrapping_sub(self.time) % TIME_LIMIT;
        Nanos::new(if past < TIME_LIMIT / 2 { past } else { 0 })
    }

    /// Returns the delay from its intended time to the sending, to three digits, at most 73
    /// minutes.
    #[must_use]
    #[inline]
    pub fn lateness(&self) -> Nanos {
        let exponent = self.lateness >> MANTISSA_BITS;
        let mantissa = self.lateness & ((1 << MANTISSA_BITS) - 1);
        Nanos::new(u64::from(mantissa) << exponent)
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

/// When an event is meant to be sent, and is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Times {
    intended: Moment,
    lateness: u16,
}

impl Times {
    /// Meant for `intended`, sent at `sent`; at once if that is earlier.
    #[must_use]
    pub const fn new(intended: Moment, sent: Moment) -> Self {
        let late = sent.as_u64().saturating_sub(intended.as_u64());
        Self {
            intended,
            lateness: pack_lateness(late),
        }
    }
}

/// Significant bits of a lateness.
const MANTISSA_BITS: u32 = 11;

/// Nanoseconds as a number of 11 bits and how far it is shifted: cut, by less
/// than one in 1024.
const fn pack_lateness(nanos: u64) -> u16 {
    let exponent = (u64::BITS - nanos.leading_zeros()).saturating_sub(MANTISSA_BITS);
    if exponent > 31 {
        return u16::MAX;
    }
    low_u16(low_half(nanos >> exponent) | exponent << MANTISSA_BITS)
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
    /// [`SEQUENCE_LIMIT`] on begin again at 0. It is sent now, `lateness` after
    /// its intended time.
    ///
    /// `span` is taken from what follows the slot and does not depend on what is
    /// in the slot: for bytes that are sent again and again it is made once.
    #[inline]
    pub fn write(&self, slot: &mut [u8; STAMP_WIDTH], sequence: u64, times: Times, span: Span) {
        let time = times.intended.as_u64();
        let high = low_half(sequence >> 32) & 0xf;
        let values = [
            self.run | u32::from(span.length) << RUN_BITS,
            low_half(sequence),
            span.hash | high << HASH_BITS | span.guard >> 16 << 28,
            self.stream | low_half(time >> 32) << 16,
            low_half(time),
            u32::from(times.lateness) | (span.guard & 0xffff) << 16,
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
    reason = "callers shift the upper bits away"
)]
const fn low_u16(value: u32) -> u16 {
    value as u16
}

#[cfg(test)]
mod tests;
