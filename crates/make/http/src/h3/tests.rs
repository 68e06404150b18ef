//! Both sides, and peers that break the rules.

use proptest::prelude::*;

use super::control::opening;
use super::frame::{kind, write_head};
use super::qpack::{self, QpackError};
use super::*;
use crate::h2::FieldList;

const SECTION_BYTES_MAX: usize = 16 << 10;

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    let fields = fields.iter();
    let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    qpack::encode(fields, &mut section);
    section
}

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_head(kind, payload.len(), &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(kind::HEADERS, &section(fields))
}

const OK: [(&str, &str); 1] = [(":status", "200")];

/// Events of a stream, in parts of this number of bytes.
fn answer(bytes: &[u8], is_head: bool, cut: usize) -> (Vec<String>, Result<(), H3MessageError>) {
    let mut http = H3Connection::client(SECTION_BYTES_MAX);
    let mut reader = H3MessageReader::response(is_head);
    let (mut events, mut body) = (Vec::new(), 0);
    for part in bytes.chunks(cut.max(1)) {
        let mut read = 0;
        loop {
            match http.read_response(&mut reader, &part[read..]) {
                Err(error) => return (events, Err(error)),
                Ok((taken, event)) => {
                    read += taken;
                    match event {
                        None => break,
                        Some(H3ResponseEvent::Body(bytes)) => body += bytes.len(),
                        Some(event) => events.push(format!("{event:?} behind {body}")),
                    }
                }
            }
        }
    }
    events.push(format!("{body} bytes"));
    (events, reader.finish())
}

#[test]
fn a_request_and_its_answer_arrive_as_they_were_laid_out() {
    let headers = [("X-One", " a "), ("te", "trailers"), ("x-long", "b\u{7e}c")];
    let request = H3RequestBlock::new("POST", "host:1", "/in?a=1", &headers).unwrap();
    let mut bytes = Vec::new();
    request.write(
        &[("traceparent", b"00-1")],
        BodyLength::Bytes(3),
        &mut bytes,
    );
    write_data_head(3, &mut bytes);
    bytes.extend_from_slice(b"abc");
    let mut server = H3Connection::server(SECTION_BYTES_MAX);
    let mut reader = H3MessageReader::request();
    let (taken, event) = server.read_request(&mut reader, &bytes).unwrap();
    let Some(H3RequestEvent::Head(head)) = event else {
        panic!("no head");
    };
    assert_eq!((head.method, head.path), ("POST", "/in?a=1"));
    assert_eq!((head.authority, head.scheme), ("host:1", "https"));
    assert_eq!(head.content_length, Some(3));
    assert_eq!(head.fields.value("x-one"), Some(b"a".as_slice()));
    assert_eq!(head.fields.value("x-long"), Some(b"b~c".as_slice()));
    assert_eq!(head.fields.value("traceparent"), Some(b"00-1".as_slice()));
    let (rest, event) = server.read_request(&mut reader, &bytes[taken..]).unwrap();
    assert_eq!(event, Some(H3RequestEvent::Body(b"abc")));
    assert_eq!(taken + rest, bytes.len());
    assert_eq!(reader.finish(), Ok(()));
}

/// Parses the head of a CONNECT request.|
fn connect_target(fields: &[(&str, &str)]) -> Result<String, H3MessageError> {
    let (mut server, bytes) = (H3Connection::server(SECTION_BYTES_MAX), head(fields));
    let mut reader = H3MessageReader::request();
    let (_, event) = server.read_request(&mut reader, &bytes)?;
    let Some(H3RequestEvent::Head(head)) = event else {
        panic!("no head");
    };
    let (scheme, path) = (head.scheme, head.path);
    Ok(format!(
        "{} {:?} {scheme}{}{path}",
        head.method, head.protocol, head.authority
    ))
}

