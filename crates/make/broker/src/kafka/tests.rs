use std::io::Read;

use proptest::prelude::*;

use super::*;

fn short(text: &str) -> ShortText {
    text.try_into().unwrap()
}

const ALL: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

fn unpack(compression: Compression, packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match compression {
        Compression::None => plain.extend_from_slice(packed),
        Compression::Gzip => {
            let mut decoder = flate2::read::GzDecoder::new(packed);
            decoder.read_to_end(&mut plain).unwrap();
        }
        Compression::Snappy => {
            let mut rest = packed
                .strip_prefix(b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01")
                .unwrap();
            while let Some((length, behind)) = rest.split_first_chunk() {
                let (block, after) = behind.split_at(u32::from_be_bytes(*length) as usize);
                plain.extend(snap::raw::Decoder::new().decompress_vec(block).unwrap());
                rest = after;
            }
        }
        Compression::Lz4 => {
            let mut decoder = lz4_flex::frame::FrameDecoder::new(packed);
            decoder.read_to_end(&mut plain).unwrap();
        }
        Compression::Zstd => plain = zstd::stream::decode_all(packed).unwrap(),
    }
    plain
}

/// A number as a record has it.
fn varint(bytes: &mut &[u8]) -> i64 {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return (number >> 1) as i64 ^ -((number & 1) as i64);
        }
    }
}

/// Checks the header of a batch and returns its messages.
fn messages(compression: Compression, batch: &[u8], now_ms: i64) -> Vec<Vec<u8>> {
    let mut cursor = Cursor::new(batch, "a test");
    assert_eq!(cursor.u64().unwrap(), 0);
    assert_eq!(usize::try_from(cursor.i32().unwrap()), Ok(batch.len() - 12));
    assert_eq!((cursor.i32().unwrap(), cursor.u8().unwrap()), (-1, 2));
    assert_eq!(cursor.u32().unwrap(), crc32c::crc32c(&batch[21..]));
    assert_eq!(cursor.i16().unwrap(), compression.number());
    let last = cursor.i32().unwrap();
    assert_eq!(cursor.u64().unwrap() as i64, now_ms);
    assert_eq!(cursor.u64().unwrap() as i64, now_ms);
    assert_eq!(cursor.take(14).unwrap(), [0xff; 14]);
    assert_eq!(cursor.i32().unwrap(), last + 1);
    let records = unpack(compression, cursor.rest());
    let mut rest = &records[..];
    let mut messages = Vec::new();
    for offset in 0..=last {
        let length = usize::try_from(varint(&mut rest)).unwrap();
        let (record, behind) = rest.split_at(length);
        rest = behind;
        let mut record = &record[1..];
        assert_eq!(varint(&mut record), 0);
        assert_eq!(varint(&mut record), i64::from(offset));
        assert_eq!(varint(&mut record), -1);
        let length = usize::try_from(varint(&mut record)).unwrap();
        messages.push(record[..length].to_vec());
        assert_eq!(record[length..], [0]);
    }
    assert!(rest.is_empty());
    messages
}

proptest! {
    #[test]
    fn for_all_messages_and_packings_a_batch_holds_them(
        sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..200),
        kind in 0_usize..5,
    ) {
        let compression = ALL[kind];
        let mut writer = BatchWriter::new(compression);
        for now_ms in [0, 1_700_000_000_000] {
            let mut out = Vec::new();
            writer.write(sent.iter().map(Vec::as_slice), now_ms, &mut out).unwrap();
            prop_assert_eq!(&messages(compression, &out, now_ms), &sent);
        }
    }

    #[test]
    fn for_all_bytes_readers_end(body: Vec<u8>) {
        // No body can make the parsers panic.
        let produced = read_produced(&body);
        prop_assert!(Metadata::read(&body).is_err() || produced.is_err());
        if let Ok(Some((response, used))) = read(&body) {
            prop_assert_eq!(response.body.len() + 8, used);
        }
        // Behind its length, and before other bytes, a body is a response if it has a correlation id.
        let mut framed = i32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
        framed.extend_from_slice(&body);
        framed.extend_from_slice(b"more");
        match read(&framed) {
            Ok(Some((response, used))) => {
                prop_assert_eq!(response.body, &body[4..]);
                prop_assert_eq!(used, 4 + body.len());
            }
            other => prop_assert!(body.len() < 4, "{other:?}"),
        }
    }
}

