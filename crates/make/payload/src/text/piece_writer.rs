//! Writing one event from pieces of known size.

use std::fmt;

use super::digits::{BYTES_COMMA, BYTES_STOP, PAIRS, TRIPLES, hexadecimal};
use crate::contract::{Event, Joint};
use crate::random::Random;
use crate::{SLOT_PLACEHOLDER, SlotUse};

/// More than any generated event needs.
const CAPACITY: usize = 8192;

/// Room in a [`Fragment`].
const FRAGMENT_MAX: usize = 32;

/// The buffer of events, which are written one after the other in the same place.
pub(crate) struct EventBuffer(Box<[u8; CAPACITY]>);

/// One event being written. Pieces are copied whole, in a width that the
/// compiler knows, and the place then moves on by their length only: several
/// times faster than copying just the length. Everything that takes this writer is
/// inlined into the function that holds it, so the place stays in a register.
/// Writing more than the capacity panics; every writer bounds what it writes far
/// below.
pub(crate) struct PieceWriter<'p> {
    buffer: &'p mut [u8; CAPACITY],
    at: usize,
}

impl fmt::Debug for EventBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBuffer").finish_non_exhaustive()
    }
}

impl fmt::Debug for PieceWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceWriter").field("at", &self.at).finish()
    }
}

impl EventBuffer {
    pub(crate) fn new() -> Self {
        Self(Box::new([0; CAPACITY]))
    }

    /// More than what is written with one writer.
    pub(crate) const CAPACITY: usize = CAPACITY;

    /// Begins the next event.
    #[inline(always)]
    pub(crate) const fn begin(&mut self) -> PieceWriter<'_> {
        PieceWriter {
            buffer: &mut self.0,
            at: 0,
        }
    }
}

impl<'p> PieceWriter<'p> {
    /// A writer at `start` of a buffer with room for it.
    #[inline(always)]
    pub(crate) fn at(buffer: &'p mut [u8], start: usize) -> Self {
        let buffer = buffer[start..].first_chunk_mut();
        Self {
            buffer: buffer.expect("buffers end with room for an event"),
            at: 0,
        }
    }

