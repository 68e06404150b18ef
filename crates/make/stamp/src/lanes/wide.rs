//! With registers of 32 bytes, where the processor has them.
//!
//! In a stream of events the next stamp mostly begins some tens of bytes behind what
//! was just read. A call of the searcher that is fastest over long distances costs
//! more than looking at all of these bytes at once, here, in a few instructions.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_extract_epi64, _mm256_insert_epi64,
    _mm256_loadu_si256, _mm256_maddubs_epi16, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_packus_epi16, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_sub_epi8, _mm256_testz_si256,
};

use memchr::memmem::Finder;

use super::{Lanes, Work};
use crate::code::low_half;
use crate::stamp::MAGIC;

/// Places that are looked at at once.
const NEAR: usize = 64;

/// Bytes that are read for it.
const READ: usize = NEAR + MAGIC.len();

/// A proof that these registers exist: its holder may use them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide(());

impl Wide {
    /// It, where the processor has what it takes.
    #[inline]
    pub(crate) fn new() -> Option<Self> {
        let is_there = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        is_there.then_some(Self(()))
    }

    /// Does `work` with these registers from its beginning to its end, so the
    /// compiler need not leave them in between.
    #[inline]
    #[expect(unsafe_code, reason = "calls a function that needs features")]
    pub(crate) fn within<W: Work>(self, work: W) -> W::Outcome {
        // SAFETY: there is a `Wide` only where all of the features were found.
        unsafe { within(self, work) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn within<W: Work>(wide: Wide, work: W) -> W::Outcome {
    work.by(wide)
}

impl Lanes for Wide {
    #[inline(always)]
    #[expect(unsafe_code, reason = "calls a function that needs a feature")]
    fn find(self, finder: &Finder<'static>, bytes: &[u8]) -> Option<usize> {
        let Some(near) = bytes.first_chunk::<READ>() else {
            return finder.find(bytes);
        };
        // SAFETY: there is a `Wide` only where the feature was found.
        let mut candidates = unsafe { candidates(near) };
        while candidates != 0 {
            let place = usize::from(low_six(candidates.trailing_zeros()));
            if near[place..].starts_with(MAGIC) {
                return Some(place);
            }
            candidates &= candidates - 1;
        }
        finder.find(&bytes[NEAR..]).map(|place| NEAR + place)
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "calls a function that needs a feature")]
    fn decode(self, characters: &[u8; 64]) -> ([u32; 8], u32) {
        // SAFETY: there is a `Wide` only where the feature was found.
        unsafe { decode(characters) }
    }
}

/// The place of a bit in 64.
const fn low_six(place: u32) -> u8 {
    (place & 63) as u8
}

/// The 32 bytes from `from` on.
#[target_feature(enable = "avx2")]
#[inline]
#[expect(unsafe_code, reason = "a load from memory takes a pointer")]
fn load<const N: usize>(bytes: &[u8; N], from: usize) -> __m256i {
    let bytes: &[u8; 32] = bytes[from..].first_chunk().unwrap_or(&[0; 32]);
    // SAFETY: these are 32 bytes, and may begin anywhere.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// A bit for each of the first [`NEAR`] places followed by the second and third character of a
/// magic: a pair that is rare in text.
#[target_feature(enable = "avx2")]
#[inline]
fn candidates(near: &[u8; READ]) -> u64 {
    let second = _mm256_set1_epi8(MAGIC[1].cast_signed());
    let third = _mm256_set1_epi8(MAGIC[2].cast_signed());
    let half = |from: usize| {
        let both = _mm256_and_si256(
            _mm256_cmpeq_epi8(load(near, from + 1), second),
            _mm256_cmpeq_epi8(load(near, from + 2), third),
        );
        u64::from(_mm256_movemask_epi8(both).cast_unsigned())
    };
    half(0) | half(32) << 32
}

/// As [`crate::code::decode`], of a stamp.
#[target_feature(enable = "avx2")]
#[inline]
fn decode(characters: &[u8; 64]) -> ([u32; 8], u32) {
    let letters = _mm256_set1_epi8(b'a'.cast_signed());
    let base = _mm256_insert_epi64::<0>(letters, i64::from_le_bytes(*MAGIC));
    let first = _mm256_sub_epi8(load(characters, 0), base);
    let second = _mm256_sub_epi8(load(characters, 32), letters);
    // What lies below its range comes round and is above 15 as well.
    let beyond = _mm256_set1_epi8(0xf0_u8.cast_signed());
    let is_right = _mm256_testz_si256(_mm256_or_si256(first, second), beyond);
    // Two fours are one byte: the first of them, and sixteen times the second.
    let weights = _mm256_set1_epi16(0x1001);
    let bytes = _mm256_packus_epi16(
        _mm256_maddubs_epi16(first, weights),
        _mm256_maddubs_epi16(second, weights),
    );
    // It packs each half of the registers by itself.
    let pairs = [
        _mm256_extract_epi64::<0>(bytes),
        _mm256_extract_epi64::<2>(bytes),
        _mm256_extract_epi64::<1>(bytes),
        _mm256_extract_epi64::<3>(bytes),
    ];
    let [a, b, c, d] = pairs.map(|pair| {
        let pair = pair.cast_unsigned();
        [low_half(pair), low_half(pair >> 32)]
    });
    let words = [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]];
    (words, u32::from(is_right == 0))
}

#[cfg(test)]
mod tests;
