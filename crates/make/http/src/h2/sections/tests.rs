use proptest::prelude::*;

use super::super::fields::FieldList;
use super::*;
use crate::h2::hpack::Encoder;

/// Header blocks by hand: what peers say that keep no table, keep one, or fill
/// it without using it.
fn blocks() -> Vec<Vec<u8>> {
    let literal = |first: &[u8], name: &str, value: &str| {
        let mut block = first.to_vec();
        for text in [name, value] {
            if !text.is_empty() {
                block.push(u8::try_from(text.len()).unwrap());
                block.extend_from_slice(text.as_bytes());
            }
        }
        block
    };
    let adds = |value: &str| literal(&[0x88, 0x76], "", value);
    vec![
        vec![0x88],
        adds("nginx"),
        adds("another"),
        // Larger than a table of 100 bytes, smaller than one of 4096.
        adds(&"v".repeat(100)),
        // Several at once.
        [adds("one"), literal(&[0x40], "name", "value")].concat(),
        // Not kept.
        literal(&[0x88, 0x00], "name", "value"),
        // The newest entry, and one that adds to it by its name.
        vec![0x88, 0xbe],
        literal(&[0x88, 0x7e], "", "again"),
        // An older one, which may not be there.
        vec![0x88, 0xc0],
        // A table of 100 bytes, of none, and of 4096 again.
        vec![0x3f, 69, 0x88],
        vec![0x20, 0x88],
        vec![0x3f, 0xe1, 0x1f, 0x88],
        // Broken off.
        vec![0x88, 0x76, 5, b'a'],
    ]
}

fn fields(sections: &HeaderBlocks) -> Vec<(Vec<u8>, Vec<u8>)> {
    let fields = sections.last.fields();
    let owned = fields
        .iter()
        .map(|(name, value)| (name.to_vec(), value.to_vec()));
    owned.collect()
}

proptest! {
    #[test]
    fn for_all_sequences_remembering_changes_nothing(
        runs in prop::collection::vec((0_usize..13, 1_usize..130), 1..12),
    ) {
        let blocks = blocks();
        let mut sections = HeaderBlocks::new(&Limits::default());
        let (mut decoder, mut list) = (Decoder::new(64 << 10), FieldList::new());
        for (block, times) in runs {
            for _ in 0..times {
                let expected = decoder.decode(&blocks[block], &mut list);
                let decoded = sections.decode(&blocks[block]);
                prop_assert_eq!(decoded, expected);
                if expected.is_err() {
                    return Ok(());
                }
                let plain = list.fields();
                let plain = plain.iter().map(|(name, value)| (name.to_vec(), value.to_vec()));
                prop_assert_eq!(fields(&sections), plain.collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn repeated_header_blocks_are_not_decoded_again() {
    let mut sections = HeaderBlocks::new(&Limits::default());
    let adds: &[u8] = &[0x88, 0x76, 5, b'n', b'g', b'i', b'n', b'x'];
    // 43 bytes an entry: the table is full of them after 96.
    for _ in 0..96 {
        assert!(!sections.is_remembered);
        sections.decode(adds).unwrap();
    }
    assert!(sections.is_remembered);
    sections.decode(&[0x89]).unwrap();
    sections.decode(adds).unwrap();
    assert!(!sections.is_remembered, "the table has changed since");

    let mut indexed = Vec::new();
    let mut encoder = Encoder::new(4096);
    let answer: [(&[u8], &[u8]); 2] = [(b":status", b"200"), (b"server", b"x")];
    for _ in 0..2 {
        indexed.clear();
        encoder.encode(answer, &mut indexed);
        sections.decode(&indexed).unwrap();
    }
    assert!(sections.is_remembered, "the table did not change");
}
