use proptest::prelude::*;

use super::*;
use crate::{RequestTemplate, write_response};

/// Pieces of which messages are made, whole and broken.
const PIECES: [&[u8]; 32] = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 204 No\r\n",
    b"HTTP/1.1 100 C\r\n\r\n",
    b"HTTP/1.1 ",
    b"POST / HTTP/1.1\r\n",
    b"GET /a?b HTTP/1.0\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Content-Type: a\xff\r\n",
    b"Expect: 100-continue\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b"abc",
    b"3\r\nabc\r\n",
    b"a;x=y\r\n0123456789\r\n",
    b"0\r\n\r\n",
    b"0\r\nT: u\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"fffffffffffffffff\r\n",
    b": ",
    b" ",
    b"\0",
    b"\xff\xfe",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
];

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(&PIECES[..]).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop_oneof![
        4 => prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat()),
        1 => prop::collection::vec(any::<u8>(), 0..200),
    ]
}

fn any_headers() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec(("x-[a-z0-9-]{1,8}", "[!-~]([ -~]{0,20}[!-~])?"), 0..8)
}

fn as_pairs(headers: &[(String, String)]) -> Vec<(&str, &str)> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn for_all_bytes_and_cuts_the_events_are_the_same(
        bytes in any_bytes(),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let whole = read::<ResponseParser>(&bytes, &[]);
        prop_assert_eq!(read::<ResponseParser>(&bytes, &cuts), whole);
        let whole = read::<RequestParser>(&bytes, &[]);
        prop_assert_eq!(read::<RequestParser>(&bytes, &cuts), whole);
    }
}

proptest! {
    #[test]
    fn for_all_requests_what_is_written_is_read(
        method in "[A-Z]{1,7}",
        path in "/[!-~]{0,30}",
        headers in any_headers(),
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..5),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        prop_assume!(method != "CONNECT");
        let template = RequestTemplate::new(&method, &path, "h:1", &as_pairs(&headers)).unwrap();
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for body in &bodies {
            template.write_head(body.len() as u64, &mut bytes);
            bytes.extend_from_slice(body);
            let no_body = ["GET", "HEAD", "OPTIONS", "DELETE", "TRACE"];
            let length = match body.len() {
                0 if no_body.contains(&method.as_str()) => String::new(),
                length => format!(" {length}B"),
            };
            expected.push(head(&format!("{method} {path}{length}")));
            if !body.is_empty() {
                expected.push(Seen::Body(body.clone()));
            }
            expected.push(Seen::End);
        }
        prop_assert_eq!(read::<RequestParser>(&bytes, &cuts), expected);

        let mut parser = RequestParser::new();
        let (_, event) = parser.advance(&bytes).unwrap();
        let Some(H1RequestEvent::Head(read)) = event else {
            return Err(TestCaseError::fail("no head"));
        };
        let sent = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let listed: Vec<_> = read.headers().skip(1).take(headers.len()).collect();
        prop_assert_eq!(listed, sent.collect::<Vec<_>>());
    }

    #[test]
    fn for_all_answers_what_is_written_is_read(
        status in (200_u16..600).prop_filter("has a body", |status| ![204, 304].contains(status)),
        headers in any_headers(),
        content in prop::collection::vec(any::<u8>(), 1..300),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let mut bytes = Vec::new();
        write_response(status, &as_pairs(&headers), &content, &mut bytes).unwrap();
        let length = content.len();
        let expected = [head(&format!("{status} {length}B")), Seen::Body(content), Seen::End];
        prop_assert_eq!(read::<ResponseParser>(&bytes, &cuts), expected);
    }

    #[test]
    fn for_all_chunkings_the_body_is_the_same(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..100), 1..10),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let mut chunks = Vec::new();
        for part in &parts {
            chunks.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            chunks.extend_from_slice(part);
            chunks.extend_from_slice(b"\r\n");
        }
        chunks.extend_from_slice(b"0\r\n\r\n");
        let request: &[u8] = b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n";
        let bytes = [request, chunks.as_slice()].concat();
        let expected = [head("POST / chunked"), Seen::Body(parts.concat()), Seen::End];
        prop_assert_eq!(read::<RequestParser>(&bytes, &cuts), expected);

        let response: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let bytes = [response, chunks.as_slice()].concat();
        let expected = [head("200"), Seen::Body(parts.concat()), Seen::End];
        prop_assert_eq!(read::<ResponseParser>(&bytes, &cuts), expected);
    }
}
