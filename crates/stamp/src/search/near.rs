//! Where a stamp begins, if that is near.
//!
//! In a stream of events the next stamp mostly begins some tens of bytes behind what
//! was just read. A call of the searcher that is fastest over long distances costs
//! more than looking at all of these bytes at once, here, in a few instructions.

use memchr::memmem::Finder;

use crate::stamp::MAGIC;

/// Places that are looked at here.
const NEAR: usize = 64;

/// Bytes that are read for it.
const READ: usize = NEAR + MAGIC.len();

/// As the finder of the magic finds it.
#[inline(always)]
pub(super) fn find(finder: &Finder<'static>, bytes: &[u8]) -> Option<usize> {
    let Some(near) = bytes.first_chunk::<READ>() else {
        return finder.find(bytes);
    };
    let mut candidates = candidates(near);
    while candidates != 0 {
        let place = usize::from(low_six(candidates.trailing_zeros()));
        if near[place..].starts_with(MAGIC) {
            return Some(place);
        }
        candidates &= candidates - 1;
    }
    finder.find(&bytes[NEAR..]).map(|place| NEAR + place)
}

/// The place of a bit in 64.
const fn low_six(place: u32) -> u8 {
    (place & 63) as u8
}

/// A bit for each of the first [`NEAR`] places at which the second and third
/// character of a magic stand behind it: two that seldom follow one another in text.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(
    unsafe_code,
    reason = "registers of sixteen bytes are reached by functions that ask for a feature"
)]
fn candidates(near: &[u8; READ]) -> u64 {
    // SAFETY: the feature is part of every processor of this architecture, and of what
    // the compiler takes for granted there.
    unsafe { candidates_of_sixteen(near) }
}

/// Sixteen places at once, by registers of sixteen bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
#[expect(unsafe_code, reason = "a load from memory takes a pointer")]
fn candidates_of_sixteen(near: &[u8; READ]) -> u64 {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
    };
    let load = |from: usize| -> __m128i {
        let bytes: &[u8; 16] = near[from..].first_chunk().unwrap_or(&[0; 16]);
        // SAFETY: these are sixteen bytes, and may begin anywhere.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    };
    let (second, third) = (
        _mm_set1_epi8(MAGIC[1].cast_signed()),
        _mm_set1_epi8(MAGIC[2].cast_signed()),
    );
    let sixteen = |from: usize| {
        let both = _mm_and_si128(
            _mm_cmpeq_epi8(load(from + 1), second),
            _mm_cmpeq_epi8(load(from + 2), third),
        );
        u64::from(_mm_movemask_epi8(both).cast_unsigned())
    };
    sixteen(0) | sixteen(16) << 16 | sixteen(32) << 32 | sixteen(48) << 48
}

/// As above, where such registers are not known to be there.
#[cfg(not(target_arch = "x86_64"))]
fn candidates(near: &[u8; READ]) -> u64 {
    let pairs = near[1..=NEAR + 1].windows(2);
    pairs.enumerate().fold(0, |bits, (place, pair)| {
        bits | u64::from(pair == &MAGIC[1..3]) << place
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn near_and_far_are_as_the_finder_says(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just(MAGIC.to_vec()),
                    (0_usize..8).prop_map(|length| MAGIC[..length].to_vec()),
                    Just(b"qz".to_vec()),
                    prop::collection::vec(any::<u8>(), 0..70),
                ],
                0..8,
            ),
        ) {
            let bytes = pieces.concat();
            let finder = Finder::new(MAGIC);
            prop_assert_eq!(find(&finder, &bytes), finder.find(&bytes));
        }
    }

    #[test]
    fn a_magic_is_found_wherever_it_begins() {
        let finder = Finder::new(MAGIC);
        for place in 0..3 * NEAR {
            let mut bytes = [b'q'; 4 * NEAR];
            bytes[place..place + MAGIC.len()].copy_from_slice(MAGIC);
            for end in place + MAGIC.len()..=bytes.len() {
                assert_eq!(find(&finder, &bytes[..end]), Some(place));
            }
            assert_eq!(find(&finder, &bytes[place + 1..]), None);
        }
    }
}