#[test]
fn a_proxy_connects_and_both_sides_send_any_bytes() {
    let request = H3RequestBlock::connect("host:1", &[("X-One", "a")]).unwrap();
    let mut bytes = Vec::new();
    request.write(&[], BodyLength::Unknown, &mut bytes);
    let fields = [(":method", "CONNECT"), (":authority", "host:1")];
    assert_eq!(bytes, head(&[&fields[..], &[("x-one", "a")]].concat()));
    assert_eq!(connect_target(&fields).unwrap(), "CONNECT None host:1");
    assert!(request.is_connect());
    bytes.extend([data(b"ab"), data(b"c")].concat());
    let mut server = H3Connection::server(SECTION_BYTES_MAX);
    let (mut reader, mut read, mut body) = (H3MessageReader::request(), 0, Vec::new());
    while let (taken, Some(event)) = server.read_request(&mut reader, &bytes[read..]).unwrap() {
        read += taken;
        match event {
            H3RequestEvent::Head(head) => assert_eq!(head.content_length, None),
            H3RequestEvent::Body(part) => body.extend_from_slice(part),
            H3RequestEvent::Trailers(_) => panic!("trailers"),
        }
    }
    assert_eq!((body, reader.finish()), (b"abc".to_vec(), Ok(())));
    let mut bytes = Vec::new();
    let response = H3ResponseBlock::new(200, &[]).unwrap();
    response.write(&[], BodyLength::Unknown, &mut bytes);
    bytes.extend([data(b"abcd"), data(b""), data(b"e")].concat());
    let (events, ended) = answer(&bytes, false, 2);
    assert_eq!((events.len(), ended), (2, Ok(())));
    assert_eq!(events[1], "5 bytes");
}

/// RFC 9110, 9.3.6: a proxy that said `content-length: 0` led nothing on.
#[test]
fn a_head_has_no_effect_on_bytes_through_a_tunnel() {
    for (status, length, expected) in [
        ("200", "0", Ok(5)),
        ("204", "9", Ok(5)),
        ("299", "5", Ok(5)),
        ("404", "5", Ok(5)),
        ("404", "4", Err(())),
    ] {
        let mut bytes = head(&[(":status", status), ("content-length", length)]);
        bytes.extend([data(b"abcd"), data(b"e")].concat());
        let mut client = H3Connection::client(SECTION_BYTES_MAX);
        let (mut reader, mut read, mut count) = (H3MessageReader::led(), 0, 0);
        let event = loop {
            match client.read_response(&mut reader, &bytes[read..]) {
                Ok((taken, event)) => {
                    read += taken;
                    match event {
                        Some(H3ResponseEvent::Body(part)) => count += part.len(),
                        Some(_) => {}
                        None => break reader.finish().map(|()| count).map_err(drop),
                    }
                }
                Err(_) => break Err(()),
            }
        };
        assert_eq!(event, expected, "{status} {length}");
    }
}

#[test]
fn proxies_take_an_authority_and_nothing_else() {
    for authority in ["", "h:1\r\na: b", "user@h:1", "h:1/x"] {
        assert!(
            H3RequestBlock::connect(authority, &[]).is_err(),
            "{authority}"
        );
    }
    assert!(H3RequestBlock::connect("h:1", &[("content-length", "1")]).is_err());
    let fields = |more: &[(&'static str, &'static str)]| {
        [&[(":method", "CONNECT"), (":authority", "h:1")], more].concat()
    };
    for more in [
        &[(":path", "/")][..],
        &[(":scheme", "https")],
        &[(":scheme", "https"), (":path", "/")],
        // No peer was informed that it is taken.
        &[(":protocol", "connect-udp")],
        &[
            (":protocol", "connect-udp"),
            (":scheme", "https"),
            (":path", "/"),
        ],
    ] {
        let target = connect_target(&fields(more));
        let malformed = matches!(
            target,
            Err(H3MessageError::Stream(H3StreamFailure::Malformed { .. }))
        );
        assert!(malformed, "{more:?}: {target:?}");
    }
}

#[test]
fn heads_that_would_not_arrive_as_given_are_refused() {
    for (method, path, headers) in [
        ("GET", "/", vec![("connection", "close")]),
        ("GET", "/", vec![("content-length", "1")]),
        ("GET", "no path", vec![]),
        ("G T", "/", vec![]),
        ("GET", "/", vec![("a b", "c")]),
    ] {
        let block = H3RequestBlock::new(method, "host", path, &headers);
        assert!(block.is_err(), "{method} {path} {headers:?}");
    }
    assert!(H3ResponseBlock::new(199, &[]).is_err());
    assert!(H3ResponseBlock::new(600, &[]).is_err());
}

/// By which code an answer of these parts is refused, however it is cut.
#[track_caller]
fn refused(parts: &[&[u8]], is_head: bool) -> Option<H3ErrorCode> {
    let bytes = parts.concat();
    let code = |cut| {
        let (_, ended) = answer(&bytes, is_head, cut);
        ended.err().map(|error| match error {
            H3MessageError::Connection(error) => error.code(),
            H3MessageError::Stream(failure) => failure.code(),
        })
    };
    let whole = code(bytes.len());
    assert_eq!((code(1), code(3)), (whole, whole));
    whole
}

