//! The code for strings (RFC 7541, 5.2 and appendix B).
//!
//! The code is canonical: codes of one length are consecutive, in the order of
//! their symbols, and longer codes follow shorter ones. So the lengths say it all.

use super::HpackError;

/// The length of each symbol's code, in bits; the last is the end of the string.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
    30,
];

const LENGTH_MAX: usize = 30;

/// Index of the end of the string in [`LENGTHS`].
const END: u16 = 256;

/// Tables made from the lengths. Codes are at the top of 32 bits.
struct Code {
    /// The code of each symbol.
    codes: [u32; 257],
    /// Symbols in the order of their codes.
    symbols: [u16; 257],
    /// For each length, the first code that is longer.
    ends: [u64; LENGTH_MAX + 1],
    /// For each length, its first code.
    starts: [u32; LENGTH_MAX + 1],
    /// For each length, the index of its first symbol in `symbols`.
    offsets: [usize; LENGTH_MAX + 1],
}

static CODE: Code = CODE_CONST;

const CODE_CONST: Code = code();

/// For each first byte that holds a whole code: the symbol, and the code's
/// length, which is zero where the code is longer. Text has hardly any of those.
static SHORT: [(u8, u8); 256] = short();

const fn code() -> Code {
    let mut code = Code {
        codes: [0; 257],
        symbols: [0; 257],
        ends: [0; LENGTH_MAX + 1],
        starts: [0; LENGTH_MAX + 1],
        offsets: [0; LENGTH_MAX + 1],
    };
    let (mut next, mut count, mut length) = (0_u64, 0, 1);
    while length <= LENGTH_MAX {
        code.starts[length] = top_bits(next);
        code.offsets[length] = count;
        let mut symbol = 0_u16;
        while symbol <= END {
            if LENGTHS[symbol as usize] as usize == length {
                code.codes[symbol as usize] = top_bits(next);
                code.symbols[count] = symbol;
                count += 1;
                next += 1 << (32 - length);
            }
            symbol += 1;
        }
        code.ends[length] = next;
        length += 1;
    }
    code
}

const fn short() -> [(u8, u8); 256] {
    let mut short = [(0, 0); 256];
    let mut symbol = 0_u8;
    loop {
        let length = LENGTHS[symbol as usize];
        if length <= 8 {
            let first = (CODE_CONST.codes[symbol as usize] >> 24) as usize;
            let mut below = 0;
            while below < 1 << (8 - length) {
                short[first + below] = (symbol, length);
                below += 1;
            }
        }
        if symbol == u8::MAX {
            return short;
        }
        symbol += 1;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "codes are below 2³²")]
const fn top_bits(code: u64) -> u32 {
    code as u32
}

/// The length of `text` once encoded, in bytes.
pub(crate) fn encoded_bytes(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|byte| usize::from(LENGTHS[usize::from(*byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends `text`, encoded.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    // Bits that are not written yet are at the top.
    let (mut bits, mut count) = (0_u64, 0_u32);
    for byte in text {
        let symbol = usize::from(*byte);
        bits |= u64::from(CODE.codes[symbol]) << 32 >> count;
        count += u32::from(LENGTHS[symbol]);
        while count >= 8 {
            out.push(bits.to_be_bytes()[0]);
            bits <<= 8;
            count -= 8;
        }
    }
    if count > 0 {
        // The rest is filled with the beginning of the end's code: ones.
        out.push(bits.to_be_bytes()[0] | 0xff >> count);
    }
}

/// Appends the decoded text of `coded`. At most 8 bytes for every 5.
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let mut rest = coded.iter();
    // Bits that are not decoded yet are at the top; zeros follow.
    let (mut bits, mut count) = (0_u64, 0_u32);
    loop {
        while count <= 56 {
            let Some(byte) = rest.next() else { break };
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        if count < 8 && bits.leading_ones() == count {
            // Nothing is left but what fills the last byte.
            return Ok(());
        }
        let (symbol, length) = SHORT[usize::from(bits.to_be_bytes()[0])];
        let (symbol, length) = match length {
            0 => decode_long(bits)?,
            _ => (symbol, u32::from(length)),
        };
        if length > count {
            return Err(HpackError::Huffman);
        }
        out.push(symbol);
        bits <<= length;
        count -= length;
    }
}

/// A code of more than 8 bits, and its length.
fn decode_long(bits: u64) -> Result<(u8, u32), HpackError> {
    let window = bits >> 32;
    let shorter = CODE.ends[9..].iter().take_while(|end| window >= **end);
    let length = 9 + shorter.count();
    let start = CODE.starts.get(length).ok_or(HpackError::Huffman)?;
    let above = (window - u64::from(*start)) >> (32 - length);
    let place = usize::try_from(above).map_err(|_| HpackError::Huffman)? + CODE.offsets[length];
    let symbol = u8::try_from(CODE.symbols[place]).map_err(|_| HpackError::Huffman)?;
    let length = u32::try_from(length).map_err(|_| HpackError::Huffman)?;
    Ok((symbol, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_give_the_codes_of_the_appendix() {
        for (symbol, code) in [
            (0, 0x1ff8),
            (1, 0x7f_ffd8),
            (10, 0x3fff_fffc),
            (usize::from(b' '), 0x14),
            (usize::from(b'0'), 0),
            (usize::from(b'a'), 3),
            (usize::from(b'\\'), 0x7_fff0),
            (usize::from(b'~'), 0x1ffd),
            (127, 0xfff_fffc),
            (156, 0x3f_ffd9),
            (199, 0x1ff_ffec),
            (207, 0x1ff_ffed),
            (220, 0xfff_fffd),
            (239, 0x7f_fff4),
            (249, 0xfff_fffe),
            (254, 0x7ff_fff0),
            (255, 0x3ff_ffee),
            (256, 0x3fff_ffff),
        ] {
            let low = CODE.codes[symbol] >> (32 - LENGTHS[symbol]);
            assert_eq!(low, code, "symbol {symbol}");
        }
        assert_eq!(CODE.ends[LENGTH_MAX], 1 << 32, "the code has holes");
    }

    #[test]
    fn what_no_encoder_writes_is_refused() {
        for coded in [
            &[0xff][..],               // eight bits that fill
            &[0xfc, 0xff],             // and after a symbol
            &[0xff, 0xff, 0xff, 0xff], // the end itself
            &[0x18],                   // filled with zeros
            &[0xfe],                   // half a code
        ] {
            let mut out = Vec::new();
            assert_eq!(
                decode(coded, &mut out),
                Err(HpackError::Huffman),
                "{coded:x?}"
            );
        }
        let mut out = Vec::new();
        assert_eq!(decode(&[], &mut out), Ok(()));
    }
}