    /// Bytes written since.
    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.at
    }

    /// Forgets what lies beyond the first `len` bytes.
    #[inline(always)]
    pub(crate) fn cut(&mut self, len: usize) {
        self.at = self.at.min(len);
    }

    #[inline(always)]
    pub(crate) fn fixed<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.buffer[self.at..][..N].copy_from_slice(bytes);
        self.at += N;
    }

    #[inline(always)]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// `len` bytes, eight from each call of `next`.
    #[inline(always)]
    pub(crate) fn words(&mut self, len: usize, mut next: impl FnMut() -> [u8; 8]) {
        let room = &mut self.buffer[self.at..][..len.next_multiple_of(8)];
        for word in room.chunks_exact_mut(8) {
            word.copy_from_slice(&next());
        }
        self.at += len;
    }

    #[inline(always)]
    pub(crate) fn fragment(&mut self, fragment: &Fragment) {
        self.buffer[self.at..][..FRAGMENT_MAX].copy_from_slice(&fragment.bytes);
        self.at += usize::from(fragment.len);
    }

    /// `value` below 1000, without leading zeros.
    #[inline(always)]
    pub(crate) fn number(&mut self, value: u16) {
        let triple = &TRIPLES[usize::from(value)];
        self.buffer[self.at..][..4].copy_from_slice(&triple.trimmed);
        self.at += usize::from(triple.trimmed_len);
    }

    /// `value` without leading zeros.
    #[inline(always)]
    pub(crate) fn integer(&mut self, value: u64) {
        if value < 1000 {
            self.number(small(value));
        } else if value < 1_000_000 {
            self.number(small(value / 1000));
            self.number_3(small(value % 1000));
        } else {
            self.large_integer(value);
        }
    }

    fn large_integer(&mut self, value: u64) {
        let (mut rest, mut groups, mut count) = (value, [0; 7], 0);
        while rest >= 1000 {
            groups[count] = small(rest % 1000);
            rest /= 1000;
            count += 1;
        }
        self.number(small(rest));
        for group in groups[..count].iter().rev() {
            self.number_3(*group);
        }
    }

    /// Four random hexadecimal digits.
    #[inline(always)]
    pub(crate) fn random_hexadecimal_4(&mut self, random: &mut Random) {
        self.fixed(&hexadecimal(u32::from(random.bits(16)) << 16));
        self.at -= 4;
    }

    /// `value` and a comma.
    #[inline(always)]
    pub(crate) fn byte_and_comma(&mut self, value: u8) {
        self.byte_and(&BYTES_COMMA, value);
    }

    /// `value` and a full stop.
    #[inline(always)]
    pub(crate) fn byte_and_stop(&mut self, value: u8) {
        self.byte_and(&BYTES_STOP, value);
    }

    #[inline(always)]
    fn byte_and(&mut self, table: &[([u8; 4], u8); 256], value: u8) {
        let (digits, len) = &table[usize::from(value)];
        self.buffer[self.at..][..4].copy_from_slice(digits);
        self.at += usize::from(*len);
    }

    /// `value` below 1000, in three digits.
    #[inline(always)]
    pub(crate) fn number_3(&mut self, value: u16) {
        self.fixed(&TRIPLES[usize::from(value)].padded);
    }

    /// `value` below 100, in two digits.
    #[inline(always)]
    pub(crate) fn number_2(&mut self, value: u16) {
        self.fixed(&PAIRS[usize::from(value)]);
    }

    /// A random number: half of them have up to three digits, a quarter up to
    /// six, a quarter up to nine.
    #[inline(always)]
    pub(crate) fn random_number(&mut self, random: &mut Random) {
        // All nine are written and some kept: a branch on a random number costs
        // more than it saves.
        self.number(1 + random.below(999));
        let end = self.at + [0, 0, 3, 6][usize::from(random.bits(2))];
        self.number_3(random.below(1000));
        self.number_3(random.below(1000));
        self.at = end;
    }

    /// Eight random hexadecimal digits.
    #[inline(always)]
    pub(crate) fn random_hexadecimal(&mut self, random: &mut Random) {
        let bits = u32::from(random.bits(16)) << 16 | u32::from(random.bits(16));
        self.fixed(&hexadecimal(bits));
    }

    /// A random UUID in the form of version 4.
    #[inline(always)]
    pub(crate) fn random_uuid(&mut self, random: &mut Random) {
        let start = self.at;
        self.random_hexadecimal(random);
        for _ in 0..3 {
            let digits = u32::from(random.bits(16));
            self.fixed(b"-");
            self.fixed(&hexadecimal(digits << 16));
            self.at -= 4;
        }
        self.fixed(b"-");
        self.random_hexadecimal(random);
        self.random_hexadecimal(random);
        self.at -= 4;
        self.buffer[start + 14] = b'4';
        self.buffer[start + 19] = b"89ab"[usize::from(random.bits(2))];
    }

    /// An empty stamp slot and a space, if slots are in use.
    #[inline(always)]
    pub(crate) fn slot(&mut self, slots: SlotUse) -> Option<usize> {
        match slots {
            SlotUse::None | SlotUse::Before(_) => None,
            SlotUse::Every => {
                let start = self.at;
                self.fixed(&SLOT_PLACEHOLDER);
                self.fixed(b" ");
                Some(start)
            }
        }
    }

    /// Returns the written bytes as an event of one unit.
    #[inline(always)]
    pub(crate) fn event(self, slot: Option<usize>) -> Event<'p> {
        Event {
            bytes: &self.buffer[..self.at],
            slot,
            units: 1,
            joint: Joint::Frame,
        }
    }
}

/// A number below 1000, narrower.
#[inline(always)]
fn small(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(0)
}

/// A short text, kept, so it is copied in one go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    bytes: [u8; FRAGMENT_MAX],
    len: u8,
}

impl Fragment {
    pub(crate) const MAX: usize = FRAGMENT_MAX;

    /// The first 32 bytes of `text`, which is ASCII.
    pub(crate) const fn new(text: &str) -> Self {
        let text = text.as_bytes();
        let mut bytes = [0; FRAGMENT_MAX];
        let mut len = 0_u8;
        while (len as usize) < FRAGMENT_MAX && (len as usize) < text.len() {
            bytes[len as usize] = text[len as usize];
            len += 1;
        }
        Self { bytes, len }
    }

    /// Returns its source text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// `texts` as fragments; a longer one does not compile.
    pub(crate) const fn all<const N: usize>(texts: [&str; N]) -> [Self; N] {
        let mut fragments = [const { Self::new("") }; N];
        let mut index = 0;
        while index < N {
            assert!(texts[index].len() <= FRAGMENT_MAX);
            fragments[index] = Self::new(texts[index]);
            index += 1;
        }
        fragments
    }
}