fn data(bytes: &[u8]) -> Vec<u8> {
    frame(kind::DATA, bytes)
}

#[test]
fn valid_answers_are_whole() {
    let (ok, early) = (head(&OK), head(&[(":status", "103")]));
    let long = head(&[(":status", "200"), ("content-length", "3")]);
    let empty = head(&[(":status", "304"), ("content-length", "9")]);
    let trailers = head(&[("x-sum", "1")]);
    let (unknown, unframed) = (frame(0x21, b"xx"), frame(0x40, b""));
    assert_eq!(refused(&[&ok], false), None);
    assert_eq!(refused(&[&long, &data(b"ab"), &data(b"c")], false), None);
    assert_eq!(refused(&[&early.repeat(100), &ok], false), None);
    assert_eq!(refused(&[&ok, &data(b"a"), &trailers], false), None);
    assert_eq!(refused(&[&unknown, &ok, &unframed], false), None);
    assert_eq!(refused(&[&long], true), None, "to HEAD");
    assert_eq!(refused(&[&empty], false), None);
}

#[test]
fn answers_are_refused_that_are_no_messages() {
    let (ok, early) = (head(&OK), head(&[(":status", "103")]));
    let long = head(&[(":status", "200"), ("content-length", "3")]);
    let malformed = Some(H3ErrorCode::MESSAGE_ERROR);
    assert_eq!(refused(&[], false), malformed);
    assert_eq!(refused(&[&early], false), malformed);
    assert_eq!(refused(&[&early.repeat(101), &ok], false), malformed);
    let switch = head(&[(":status", "101")]);
    assert_eq!(refused(&[&switch, &ok], false), malformed);
    assert_eq!(refused(&[&long, &data(b"a")], false), malformed);
    assert_eq!(refused(&[&long, &data(b"abcd")], false), malformed);
    assert_eq!(refused(&[&ok, &data(b"a")], true), malformed, "to HEAD");
    assert_eq!(refused(&[&head(&[("a", "b")])], false), malformed);
    let large = head(&[(":status", "200"), ("a", &"b".repeat(SECTION_BYTES_MAX))]);
    let too_large = Some(H3ErrorCode::EXCESSIVE_LOAD);
    assert_eq!(refused(&[&large], false), too_large);
}

#[test]
fn frames_end_a_connection_that_have_no_place() {
    let (ok, trailers) = (head(&OK), head(&[("x-sum", "1")]));
    let unexpected = Some(H3ErrorCode::FRAME_UNEXPECTED);
    assert_eq!(refused(&[&data(b"a"), &ok], false), unexpected);
    assert_eq!(refused(&[&ok, &trailers, &trailers], false), unexpected);
    let settings = frame(kind::SETTINGS, b"");
    assert_eq!(refused(&[&settings], false), unexpected);
    assert_eq!(refused(&[&frame(0x2, b"")], false), unexpected);
    let promise = frame(kind::PUSH_PROMISE, b"");
    assert_eq!(refused(&[&promise], false), Some(H3ErrorCode::ID_ERROR));
    let cut = Some(H3ErrorCode::FRAME_ERROR);
    assert_eq!(refused(&[&ok, &[0, 5, 1]], false), cut);
    assert_eq!(refused(&[&ok, &[0x40]], false), cut);
    let table = frame(kind::HEADERS, &[1, 0, 0x80]);
    let compressed = Some(H3ErrorCode::DECOMPRESSION_FAILED);
    assert_eq!(refused(&[&table], false), compressed);
}

