//! The bytes that a stamp covers.

use crate::code::low_half;

/// The most bytes that a span has.
pub const SPAN_LIMIT: usize = (1 << 12) - 1;

/// The bytes behind a span that show whether all of it arrived.
pub const GUARD_WIDTH: usize = 8;

/// Bits of the span's hash that a stamp has room for.
pub(crate) const HASH_BITS: u32 = 24;

/// Bits of the guard that a stamp has room for.
const GUARD_BITS: u32 = 20;

/// The stamp's description of the bytes directly behind it: how many of them are its span, a hash
/// of these, and a shorter hash of the [`GUARD_WIDTH`] bytes behind them, the guard.
///
/// The guard makes damage provable. If it is at its place, the span before it arrived in full
/// length; if the hash differs then, bytes were changed. Otherwise the pipeline may have escaped,
/// cut or moved something, and nothing is claimed.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Span {
    /// Bytes of the span; 0 if none is declared.
    pub(crate) length: u16,
    /// Hash of the span, [`HASH_BITS`] bits.
    pub(crate) hash: u32,
    /// Hash of the guard, [`GUARD_BITS`] bits.
    pub(crate) guard: u32,
}

/// The check of a span.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SpanCheck {
    /// The stamp declares no span.
    Undeclared,
    /// Every byte is as it was sent.
    Intact,
    /// It arrived in full length, with other bytes.
    Damaged,
    /// It did not arrive in one piece, or not in the form that was sent.
    Unverifiable,
    /// The rest of it has yet to arrive.
    Pending,
}

impl Span {
    /// No span.
    pub const NONE: Self = Self {
        length: 0,
        hash: 0,
        guard: 0,
    };

    /// The span of a stamp that `behind` follows: all of it but the last
    /// [`GUARD_WIDTH`] bytes, and at most [`SPAN_LIMIT`]. None if nothing is left.
    ///
    /// Hand in what the pipeline is expected to leave together, such as the rest
    /// of the message text; not what frames the event.
    #[must_use]
    #[inline]
    pub fn of(behind: &[u8]) -> Self {
        let length = behind.len().saturating_sub(GUARD_WIDTH).min(SPAN_LIMIT);
        let (span, rest) = behind.split_at(length);
        match (u16::try_from(length), rest.first_chunk()) {
            (Ok(length @ 1..), Some(guard)) => Self {
                length,
                hash: hash(span),
                guard: hash_guard(*guard),
            },
            _ => Self::NONE,
        }
    }

    /// Returns the number of bytes of the span; 0 if none is declared.
    #[must_use]
    pub const fn length(&self) -> u16 {
        self.length
    }

    /// Holds the span against `behind`, which is everything from the end of the
    /// stamp to the end of what arrived and will arrive. Never `Pending`.
    #[must_use]
    #[inline]
    pub fn check(&self, behind: &[u8]) -> SpanCheck {
        match self.check_so_far(behind) {
            SpanCheck::Pending => SpanCheck::Unverifiable,
            check => check,
        }
    }

    /// As [`Span::check`], while more may arrive.
    #[inline(always)]
    pub(crate) fn check_so_far(&self, behind: &[u8]) -> SpanCheck {
        if self.length == 0 {
            return SpanCheck::Undeclared;
        }
        let Some((span, rest)) = behind.split_at_checked(usize::from(self.length)) else {
            return SpanCheck::Pending;
        };
        if hash(span) == self.hash {
            return SpanCheck::Intact;
        }
        self.check_guard(rest)
    }

    /// Checks a span that is not intact, with `rest` behind it.
    #[cold]
    #[inline(never)]
    fn check_guard(&self, rest: &[u8]) -> SpanCheck {
        match rest.first_chunk() {
            Some(guard) if hash_guard(*guard) == self.guard => SpanCheck::Damaged,
            Some(_) => SpanCheck::Unverifiable,
            None => SpanCheck::Pending,
        }
    }
}

const KEYS: [u64; 4] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
];

