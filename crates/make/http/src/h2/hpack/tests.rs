use proptest::prelude::*;

use super::*;
use crate::h2::fields::FieldList;

type Text = &'static str;

const LIST_BYTES_MAX: usize = 64 << 10;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let pairs = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]);
    pairs.map(|byte| u8::try_from(byte).unwrap()).collect()
}

fn owned(list: &FieldList) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    list.fields()
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

const REQUESTS: [&[(Text, Text)]; 3] = [
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

const RESPONSES: [&[(Text, Text)]; 3] = [
    &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        ("location", "https://www.example.com"),
        ("content-encoding", "gzip"),
        (
            "set-cookie",
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ),
    ],
];

/// The sequences of RFC 7541, C.3 to C.6, and the size of their tables.
#[test]
fn the_examples_of_the_appendix_are_read_and_written() {
    let plain_requests = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded_requests = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    let plain_responses = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 \
         6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d \
         54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 \
         5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e \
         3d31",
    ];
    let coded_responses = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
         77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f \
         9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    for (lists, blocks, table_bytes, is_coded) in [
        (REQUESTS, plain_requests, 4096, false),
        (REQUESTS, coded_requests, 4096, true),
        (RESPONSES, plain_responses, 256, false),
        (RESPONSES, coded_responses, 256, true),
    ] {
        let mut decoder = Decoder::new(LIST_BYTES_MAX);
        let mut encoder = Encoder::new(table_bytes);
        // The examples begin with that size.
        let (mut list, mut announcement) = (FieldList::new(), Vec::new());
        encoder.encode([], &mut announcement);
        decoder.decode(&announcement, &mut list).unwrap();
        for (fields, block) in lists.iter().zip(blocks) {
            let block = bytes(block);
            decoder.decode(&block, &mut list).unwrap();
            let expected: Vec<_> = fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            assert_eq!(owned(&list), expected);
            if is_coded {
                let mut out = Vec::new();
                let pairs = fields
                    .iter()
                    .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
                encoder.encode(pairs, &mut out);
                // Here a string is coded only where that makes it shorter.
                let tie = (bytes("83 640e ff"), bytes("03 3330 37"));
                let expected = match block.strip_prefix(&[0x48][..]) {
                    Some(rest) if rest.starts_with(&tie.0) => {
                        [&[0x48], &tie.1[..], &rest[4..]].concat()
                    }
                    _ => block,
                };
                assert_eq!(out, expected, "{out:x?}");
            }
        }
    }
}

/// RFC 7541, C.2.
#[test]
fn single_fields_are_read_as_in_the_appendix() {
    for (block, name, value) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key",
            "custom-header",
        ),
        (
            "040c 2f73 616d 706c 652f 7061 7468",
            ":path",
            "/sample/path",
        ),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            "password",
            "secret",
        ),
        ("82", ":method", "GET"),
    ] {
        let mut list = FieldList::new();
        let mut decoder = Decoder::new(LIST_BYTES_MAX);
        decoder.decode(&bytes(block), &mut list).unwrap();
        assert_eq!(owned(&list), [(name.to_owned(), value.to_owned())]);
        assert_eq!(list.fields().value(name), Some(value.as_bytes()));
    }
}

#[test]
fn blocks_that_mean_nothing_are_refused() {
    for (block, error) in [
        ("80", HpackError::Index { index: 0 }),
        ("be", HpackError::Index { index: 62 }),
        ("7f 00", HpackError::Index { index: 63 }),
        ("ff ffffffff 7f", HpackError::IntegerTooLarge),
        (
            "3f e2 1f",
            HpackError::TableSize {
                bytes: 4097,
                bytes_max: 4096,
            },
        ),
        ("82 20", HpackError::TableSizePosition),
        ("40", HpackError::Truncated),
        ("40 01", HpackError::Truncated),
        ("40 01 61", HpackError::Truncated),
        ("40 01 61 02 61", HpackError::Truncated),
        ("00 81 ff 00", HpackError::Huffman),
    ] {
        let mut decoder = Decoder::new(LIST_BYTES_MAX);
        let decoded = decoder.decode(&bytes(block), &mut FieldList::new());
        assert_eq!(decoded, Err(error), "{block}");
    }
}