proptest! {
    #[test]
    fn for_all_answers_and_cuts_the_events_are_the_same(
        parts in prop::collection::vec((0_u8..6, 0_usize..70), 0..8),
        cut in 1_usize..40,
    ) {
        let mut bytes = Vec::new();
        for (which, length) in parts {
            bytes.extend(match which {
                0 => head(&OK),
                1 => head(&[(":status", "100")]),
                2 => frame(kind::DATA, &vec![b'a'; length]),
                3 => head(&[("x-long", &"c".repeat(length))]),
                4 => frame(0x21, &vec![0; length]),
                _ => head(&[(":status", "200"), ("content-length", &length.to_string())]),
            });
        }
        let whole = answer(&bytes, false, bytes.len());
        let cut = answer(&bytes, false, cut);
        prop_assert_eq!(cut.1, whole.1);
        if whole.1.is_ok() {
            prop_assert_eq!(cut.0, whole.0);
        }
    }

    #[test]
    fn for_all_fields_what_is_encoded_decodes(
        fields in prop::collection::vec(("[a-z0-9-]{1,20}", prop::collection::vec(any::<u8>(), 0..40)), 0..10),
    ) {
        let mut section = Vec::new();
        let pairs = fields.iter();
        qpack::encode(pairs.map(|(name, value)| (name.as_bytes(), value.as_slice())), &mut section);
        let mut list = FieldList::new();
        qpack::decode(&section, 1 << 20, &mut list).unwrap();
        let decoded: Vec<_> = list.fields().iter().collect();
        let expected: Vec<_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_slice())).collect();
        prop_assert_eq!(decoded, expected);
        for cut in 0..section.len() {
            // A part is an error, or fewer fields: it never panics.
            let part = qpack::decode(&section[..cut], 1 << 20, &mut list);
            prop_assert!(part.is_err() || list.fields().len() < fields.len());
        }
    }

    #[test]
    fn for_all_bytes_a_section_reads_or_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut list = FieldList::new();
        if qpack::decode(&bytes, 100, &mut list).is_ok() {
            prop_assert!(list.fields().bytes_len() <= 100);
        }
    }
}

#[test]
fn sections_are_as_the_rfc_lays_them_out() {
    // RFC 9204, B.1: a literal with the name of an entry.
    let example = [
        0x00, 0x00, 0x51, 0x0b, 0x2f, 0x69, 0x6e, 0x64, 0x65, 0x78, 0x2e, 0x68, 0x74, 0x6d, 0x6c,
    ];
    let mut list = FieldList::new();
    qpack::decode(&example, 1000, &mut list).unwrap();
    let decoded: Vec<_> = list.fields().iter().collect();
    assert_eq!(decoded, [(b":path".as_slice(), b"/index.html".as_slice())]);
    // Entries by their numbers: the first, one of the middle and the last.
    assert_eq!(section(&[(":authority", "")]), [0, 0, 0xc0]);
    assert_eq!(section(&[(":method", "GET")]), [0, 0, 0xd1]);
    assert_eq!(
        section(&[("x-frame-options", "sameorigin")]),
        [0, 0, 0xff, 35]
    );
    for (bytes, error) in [
        (&[][..], QpackError::Truncated),
        (&[0], QpackError::Truncated),
        (&[2, 0, 0xc0], QpackError::Dynamic),
        (&[0, 0x80, 0xc0], QpackError::Dynamic),
        (&[0, 0, 0x80], QpackError::Dynamic),
        (&[0, 0, 0x10], QpackError::Dynamic),
        (&[0, 0, 0x00, 0], QpackError::Dynamic),
        (&[0, 0, 0x40, 0], QpackError::Dynamic),
        (&[0, 0, 0xff, 36], QpackError::Index { index: 99 }),
        (&[0, 0, 0x51, 2, b'a'], QpackError::Truncated),
        (&[0, 0, 0x51, 0x81, 0xff], QpackError::Huffman),
    ] {
        assert_eq!(
            qpack::decode(bytes, 1000, &mut list),
            Err(error),
            "{bytes:x?}"
        );
    }
}

/// Results of unidirectional streams, in parts of `cut` bytes.
fn streams(mut http: H3Connection, all: &[&[u8]], cut: usize) -> Result<H3Connection, H3ErrorCode> {
    for bytes in all {
        let mut stream = UniStream::default();
        for part in bytes.chunks(cut) {
            http.read_uni(&mut stream, part)
                .map_err(|error| error.code())?;
        }
    }
    Ok(http)
}

/// By which code a client refuses this stream, however it is cut.
#[track_caller]
fn refused_uni(parts: &[&[u8]]) -> Option<H3ErrorCode> {
    let bytes = parts.concat();
    let code = |cut| streams(H3Connection::client(SECTION_BYTES_MAX), &[&bytes], cut).err();
    let whole = code(bytes.len());
    assert_eq!((code(1), code(2)), (whole, whole));
    whole
}

