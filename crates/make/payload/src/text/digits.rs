//! Numbers as digits, from tables.

/// 0 to 99 in two digits.
pub(crate) static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        let [_, tens, ones] = three_digits(value);
        pairs[value] = [tens, ones];
        value += 1;
    }
    pairs
};

/// A number below 1000 in digits.
#[derive(Clone, Copy)]
pub(crate) struct Triple {
    /// Three digits.
    pub(crate) padded: [u8; 3],
    /// As many digits as there must be.
    pub(crate) trimmed_len: u8,
    /// Those digits, then anything.
    pub(crate) trimmed: [u8; 4],
}

/// 0 to 999.
pub(crate) static TRIPLES: [Triple; 1000] = {
    const EMPTY: Triple = Triple {
        padded: [0; 3],
        trimmed_len: 0,
        trimmed: [0; 4],
    };
    let mut triples = [EMPTY; 1000];
    let mut value = 0;
    while value < 1000 {
        let padded = three_digits(value);
        let [hundreds, tens, ones] = padded;
        let (trimmed_len, trimmed) = if value < 10 {
            (1, [ones, 0, 0, 0])
        } else if value < 100 {
            (2, [tens, ones, 0, 0])
        } else {
            (3, [hundreds, tens, ones, 0])
        };
        triples[value] = Triple {
            padded,
            trimmed_len,
            trimmed,
        };
        value += 1;
    }
    triples
};

/// 0 to 255 and a comma: what there is, and its length.
pub(super) static BYTES_COMMA: [([u8; 4], u8); 256] = bytes_and(b',');

/// 0 to 255 and a full stop.
pub(super) static BYTES_STOP: [([u8; 4], u8); 256] = bytes_and(b'.');

const fn bytes_and(separator: u8) -> [([u8; 4], u8); 256] {
    let mut entries = [([0; 4], 0); 256];
    let mut value = 0;
    while value < 256 {
        let Triple {
            mut trimmed,
            trimmed_len,
            ..
        } = TRIPLES[value];
        trimmed[trimmed_len as usize] = separator;
        entries[value] = (trimmed, trimmed_len + 1);
        value += 1;
    }
    entries
}

const fn three_digits(value: usize) -> [u8; 3] {
    const DIGITS: &[u8; 10] = b"0123456789";
    [
        DIGITS[value / 100],
        DIGITS[value / 10 % 10],
        DIGITS[value % 10],
    ]
}

/// The eight hexadecimal digits of `bits`, highest first, all at once: each
/// nibble is moved to a byte of its own and turned into its digit there.
pub(super) const fn hexadecimal(bits: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut nibbles = bits as u64;
    nibbles = (nibbles | nibbles << 16) & 0x0000_ffff_0000_ffff;
    nibbles = (nibbles | nibbles << 8) & 0x00ff_00ff_00ff_00ff;
    nibbles = (nibbles | nibbles << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 in each byte whose nibble is 10 or more: it needs a letter.
    let letters = (nibbles + ONES * 6) >> 4 & ONES;
    let digits = nibbles + ONES * (b'0' as u64) + letters * ((b'a' - b'0') as u64 - 10);
    digits.to_be_bytes()
}

/// [`hexadecimal`] as the word whose first byte is the first digit.
#[inline(always)]
pub(crate) const fn hexadecimal_word(bits: u32) -> u64 {
    u64::from_le_bytes(hexadecimal(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for (value, triple) in TRIPLES.iter().enumerate() {
            assert_eq!(triple.padded, *format!("{value:03}").as_bytes());
            let trimmed = &triple.trimmed[..usize::from(triple.trimmed_len)];
            assert_eq!(trimmed, value.to_string().as_bytes());
        }
        for (value, pair) in PAIRS.iter().enumerate() {
            assert_eq!(pair, format!("{value:02}").as_bytes());
        }
        for bits in [0, 0x0123_4567, 0x89ab_cdef, u32::MAX, 0xf0a0_900c] {
            assert_eq!(hexadecimal(bits), *format!("{bits:08x}").as_bytes());
        }
    }
}
