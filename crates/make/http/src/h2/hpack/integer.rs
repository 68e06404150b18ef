//! Integers (RFC 7541, 5.1).

use super::HpackError;

/// Reads the integer whose first `prefix_bits` are at the end of the first byte of `input`,
/// which moves past it. At most 28 bits more are read.
pub(crate) fn read(input: &mut &[u8], prefix_bits: u8) -> Result<usize, HpackError> {
    let (first, mut rest) = input.split_first().ok_or(HpackError::Truncated)?;
    let prefix_max = 0xff_u8 >> (8 - prefix_bits);
    let mut value = u32::from(first & prefix_max);
    if first & prefix_max == prefix_max {
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first().ok_or(HpackError::Truncated)?;
            rest = after;
            if shift > 21 {
                return Err(HpackError::IntegerTooLarge);
            }
            // Below 2²⁸ and a prefix.
            value += u32::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    usize::try_from(value).map_err(|_| HpackError::IntegerTooLarge)
}

/// Appends `value`; `pattern` are the bits of the first byte above the prefix.
pub(crate) fn write(value: usize, prefix_bits: u8, pattern: u8, out: &mut Vec<u8>) {
    let prefix_max = 0xff_u8 >> (8 - prefix_bits);
    match u8::try_from(value) {
        Ok(small) if small < prefix_max => out.push(pattern | small),
        _ => {
            out.push(pattern | prefix_max);
            let mut rest = value - usize::from(prefix_max);
            while rest >= 0x80 {
                out.push(0x80 | low_seven_bits(rest));
                rest >>= 7;
            }
            out.push(low_seven_bits(rest));
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits are left")]
const fn low_seven_bits(value: usize) -> u8 {
    (value & 0x7f) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_in_the_appendix() {
        for (value, prefix_bits, bytes) in [
            (10, 5, &[0x0a][..]),
            (1337, 5, &[0x1f, 0x9a, 0x0a]),
            (42, 8, &[0x2a]),
            (31, 5, &[0x1f, 0x00]),
            (0, 7, &[0]),
        ] {
            let mut out = Vec::new();
            write(value, prefix_bits, 0, &mut out);
            assert_eq!(out, bytes);
            let mut input = bytes;
            assert_eq!(read(&mut input, prefix_bits), Ok(value));
            assert!(input.is_empty());
        }
    }

    #[test]
    fn integers_that_never_end_are_refused() {
        for (bytes, error) in [
            (&[][..], HpackError::Truncated),
            (&[0x1f], HpackError::Truncated),
            (&[0x1f, 0x80], HpackError::Truncated),
            (
                &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x00],
                HpackError::IntegerTooLarge,
            ),
            (
                &[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff],
                HpackError::IntegerTooLarge,
            ),
        ] {
            let mut input = bytes;
            assert_eq!(read(&mut input, 5), Err(error), "{bytes:x?}");
        }
    }
}
