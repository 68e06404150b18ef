//! Numbers of 32 bits as eight characters, and the checksum over them.
//!
//! All eight characters of a word are worked on at once, in one register, each
//! in a byte of its own. The first character holds the lowest four bits.

/// `a` in each byte.
const LETTER: u64 = 0x6161_6161_6161_6161;

/// Bits that are clear in all bytes if every character is of `[a-p]`, once `a` is subtracted.
const BEYOND: u16 = 0xf0f0;

/// `value` as eight characters of `[a-p]`, the first one in the lowest byte.
#[inline]
pub(crate) fn encode(value: u32) -> u64 {
    let whole = u64::from(value);
    let halves = (whole | whole << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    fours + LETTER
}

/// The characters of a whole stamp as words, each of eight characters, and zero;
/// or anything, and something else than zero, if one of them does not lie up to 15
/// above its place in `base`.
///
/// Works on two characters at a time without regard to words, so it becomes
/// a handful of instructions on wide registers.
#[inline(always)]
pub(crate) fn decode(characters: &[u8; 64], base: &[u16; 32]) -> ([u32; 8], u16) {
    let (pairs, _) = characters.as_chunks::<2>();
    let mut bytes = [0; 32];
    let mut fours_or = 0;
    for ((byte, pair), base) in bytes.iter_mut().zip(pairs).zip(base) {
        // A character below its range borrows from the next and is left above 15
        // itself.
        let fours = u16::from_le_bytes(*pair).wrapping_sub(*base);
        fours_or |= fours;
        *byte = low_byte(fours | fours >> 4);
    }
    let (words, _) = bytes.as_chunks::<4>();
    let mut values = [0; 8];
    for (value, word) in values.iter_mut().zip(words) {
        *value = u32::from_le_bytes(*word);
    }
    (values, fours_or & BEYOND)
}

/// The base of stamps that begin with `magic`, for [`decode`]: the magic itself,
/// which so becomes a word of zero, and `a` everywhere else.
pub(crate) const fn base_behind(magic: &[u8; 8]) -> [u16; 32] {
    let mut base = [u16::from_le_bytes(*b"aa"); 32];
    let mut at = 0;
    while at < 4 {
        base[at] = u16::from_le_bytes([magic[2 * at], magic[2 * at + 1]]);
        at += 1;
    }
    base
}

/// Odd numbers, one for each word that is taken in, and one for the end.
const FACTORS: [u32; 7] = [
    0x9e37_79b1,
    0x85eb_ca77,
    0xc2b2_ae3d,
    0x27d4_eb2f,
    0x1656_67b1,
    0xcc9e_2d51,
    0x1b87_3593,
];

/// Initial values of the two halves of the sum.
const BEGINNINGS: [u32; 2] = [0x5a5a_5a5a, 0x3c3c_3c3c];

/// The checksum of six words. Any change of a single word changes the checksum: each step is a
/// permutation of the state so far, and a permutation of the word that it reads.
#[inline]
pub(crate) const fn checksum(words: &[u32; 6]) -> u32 {
    let mut left = step(BEGINNINGS[0], words[0], FACTORS[0]);
    left = step(left, words[1], FACTORS[1]);
    left = step(left, words[2], FACTORS[2]);
    let mut right = step(BEGINNINGS[1], words[3], FACTORS[3]);
    right = step(right, words[4], FACTORS[4]);
    right = step(right, words[5], FACTORS[5]);
    step(left, right, FACTORS[6])
}

#[inline]
const fn step(state: u32, word: u32, factor: u32) -> u32 {
    let product = (state ^ word).wrapping_mul(factor);
    product ^ (product >> 16)
}

/// The lower 32 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "callers shift the upper bits away or do not need them"
)]
pub(crate) const fn low_half(value: u64) -> u32 {
    value as u32
}

/// The lower 8 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper bits belong to another byte"
)]
const fn low_byte(value: u16) -> u8 {
    value as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALPHABET: &[u8; 16] = b"abcdefghijklmnop";

    /// One character after the other.
    fn plainly(value: u32) -> [u8; 8] {
        std::array::from_fn(|index| ALPHABET[usize::try_from(value >> (4 * index) & 15).unwrap()])
    }

    proptest! {
        #[test]
        fn words_are_written_and_read_by_the_table(value in any::<u32>()) {
            let characters = encode(value).to_le_bytes();
            prop_assert_eq!(characters, plainly(value));
            let mut whole = [b'a'; 64];
            whole[24..32].copy_from_slice(&characters);
            let expected = [0, 0, 0, value, 0, 0, 0, 0];
            prop_assert_eq!(decode(&whole, &base_behind(b"aaaaaaaa")), (expected, 0));
        }

        #[test]
        fn the_checksum_sees_any_change_of_one_word(
            words in any::<[u32; 6]>(),
            which in 0_usize..6,
            other in any::<u32>(),
        ) {
            let mut changed = words;
            changed[which] = other;
            prop_assert_eq!(checksum(&words) == checksum(&changed), words == changed);
        }

        #[test]
        fn any_bytes_are_words_only_if_of_the_alphabet(
            bytes in prop::collection::vec(any::<u8>(), 56),
        ) {
            let whole: [u8; 64] = [&b"zmagic09"[..], &bytes].concat().try_into().unwrap();
            let (values, wrong) = decode(&whole, &base_behind(b"zmagic09"));
            prop_assert_eq!(values[0], 0);
            prop_assert_eq!(wrong == 0, bytes.iter().all(|byte| ALPHABET.contains(byte)));
        }
    }

    #[test]
    fn every_byte_at_every_place_is_distinguished() {
        for place in 0..64 {
            for byte in 0..=u8::MAX {
                for neighbour in *b"ap" {
                    let mut bytes = [neighbour; 64];
                    bytes[place] = byte;
                    let (_, wrong) = decode(&bytes, &base_behind(b"aaaaaaaa"));
                    assert_eq!(wrong == 0, ALPHABET.contains(&byte), "{byte} at {place}");
                }
            }
        }
    }

    #[test]
    fn factors_are_odd_and_so_permute() {
        assert!(FACTORS.iter().all(|factor| factor % 2 == 1));
    }
}
