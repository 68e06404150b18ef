//! Bytes of a block of text that JSON gives a meaning, as bits.

/// Bytes that are looked at together.
pub(crate) const BLOCK_BYTES: usize = 64;

/// A bit for each byte of a block, the first byte's lowest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct JsonClasses {
    pub(crate) quotes: u64,
    pub(crate) backslashes: u64,
    /// `[` and `{`.
    pub(crate) opens: u64,
    /// `]` and `}`.
    pub(crate) closes: u64,
}

impl JsonClasses {
    /// Returns those of a block.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[expect(unsafe_code, reason = "calls a function that needs a feature")]
    pub(crate) fn of(block: &[u8; BLOCK_BYTES]) -> Self {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { Self::wide(block) }
    }

    /// The same, 16 bytes at once.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "sse2")]
    #[inline]
    fn wide(block: &[u8; BLOCK_BYTES]) -> Self {
        use std::arch::x86_64::{
            __m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
        };
        let (words, _) = block.as_chunks::<8>();
        let word = |at: usize| i64::from_le_bytes(words[at]);
        let parts = [0, 2, 4, 6].map(|at| _mm_set_epi64x(word(at + 1), word(at)));
        let bits = |parts: &[__m128i; 4], byte: u8| {
            let byte = _mm_set1_epi8(byte.cast_signed());
            let part = |at: usize| {
                let equal = _mm_movemask_epi8(_mm_cmpeq_epi8(parts[at], byte));
                u64::from(equal.cast_unsigned())
            };
            part(0) | part(1) << 16 | part(2) << 32 | part(3) << 48
        };
        // Brackets differ from braces in this bit alone.
        let curled = _mm_set1_epi8(0x20);
        let curled = parts.map(|part| _mm_or_si128(part, curled));
        Self {
            quotes: bits(&parts, b'"'),
            backslashes: bits(&parts, b'\\'),
            opens: bits(&curled, b'{'),
            closes: bits(&curled, b'}'),
        }
    }

    /// Returns those of a block.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn of(block: &[u8; BLOCK_BYTES]) -> Self {
        Self::one_by_one(block)
    }

    /// The same, byte by byte.
    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn one_by_one(block: &[u8; BLOCK_BYTES]) -> Self {
        let bits = |is: fn(u8) -> bool| {
            let places = block.iter().enumerate();
            places.fold(0, |bits, (at, byte)| bits | u64::from(is(*byte)) << at)
        };
        Self {
            quotes: bits(|byte| byte == b'"'),
            backslashes: bits(|byte| byte == b'\\'),
            opens: bits(|byte| matches!(byte, b'[' | b'{')),
            closes: bits(|byte| matches!(byte, b']' | b'}')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_has_its_class() {
        for byte in 0..=u8::MAX {
            for at in 0..BLOCK_BYTES {
                let mut block = [b'a'; BLOCK_BYTES];
                block[at] = byte;
                assert_eq!(
                    JsonClasses::of(&block),
                    JsonClasses::one_by_one(&block),
                    "{byte} at {at}"
                );
            }
        }
    }
}
