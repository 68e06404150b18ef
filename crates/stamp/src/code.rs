//! Numbers of 40 bits as eight characters, and the checksum over them.
//!
//! All eight characters of a word are worked on at once, in one register, each
//! in a byte of its own. The first character holds the lowest five bits.

/// The bits that one word of eight characters carries.
pub(crate) const WORD_MASK: u64 = (1 << 40) - 1;

/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// How far `a` lies from 0, and how far digits lie below where letters would go
/// on: `z` is 25, `2` is 26, `7` is 31.
const LETTER: u64 = 0x61;
const DIGIT_BACK: u64 = 73;

/// The low 40 bits of `value` as eight characters of `[a-z2-7]`, the first one
/// in the lowest byte.
#[inline]
pub(crate) const fn encode(value: u64) -> u64 {
    let halves = (value & 0xf_ffff) | ((value & 0xff_fff0_0000) << 12);
    let pairs = (halves & 0x0000_03ff_0000_03ff) | ((halves & 0x000f_fc00_000f_fc00) << 6);
    let fives = (pairs & 0x001f_001f_001f_001f) | ((pairs & 0x03e0_03e0_03e0_03e0) << 3);
    let digits = ((fives + 6 * ONES) >> 5) & ONES;
    fives + LETTER * ONES - digits * DIGIT_BACK
}

/// What [`encode`] wrote, and zero; or anything, and something else than zero,
/// if the characters are not of `[a-z2-7]`.
#[inline]
pub(crate) const fn decode(characters: u64) -> (u64, u64) {
    let digits = (!characters >> 6) & ONES;
    // A byte below its range borrows from the next and is left above 31 itself.
    let fives = characters
        .wrapping_sub(LETTER * ONES)
        .wrapping_add(digits * DIGIT_BACK);
    let large = fives & (0xe0 * ONES);
    let wrong_kind = (((fives.wrapping_add(6 * ONES)) >> 5) ^ digits) & ONES;
    let pairs = (fives & 0x001f_001f_001f_001f) | ((fives & 0x1f00_1f00_1f00_1f00) >> 3);
    let halves = (pairs & 0x0000_03ff_0000_03ff) | ((pairs & 0x03ff_0000_03ff_0000) >> 6);
    let value = (halves & 0xf_ffff) | ((halves & 0x000f_ffff_0000_0000) >> 12);
    (value, large | wrong_kind)
}

/// Six odd numbers, one for each word that is summed, and one for the end.
const FACTORS: [u64; 7] = [
    0x9e_3779_b97f,
    0xbf_5847_6d1d,
    0x94_d049_bb13,
    0xd6_e8fe_b867,
    0xa5_a356_3b9d,
    0xc2_b2ae_3d27,
    0xe7_037e_d1a1,
];

/// The checksum of six words: 40 bits. Whichever single word changes, however it
/// changes, the checksum changes: each step is a permutation of what it has so
/// far, and a permutation of the word that it takes in.
#[inline]
pub(crate) const fn checksum(words: &[u64; 6]) -> u64 {
    let mut left = 0x5a_5a5a_5a5a;
    left = step(left, words[0], FACTORS[0]);
    left = step(left, words[1], FACTORS[1]);
    left = step(left, words[2], FACTORS[2]);
    let mut right = 0x3c_3c3c_3c3c;
    right = step(right, words[3], FACTORS[3]);
    right = step(right, words[4], FACTORS[4]);
    right = step(right, words[5], FACTORS[5]);
    step(left, right, FACTORS[6])
}

#[inline]
const fn step(state: u64, word: u64, factor: u64) -> u64 {
    let product = (state ^ word).wrapping_mul(factor) & WORD_MASK;
    product ^ (product >> 20)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

    /// One character after the other.
    fn plainly(value: u64) -> [u8; 8] {
        std::array::from_fn(|index| ALPHABET[usize::try_from(value >> (5 * index) & 31).unwrap()])
    }

    proptest! {
        #[test]
        fn words_are_written_and_read_as_the_table_says(value in 0..=WORD_MASK) {
            let characters = encode(value).to_le_bytes();
            prop_assert_eq!(characters, plainly(value));
            prop_assert_eq!(decode(encode(value)), (value, 0));
        }

        #[test]
        fn the_checksum_sees_any_change_of_one_word(
            words in prop::array::uniform6(0..=WORD_MASK),
            which in 0_usize..6,
            other in 0..=WORD_MASK,
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
                for neighbour in *b"a2" {
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