#[test]
fn a_request_is_as_kafka_reads_it() {
    let mut out = Vec::new();
    write_metadata(&short("logs"), true, 7, &mut out);
    assert_eq!(
        out,
        b"\0\0\0\x1e\0\x03\0\x04\0\0\0\x07\0\x09stillwell\0\0\0\x01\0\x04logs\x01"
    );
    out.clear();
    let producer = Producer::new(&short("t"), Acks::All, 1000);
    let written = producer.write(3, 8, &mut out, |out| {
        out.extend_from_slice(b"batch");
        Ok::<_, CompressionFailed>(())
    });
    written.unwrap();
    assert_eq!(
        out,
        b"\0\0\0\x33\0\0\0\x07\0\0\0\x08\0\x09stillwell\xff\xff\xff\xff\0\0\x03\xe8\
          \0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\x03\0\0\0\x05batch"
    );
    let failed = producer.write(3, 8, &mut out, |out| {
        out.push(1);
        Err("packing")
    });
    assert_eq!((failed, out.len()), (Err("packing"), 55));
}

/// Two brokers, and a topic whose third partition has no leader.
fn metadata() -> Vec<u8> {
    let mut body = 0_i32.to_be_bytes().to_vec();
    body.extend(2_i32.to_be_bytes());
    for (number, host) in [(1_i32, "a"), (2, "::1")] {
        body.extend(number.to_be_bytes());
        put_name(host, &mut body);
        body.extend(9092_i32.to_be_bytes());
        body.extend((-1_i16).to_be_bytes());
    }
    put_name("cluster", &mut body);
    body.extend(1_i32.to_be_bytes());
    body.extend(1_i32.to_be_bytes());
    body.extend(0_i16.to_be_bytes());
    put_name("logs", &mut body);
    body.push(0);
    body.extend(3_i32.to_be_bytes());
    for (code, partition, leader) in [(0_i16, 1_i32, 2_i32), (0, 0, 1), (5, 2, -1)] {
        body.extend(code.to_be_bytes());
        body.extend(partition.to_be_bytes());
        body.extend(leader.to_be_bytes());
        for _ in 0..2 {
            body.extend(1_i32.to_be_bytes());
            body.extend(leader.to_be_bytes());
        }
    }
    body
}

#[test]
fn leaders_are_known_from_metadata() {
    let body = metadata();
    let expected = Metadata {
        brokers: vec![(1, "a:9092".to_owned()), (2, "[::1]:9092".to_owned())],
        refusal: None,
        partitions: vec![(0, 1), (1, 2)],
    };
    assert_eq!(Metadata::read(&body), Ok(expected));
    for cut in 0..body.len() {
        assert!(Metadata::read(&body[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn the_result_of_a_batch_is_read() {
    let mut body = 1_i32.to_be_bytes().to_vec();
    put_name("t", &mut body);
    body.extend([0, 0, 0, 1, 0, 0, 0, 3, 0, 10]);
    body.extend([0; 28]);
    assert_eq!(read_produced(&body), Ok(Some(Refusal(10))));
    assert!(Refusal(10).is_client_error() && !Refusal(10).needs_metadata());
    assert!(!Refusal(6).is_client_error() && Refusal(6).needs_metadata());
    assert!(read_produced(&body[..8]).is_err());
}

#[test]
fn answers_are_read_once_they_are_whole() {
    let bytes = b"\0\0\0\x06\0\0\0\x02hi....";
    let response = Response {
        number: 2,
        body: b"hi",
    };
    assert_eq!(read(bytes), Ok(Some((response, 10))));
    for cut in 0..10 {
        assert_eq!(read(&bytes[..cut]), Ok(None), "cut at {cut}");
    }
    assert!(read(b"HTTP/1.1").is_err());
    assert!(read(&[0, 0, 0, 3]).is_err());
}
