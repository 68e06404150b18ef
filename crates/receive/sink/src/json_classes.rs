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
    /// Calls `take` for each block with its classes, until it returns false.
    #[inline]
    pub(crate) fn of_each(
        blocks: &[[u8; BLOCK_BYTES]],
        take: impl FnMut(&[u8; BLOCK_BYTES], &Self) -> bool,
    ) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: this processor has the feature.
            #[expect(unsafe_code, reason = "calls a function that needs a feature")]
            unsafe {
                wide::of_each(blocks, take);
            }
            return;
        }
        Self::of_each_by(blocks, Self::of, take);
    }

    #[inline(always)]
    fn of_each_by(
        blocks: &[[u8; BLOCK_BYTES]],
        of: impl Fn(&[u8; BLOCK_BYTES]) -> Self,
        mut take: impl FnMut(&[u8; BLOCK_BYTES], &Self) -> bool,
    ) {
        for block in blocks {
            if !take(block, &of(block)) {
                return;
            }
        }
    }

    /// Returns those of a block.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[expect(unsafe_code, reason = "calls a function that needs a feature")]
    fn of(block: &[u8; BLOCK_BYTES]) -> Self {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { narrow(block) }
    }

    /// Returns those of a block.
    #[cfg(not(target_arch = "x86_64"))]
    fn of(block: &[u8; BLOCK_BYTES]) -> Self {
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

/// The classes of a block, 16 bytes at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn narrow(block: &[u8; BLOCK_BYTES]) -> JsonClasses {
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
    JsonClasses {
        quotes: bits(&parts, b'"'),
        backslashes: bits(&parts, b'\\'),
        opens: bits(&curled, b'{'),
        closes: bits(&curled, b'}'),
    }
}

/// The same with registers of 32 bytes, where the processor has them.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set_epi64x,
        _mm256_set1_epi8,
    };

    use super::{BLOCK_BYTES, JsonClasses};

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn of_each(
        blocks: &[[u8; BLOCK_BYTES]],
        take: impl FnMut(&[u8; BLOCK_BYTES], &JsonClasses) -> bool,
    ) {
        JsonClasses::of_each_by(blocks, |block| of(block), take);
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn of(block: &[u8; BLOCK_BYTES]) -> JsonClasses {
        let (words, _) = block.as_chunks::<8>();
        let word = |at: usize| i64::from_le_bytes(words[at]);
        let half = |at| _mm256_set_epi64x(word(at + 3), word(at + 2), word(at + 1), word(at));
        let halves = [half(0), half(4)];
        // Brackets differ from braces in this bit alone.
        let curled = _mm256_set1_epi8(0x20);
        let curled = halves.map(|half| _mm256_or_si256(half, curled));
        JsonClasses {
            quotes: equal(halves, b'"'),
            backslashes: equal(halves, b'\\'),
            opens: equal(curled, b'{'),
            closes: equal(curled, b'}'),
        }
    }

    /// A bit for each byte that is `byte`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn equal(halves: [__m256i; 2], byte: u8) -> u64 {
        let byte = _mm256_set1_epi8(byte.cast_signed());
        let [low, high] = halves.map(|half| {
            let equal = _mm256_movemask_epi8(_mm256_cmpeq_epi8(half, byte));
            u64::from(equal.cast_unsigned())
        });
        low | high << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By every kind of register that this processor has.
    #[test]
    fn every_byte_at_every_place_has_its_class() {
        for byte in 0..=u8::MAX {
            for at in 0..BLOCK_BYTES {
                let mut block = [b'a'; BLOCK_BYTES];
                block[at] = byte;
                let expected = JsonClasses::one_by_one(&block);
                assert_eq!(JsonClasses::of(&block), expected, "{byte} at {at}");
                let mut seen = Vec::new();
                JsonClasses::of_each(&[block, block], |_, classes| {
                    seen.push(*classes);
                    true
                });
                assert_eq!(seen, [expected; 2], "{byte} at {at}");
            }
        }
    }

    #[test]
    fn blocks_end_where_they_are_refused() {
        let mut blocks = 0;
        JsonClasses::of_each(&[[b'a'; BLOCK_BYTES]; 3], |_, _| {
            blocks += 1;
            blocks < 2
        });
        assert_eq!(blocks, 2);
    }
}