#[test]
fn control_streams_carry_only_what_is_permitted() {
    let settings = opening(1000);
    let (mut away, mut later) = (Vec::new(), Vec::new());
    write_go_away(8, &mut away);
    write_go_away(12, &mut later);
    let control = |part: &[u8]| refused_uni(&[&settings, part]);
    let of = |kind, payload: &[u8]| refused_uni(&[&settings, &frame(kind, payload)]);
    assert_eq!(control(&[]), None);
    assert_eq!(of(0x21, &[0; 100]), None);
    assert_eq!(control(&away), None);
    assert_eq!(
        control(&[away.clone(), later].concat()),
        Some(H3ErrorCode::ID_ERROR)
    );
    assert_eq!(of(kind::GOAWAY, &[5]), Some(H3ErrorCode::ID_ERROR));
    assert_eq!(of(kind::CANCEL_PUSH, &[0]), Some(H3ErrorCode::ID_ERROR));
    assert_eq!(of(kind::GOAWAY, &[0; 9]), Some(H3ErrorCode::FRAME_ERROR));
    assert_eq!(of(kind::GOAWAY, &[0, 0]), Some(H3ErrorCode::FRAME_ERROR));
    for (kind, payload) in [
        (kind::DATA, 0),
        (0x8, 0),
        (kind::MAX_PUSH_ID, 1),
        (kind::SETTINGS, 0),
    ] {
        let error = of(kind, &vec![1; payload]);
        assert_eq!(error, Some(H3ErrorCode::FRAME_UNEXPECTED), "{kind}");
    }
    assert_eq!(
        refused_uni(&[&[0], &away]),
        Some(H3ErrorCode::MISSING_SETTINGS)
    );
    let client = [settings.as_slice(), &away].concat();
    let client = streams(H3Connection::client(100), &[&client], 3).unwrap();
    assert_eq!(client.going_away(), Some(8));
    let max = [settings, frame(kind::MAX_PUSH_ID, &[1])].concat();
    assert!(streams(H3Connection::server(100), &[&max], 1).is_ok());
}

#[test]
fn settings_are_refused_that_cannot_be() {
    let of = |payload: &[u8]| refused_uni(&[&[0], &frame(kind::SETTINGS, payload)]);
    assert_eq!(of(&[6, 1, 7, 1]), None);
    assert_eq!(of(&[6, 1, 6, 1]), Some(H3ErrorCode::SETTINGS_ERROR));
    assert_eq!(of(&[2, 0]), Some(H3ErrorCode::SETTINGS_ERROR));
    assert_eq!(of(&[6]), Some(H3ErrorCode::FRAME_ERROR));
    assert_eq!(of(&[0x21; 5000]), Some(H3ErrorCode::EXCESSIVE_LOAD));
}

#[test]
fn other_streams_of_one_direction_carry_only_what_is_permitted() {
    let encoder = Some(H3ErrorCode::ENCODER_STREAM_ERROR);
    let decoder = Some(H3ErrorCode::DECODER_STREAM_ERROR);
    assert_eq!(refused_uni(&[&[1, 0]]), Some(H3ErrorCode::ID_ERROR));
    assert_eq!(refused_uni(&[&[2, 0x20]]), None);
    assert_eq!(refused_uni(&[&[2, 0x3f, 0x21]]), encoder);
    assert_eq!(refused_uni(&[&[2, 0xc0, 0]]), encoder);
    assert_eq!(refused_uni(&[&[3, 0x40, 0x7f, 1]]), None);
    assert_eq!(refused_uni(&[&[3, 0x80]]), decoder);
    assert_eq!(refused_uni(&[&[0x21, 1, 2, 3]]), None);
    let settings = opening(100);
    let twice = streams(H3Connection::client(100), &[&settings, &settings], 100);
    assert_eq!(twice.err(), Some(H3ErrorCode::STREAM_CREATION_ERROR));
    let pushed = streams(H3Connection::server(100), &[&[1]], 1);
    assert_eq!(pushed.err(), Some(H3ErrorCode::STREAM_CREATION_ERROR));
}

#[test]
fn streams_that_are_to_last_may_not_end() {
    let mut client = H3Connection::client(100);
    for (first, may_end) in [(0, false), (2, false), (3, false), (0x21, true)] {
        let mut stream = UniStream::default();
        let wanted = client.read_uni(&mut stream, &[first]).unwrap();
        assert_eq!(wanted, !may_end);
        assert_eq!(client.end_uni(&stream).is_ok(), may_end, "{first}");
    }
    assert!(client.end_uni(&UniStream::default()).is_ok());
}