/// [`HASH_BITS`] bits of any bytes. Two lanes of 16 bytes each go through wide
/// products; what does not fill 32 bytes is read again from the end, so nothing
/// is copied.
#[inline(always)]
fn hash(bytes: &[u8]) -> u32 {
    let mut lanes = [KEYS[2], KEYS[3]];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        lanes = mix_block(lanes, block);
    }
    if !rest.is_empty() {
        lanes = match bytes.last_chunk() {
            Some(last) => mix_block(lanes, last),
            None => mix_short(lanes, bytes),
        };
    }
    let length = bytes.len() as u64;
    let folded = fold(lanes[0] ^ length, lanes[1] ^ KEYS[0]);
    low_half(folded >> (64 - HASH_BITS))
}

/// Apart, so what is rare takes no registers from what is not.
#[cold]
#[inline(never)]
fn mix_short(lanes: [u64; 2], bytes: &[u8]) -> [u64; 2] {
    mix_block(lanes, &padded(bytes))
}

#[inline(always)]
fn mix_block(lanes: [u64; 2], block: &[u8; 32]) -> [u64; 2] {
    let (words, _) = block.as_chunks::<8>();
    let word = |index: usize| u64::from_le_bytes(words[index]);
    [
        fold(lanes[0] ^ word(0), KEYS[0] ^ word(1)),
        fold(lanes[1] ^ word(2), KEYS[1] ^ word(3)),
    ]
}

/// Fewer than 32 bytes, with zeros behind them.
fn padded(bytes: &[u8]) -> [u8; 32] {
    let mut block = [0; 32];
    for (to, from) in block.iter_mut().zip(bytes) {
        *to = *from;
    }
    block
}

/// The top bits of a folded product, in which each byte of the guard counts.
#[inline]
fn hash_guard(guard: [u8; GUARD_WIDTH]) -> u32 {
    let folded = fold(u64::from_le_bytes(guard) ^ KEYS[2], KEYS[1]);
    low_half(folded >> (64 - GUARD_BITS))
}

/// Both halves of the product, combined with XOR.
#[inline]
pub(crate) fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the halves are taken apart here"
    )]
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_arrives_as_sent_is_intact(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            more in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let span = Span::of(&bytes);
            let expected = match bytes.len() {
                0..=GUARD_WIDTH => SpanCheck::Undeclared,
                _ => SpanCheck::Intact,
            };
            prop_assert_eq!(span.check(&bytes), expected);
            prop_assert_eq!(span.check(&[bytes, more].concat()), expected);
        }

        #[test]
        fn a_changed_byte_of_the_span_is_damage(
            bytes in prop::collection::vec(any::<u8>(), GUARD_WIDTH + 1..400),
            place in any::<prop::sample::Index>(),
            change in 1..=u8::MAX,
        ) {
            let span = Span::of(&bytes);
            let mut changed = bytes.clone();
            changed[place.index(bytes.len() - GUARD_WIDTH)] ^= change;
            prop_assert_eq!(span.check(&changed), SpanCheck::Damaged);
            changed.truncate(bytes.len() - 1);
            prop_assert_eq!(span.check_so_far(&changed), SpanCheck::Pending);
        }

        #[test]
        fn what_is_longer_or_shorter_is_not_called_damage(
            bytes in "[a-z]{40,400}",
            place in 0_usize..20,
        ) {
            let span = Span::of(bytes.as_bytes());
            let mut escaped = bytes.clone();
            escaped.insert(place, '\\');
            escaped.push('"');
            prop_assert_ne!(span.check(escaped.as_bytes()), SpanCheck::Damaged);
            let cut = format!("{}\n<13>1 the next event, and more of it", &bytes[..place]);
            prop_assert_eq!(span.check(&cut.repeat(20).into_bytes()), SpanCheck::Unverifiable);
        }

        #[test]
        fn behind_the_span_anything_may_follow(
            bytes in prop::collection::vec(any::<u8>(), GUARD_WIDTH + 1..400),
        ) {
            let span = Span::of(&bytes);
            let reframed = [&bytes[..bytes.len() - GUARD_WIDTH], b"\"}]}\r\n, then more"].concat();
            prop_assert_eq!(span.check(&reframed), SpanCheck::Intact);
        }
    }

    #[test]
    fn a_span_has_a_limit() {
        let span = Span::of(&[b'a'; 3 * SPAN_LIMIT]);
        assert_eq!(usize::from(span.length()), SPAN_LIMIT);
        assert_eq!(Span::of(b"").length(), 0);
        assert_eq!(Span::of(b"12345678"), Span::NONE);
        assert_eq!(Span::of(b"123456789").length(), 1);
    }
}
