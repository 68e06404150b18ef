//! Integers of QUIC (RFC 9000, 16).

/// The largest integer.
pub(super) const MAX: u64 = (1 << 62) - 1;

/// The integer at the beginning of `bytes`, and its length; `None` where it is cut.
pub(super) fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1_usize << (first >> 6);
    let coded = bytes.get(..length)?;
    let value = coded[1..]
        .iter()
        .fold(u64::from(first & 0x3f), |value, byte| {
            value << 8 | u64::from(*byte)
        });
    Some((value, length))
}

/// Appends `value`, which is at most [`MAX`], in as few bytes as it takes.
pub(super) fn write(value: u64, out: &mut Vec<u8>) {
    let bytes = value.min(MAX).to_be_bytes();
    let (length, mark) = match value {
        0..0x40 => (1, 0),
        0x40..0x4000 => (2, 0x40),
        0x4000..0x4000_0000 => (4, 0x80),
        _ => (8, 0xc0),
    };
    let start = out.len();
    out.extend_from_slice(&bytes[bytes.len() - length..]);
    out[start] |= mark;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc_read_and_write() {
        for (value, bytes) in [
            (
                151_288_809_941_952_652,
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
            ),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15_293, &[0x7b, 0xbd]),
            (37, &[0x25]),
        ] {
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(read(bytes), Some((value, bytes.len())));
        }
        // Longer than it would have to be.
        assert_eq!(read(&[0x40, 0x25]), Some((37, 2)));
    }

    proptest! {
        #[test]
        fn for_all_integers_what_is_written_reads_and_no_part_of_it(value in 0..=MAX) {
            let mut out = Vec::new();
            write(value, &mut out);
            prop_assert_eq!(read(&out), Some((value, out.len())));
            for cut in 0..out.len() {
                prop_assert_eq!(read(&out[..cut]), None);
            }
        }
    }
}