#[test]
fn lists_beyond_the_limit_are_read_but_not_kept() {
    let (mut decoder, mut encoder) = (Decoder::new(100), Encoder::new(4096));
    let (mut list, mut out) = (FieldList::new(), Vec::new());
    // The second one counts 32 + 5 + 50 and goes beyond.
    let value = [b'v'; 50];
    encoder.encode(
        [(&b"short"[..], &b"x"[..]), (b"large", &value), (b"b", b"c")],
        &mut out,
    );
    decoder.decode(&out, &mut list).unwrap();
    assert!(list.is_overflowed());
    assert_eq!(list.fields().len(), 1);
    // The table has all three: both sides still agree.
    out.clear();
    encoder.encode([(&b"large"[..], &value[..])], &mut out);
    assert_eq!(out, [0x80 | 63]);
    decoder.decode(&out, &mut list).unwrap();
    assert!(!list.is_overflowed());
    assert_eq!(list.fields().value("large"), Some(&value[..]));
}

#[test]
fn a_bomb_of_references_stays_small() {
    let (mut decoder, mut list) = (Decoder::new(1 << 16), FieldList::new());
    // One field of 4000 bytes, then 60,000 references to it.
    let mut block = bytes("40 01 61 7f a1 1e");
    block.resize(block.len() + 4000, b'v');
    block.resize(block.len() + 60_000, 0x80 | 62);
    decoder.decode(&block, &mut list).unwrap();
    assert!(list.is_overflowed());
    assert!(list.fields().bytes_len() <= 1 << 16);
}

fn any_field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let names: Vec<&[u8]> = vec![
        b":status",
        b":path",
        b"date",
        b"x",
        b"custom-key",
        b"cookie",
    ];
    let values: Vec<&[u8]> = vec![b"200", b"/", b"", b"a", b"gzip, deflate"];
    let name = prop_oneof![
        4 => prop::sample::select(names).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..20),
    ];
    let value = prop_oneof![
        2 => prop::sample::select(values).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..100),
        1 => "[ -~]{0,40}".prop_map(String::into_bytes),
    ];
    (name, value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn for_all_lists_and_tables_what_is_encoded_is_decoded(
        steps in prop::collection::vec(
            (prop::collection::vec(any_field(), 0..10), prop::option::of(0_usize..400)), 1..10),
        first_bytes in prop_oneof![Just(0_usize), Just(4096), 0_usize..400],
    ) {
        let mut encoder = Encoder::new(first_bytes);
        let (mut decoder, mut list) = (Decoder::new(LIST_BYTES_MAX), FieldList::new());
        for (fields, resized) in steps {
            if let Some(table_bytes) = resized {
                encoder.set_table_bytes(table_bytes);
                encoder.set_table_bytes(table_bytes.max(100));
            }
            let mut out = Vec::new();
            let pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
            encoder.encode(pairs.clone(), &mut out);
            decoder.decode(&out, &mut list).unwrap();
            prop_assert!(list.fields().iter().eq(pairs));
            out.clear();
            for (name, value) in &fields {
                write_literal(name, value, &mut out);
            }
            decoder.decode(&out, &mut list).unwrap();
            let pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
            prop_assert!(list.fields().iter().eq(pairs));
        }
    }

    #[test]
    fn for_all_bytes_decoding_ends_within_its_limits(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6),
        bytes_max in 0_usize..2_000,
    ) {
        let (mut decoder, mut list) = (Decoder::new(bytes_max), FieldList::new());
        for block in blocks {
            let decoded = decoder.decode(&block, &mut list);
            prop_assert!(list.fields().bytes_len() <= bytes_max.max(8 * block.len() / 5 + 4096));
            if decoded.is_err() {
                break;
            }
        }
    }
}
