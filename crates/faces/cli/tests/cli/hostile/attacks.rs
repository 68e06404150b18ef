//! Bytes that no well-meaning client sends.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The preface of HTTP/2 and empty settings.
pub(super) const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// All of them, each with its name.
pub(super) fn attacks() -> Vec<(&'static str, Vec<u8>)> {
    [framing(), bodies(), frames()].concat()
}

/// Framing of HTTP/1.1, and none.
fn framing() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("nothing", Vec::new()),
        ("zeros", vec![0; 64 << 10]),
        ("random", garbage(64 << 10)),
        (
            "a hello of TLS",
            b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec(),
        ),
        ("half a head", b"POST / HTTP/1.1\r\nhost: a\r\nx-".to_vec()),
        (
            "a head of 1 MiB",
            [b"GET / HTTP/1.1\r\nx: ", "a".repeat(1 << 20).as_bytes()].concat(),
        ),
        (
            "a header without a name",
            b"GET / HTTP/1.1\r\n: a\r\n\r\n".to_vec(),
        ),
        ("a line of 64 KiB", "a".repeat(64 << 10).into_bytes()),
        (
            "two lengths",
            smuggled("content-length: 1\r\ncontent-length: 2"),
        ),
        (
            "a length and chunks",
            smuggled("content-length: 3\r\ntransfer-encoding: chunked"),
        ),
        (
            "chunks under another name",
            smuggled("transfer-encoding: xchunked"),
        ),
        (
            "chunks twice",
            smuggled("transfer-encoding: chunked, chunked"),
        ),
        ("a length that is negative", smuggled("content-length: -1")),
        (
            "a length of 2^63",
            smuggled("content-length: 9223372036854775808"),
        ),
        (
            "a length of 2^70",
            smuggled("content-length: 1180591620717411303424"),
        ),
        (
            "a chunk of 2^64",
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\na".to_vec(),
        ),
        (
            "a path out of the root",
            b"PUT /../../../etc/x HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\na".to_vec(),
        ),
        (
            "a tunnel",
            b"CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\nabc".to_vec(),
        ),
        (
            "a body that is cut",
            b"POST / HTTP/1.1\r\ncontent-length: 99\r\n\r\nabc".to_vec(),
        ),
    ]
}

/// Bodies of HTTP/1.1.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let json = "content-type: application/json";
    let proto = "content-type: application/x-protobuf";
    let empty = gzip(b"").repeat(50_000);
    vec![
        (
            "a bomb of gzip",
            post(
                "content-encoding: gzip",
                &gzip(&vec![0; 16 << 20]).repeat(20),
            ),
        ),
        (
            "gzip in gzip",
            post("content-encoding: gzip, gzip", &gzip(&empty)),
        ),
        ("many empty members", post("content-encoding: gzip", &empty)),
        ("an unknown coding", post("content-encoding: zebra", b"abc")),
        (
            "damaged zstd",
            post(
                "content-encoding: zstd",
                b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff",
            ),
        ),
        (
            "a block of snappy that lies",
            post("content-encoding: snappy", b"\xff\xff\xff\xff\x0f\0a"),
        ),
        ("deep JSON", post(json, &b"[".repeat(200_000))),
        (
            "damaged JSON",
            post(json, b"{\"event\": \"\\ud800\", \"time\": 1e999999}"),
        ),
        (
            "a long field of protobuf",
            post(proto, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ),
        ("deep protobuf", post(proto, &b"\x0a\x7f".repeat(50_000))),
    ]
}

/// Frames of HTTP/2.
fn frames() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (
            "garbage after the preface",
            [HTTP2.to_vec(), garbage(4096)].concat(),
        ),
        ("resets of HTTP/2", rapid_reset()),
        (
            "pings of HTTP/2",
            http2((0..20_000).map(|_| frame(6, 0, 0, &[0; 8]))),
        ),
        (
            "settings of HTTP/2",
            http2((0..20_000).map(|_| frame(4, 0, 0, &[]))),
        ),
        (
            "an endless head of HTTP/2",
            http2(
                std::iter::once(frame(1, 0, 1, CALL))
                    .chain((0..200).map(|_| frame(9, 0, 1, &[0x82; 4096]))),
            ),
        ),
        (
            "a frame that is too long",
            http2([frame(0, 0, 1, &[0; 20_000])]),
        ),
        ("a window of zero", http2([frame(8, 0, 0, &[0; 4])])),
        ("a message of 4 GiB", long_message()),
    ]
}

/// A request with this head and body.
fn post(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /services/collector/event HTTP/1.1\r\nhost: a\r\n{head}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// `frames` after the preface.
fn http2(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let frames: Vec<Vec<u8>> = frames.into_iter().collect();
    [HTTP2.to_vec(), frames.concat()].concat()
}

/// Fields of `POST /` over http to `a`, with the type of gRPC.
const CALL: &[u8] = b"\x83\x86\x84\x41\x01a\x5f\x10application/grpc";

/// Streams that are begun and reset at once.
fn rapid_reset() -> Vec<u8> {
    let stream = |number: u32| {
        let id = number * 2 + 1;
        [frame(1, 4, id, CALL), frame(3, 0, id, &[0, 0, 0, 8])].concat()
    };
    http2((0..2_000).map(stream))
}

/// A call whose message says that it has four gigabytes.
fn long_message() -> Vec<u8> {
    http2([
        frame(1, 4, 1, CALL),
        frame(0, 0, 1, &[0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]),
    ])
}

fn garbage(length: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let bytes = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    bytes.take(length).collect()
}

/// A request whose framing means two things.
fn smuggled(fields: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nhost: a\r\n{fields}\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /b HTTP/1.1\r\nhost: a\r\n\r\n").into_bytes()
}
