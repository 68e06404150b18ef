//! Snappy's block format, of literals alone: pages are small and rarely sent, so compressing them
//! would cost more than it saves. Every reader takes it.

use stillwell_http::protobuf::write_varint;

/// The longest literal with a length of two bytes.
const LITERAL_MAX: usize = 1 << 16;

/// `bytes` as one block.
pub(crate) fn block(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    write_varint(bytes.len() as u64, &mut out);
    for literal in bytes.chunks(LITERAL_MAX) {
        // Two bytes of length less one follow the tag.
        out.push(61 << 2);
        let length = u16::try_from(literal.len() - 1).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(literal);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_lengths_the_usual_reader_gives_it_back(length in 0_usize..200_000) {
            let bytes: Vec<u8> = (0..=250).cycle().take(length).collect();
            let read = snap::raw::Decoder::new().decompress_vec(&block(&bytes));
            prop_assert_eq!(read.unwrap(), bytes);
        }
    }

    #[test]
    fn a_literal_of_the_longest_length_has_its_end() {
        for length in [0, 1, LITERAL_MAX - 1, LITERAL_MAX, LITERAL_MAX + 1] {
            let bytes = vec![7; length];
            let read = snap::raw::Decoder::new().decompress_vec(&block(&bytes));
            assert_eq!(read.unwrap(), bytes);
        }
    }
}
