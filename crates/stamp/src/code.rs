//! Numbers of 32 bits as eight characters, and the checksum over them.
//!
//! All eight characters of a word are worked on at once, in one register, each
//! in a byte of its own. The first character holds the lowest four bits.

/// `a` in each byte.
const LETTER: u64 = 0x6161_6161_6161_6161;

/// What no byte holds if all characters are of `[a-p]`, once `a` is taken away.
const BEYOND: u64 = 0xf0f0_f0f0_f0f0_f0f0;

/// `value` as eight characters of `[a-p]`, the first one in the lowest byte.
#[inline]
pub(crate) fn encode(value: u32) -> u64 {
    let whole = u64::from(value);
    let halves = (whole | whole << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    fours + LETTER
}

/// What [`encode`] wrote, and zero; or anything, and something else than zero,
/// if the characters are not of `[a-p]`.
#[inline]
pub(crate) const fn decode(characters: u64) -> (u32, u64) {
    // A byte below its range borrows from the next and is left above 15 itself.
    let fours = characters.wrapping_sub(LETTER);
    let bytes = (fours | fours >> 4) & 0x00ff_00ff_00ff_00ff;
    let halves = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    (low_half(halves | halves >> 16), fours & BEYOND)
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

/// Where the two halves of the sum begin.
const BEGINNINGS: [u32; 2] = [0x5a5a_5a5a, 0x3c3c_3c3c];

/// The checksum of six words. Whichever single word changes, however it changes,
/// the checksum changes: each step is a permutation of what it has so far, and a
/// permutation of the word that it takes in.
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
    reason = "callers shift away or do not mean what does not fit"
)]
pub(crate) const fn low_half(value: u64) -> u32 {
    value as u32
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
        fn words_are_written_and_read_as_the_table_says(value in any::<u32>()) {
            let characters = encode(value).to_le_bytes();
            prop_assert_eq!(characters, plainly(value));
            prop_assert_eq!(decode(encode(value)), (value, 0));
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
        fn any_eight_bytes_are_a_word_only_if_of_the_alphabet(bytes in any::<[u8; 8]>()) {
            let (_, wrong) = decode(u64::from_le_bytes(bytes));
            prop_assert_eq!(wrong == 0, bytes.iter().all(|byte| ALPHABET.contains(byte)));
        }
    }

    #[test]
    fn every_byte_at_every_place_is_told_apart() {
        for place in 0..8 {
            for byte in 0..=u8::MAX {
                for neighbour in *b"ap" {
                    let mut bytes = [neighbour; 8];
                    bytes[place] = byte;
                    let (_, wrong) = decode(u64::from_le_bytes(bytes));
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
