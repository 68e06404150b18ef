use super::*;

fn check_response(text: &str, expected: &[Seen]) {
    check::<ResponseParser>(text.as_bytes(), expected);
}

#[test]
fn bodies_are_framed_by_their_heads() {
    for (text, expected) in [
        ("", vec![]),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            vec![head("200 5B"), body("hello"), Seen::End],
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            vec![head("200 0B"), Seen::End],
        ),
        (
            "HTTP/1.1 200\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
            vec![head("200 1B"), body("x"), Seen::End],
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nuntil the end",
            vec![head("200 close"), body("until the end"), Seen::End],
        ),
        (
            "HTTP/1.0 200 OK\r\n\r\n",
            vec![head("200 close"), Seen::End],
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n\
             5;a=b\r\nhello\r\n0A \r\n, and more\r\n00\r\nTrailer: x\r\n\r\n",
            vec![head("200"), body("hello, and more"), Seen::End],
        ),
    ] {
        check_response(text, &expected);
    }
}

#[test]
fn statuses_without_a_body_have_none() {
    for status in ["204", "304"] {
        let text = format!("HTTP/1.1 {status} x\r\nContent-Length: 7\r\n\r\n");
        let expected = [head(&format!("{status} 7B")), Seen::End];
        check_response(&text, &expected);
        let text = format!("HTTP/1.1 {status} x\r\n\r\n");
        check_response(&text, &[head(status), Seen::End]);
    }
}

#[test]
fn answers_to_head_have_no_body_for_any_length() {
    let text = b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n\
                 HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                 HTTP/1.1 200 OK\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let (mut parser, mut read, mut seen) = (ResponseParser::new(), 0, Vec::new());
    parser.answers_head();
    while let (taken, Some(event)) = parser.advance(&text[read..]).unwrap() {
        read += taken;
        seen.push(seen_response(event));
        if seen.len() < 6 && matches!(event, H1ResponseEvent::End) {
            parser.answers_head();
        }
    }
    let end = Seen::End;
    let expected = [
        head("200 7B"),
        end.clone(),
        head("200"),
        end.clone(),
        head("200"),
        end.clone(),
        head("200 1B"),
        body("x"),
        end,
    ];
    assert_eq!(seen, expected);
}

#[test]
fn headers_can_be_read_and_are_measured() {
    let text = b"HTTP/1.1 100 Continue\r\nno: no\r\n\r\n\
                 HTTP/1.1 200 OK\r\nX-a:  b \r\nContent-Length: 0\r\n\r\n";
    for cut in 0..text.len() {
        let (mut parser, mut headers) = (ResponseParser::new(), Vec::new());
        let mut read = |name: &str, value: &[u8]| headers.push((name.to_owned(), value.to_vec()));
        let (_, event) = parser.advance_reading(&text[..cut], &mut read).unwrap();
        assert_eq!(event, None);
        let (_, event) = parser.advance_reading(&text[cut..], &mut read).unwrap();
        let Some(H1ResponseEvent::Head(head)) = event else {
            panic!("{event:?}");
        };
        assert_eq!(head.header_bytes, ":status200X-abContent-Length0".len());
        let expected = [("X-a", b"b"), ("Content-Length", b"0")];
        assert_eq!(
            headers,
            expected.map(|(name, value)| (name.to_owned(), value.to_vec()))
        );
    }
}

#[test]
fn responses_follow_each_other_and_interim_ones_are_passed_over() {
    check_response(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\
         \r\nHTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n\
         HTTP/1.1 429 x\r\nContent-Length: 0\r\nConnection: Keep-Alive, Close\r\n\r\n\r\n",
        &[
            head("200 2B"),
            body("ok"),
            Seen::End,
            head("503 0B"),
            Seen::End,
            head("429 0B close"),
            Seen::End,
        ],
    );
}

#[test]
fn a_flood_of_interim_responses_is_refused() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let (mut parser, last) = (ResponseParser::new(), "HTTP/1.1 204 x\r\n\r\n");
    // The limit is of each answer.
    for _ in 0..2 {
        let text = interim.repeat(100) + last;
        let (_, event) = parser.advance(text.as_bytes()).unwrap();
        assert!(matches!(event, Some(H1ResponseEvent::Head(_))), "{event:?}");
        parser.advance(b"").unwrap();
    }
    let text = interim.repeat(101);
    let flood = parser.advance(text.as_bytes());
    assert_eq!(flood, Err(ParseError::InterimFlood));
}

#[test]
fn old_connections_stay_open_only_with_keep_alive() {
    for (connection, expected) in [
        ("", "200 0B close"),
        ("Connection: keep-alive\r\n", "200 0B"),
    ] {
        let text = format!("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n{connection}\r\n");
        check_response(&text, &[head(expected), Seen::End]);
    }
}

#[test]
fn what_cannot_be_framed_is_refused() {
    use ParseError::{
        BareLineFeed, BothLengths, ContentLength, ContentLengthsDiffer, Malformed, OtherProtocol,
        TransferEncoding, Truncated, Upgrade,
    };
    let header = |line: &str| format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n");
    for (text, error) in [
        ("HTTP/1.1 200 OK\n\n".to_owned(), BareLineFeed),
        (
            "\u{15}\u{3}\u{3}\0\u{2}\u{2}F".to_owned(),
            OtherProtocol { protocol: "TLS" },
        ),
        (
            "\0\0\u{12}\u{4}\0".to_owned(),
            OtherProtocol { protocol: "HTTP/2" },
        ),
        ("garbage\r\n\r\n".to_owned(), Malformed { part: "version" }),
        (
            "HTTP/1.1 2x0\r\n\r\n".to_owned(),
            Malformed { part: "status" },
        ),
        (
            "HTTP/1.1 099\r\n\r\n".to_owned(),
            Malformed { part: "status" },
        ),
        ("HTTP/1.1 101 x\r\n\r\n".to_owned(), Upgrade),
        ("HTTP/1.1 200 OK\r\n".to_owned(), Truncated),
        (
            header("a b: c"),
            Malformed {
                part: "header name",
            },
        ),
        (
            header("a: b\0"),
            Malformed {
                part: "header value",
            },
        ),
        (header("Content-Length: -1"), ContentLength),
        (header("Content-Length: +1"), ContentLength),
        (header("Content-Length:"), ContentLength),
        (header("Content-Length: 5, 5"), ContentLength),
        (
            header("Content-Length: 18446744073709551616"),
            ContentLength,
        ),
        (
            header("Content-Length: 1\r\nContent-Length: 2"),
            ContentLengthsDiffer,
        ),
        (header("Transfer-Encoding: gzip, chunked"), TransferEncoding),
        (
            header("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            TransferEncoding,
        ),
        (
            header("Transfer-Encoding: chunked\r\nContent-Length: 1"),
            BothLengths,
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            TransferEncoding,
        ),
    ] {
        check_response(&text, &[Seen::Failed(error)]);
    }
    check_response(
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        &[head("200 5B"), body("hell"), Seen::Failed(Truncated)],
    );
}

#[test]
fn malformed_chunks_are_refused() {
    for chunk in [
        "\r\n",
        "g\r\n",
        ";\r\n",
        "1\n",
        "1;\n",
        "-1\r\n",
        "00000000000000001\r\n",
    ] {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}");
        check_response(&text, &[head("200"), Seen::Failed(ParseError::Chunk)]);
    }
    for after in ["x\r\n", "\n", "\rx"] {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx{after}");
        let expected = [head("200"), body("x"), Seen::Failed(ParseError::Chunk)];
        check_response(&text, &expected);
    }
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: b\n\r\n";
    check_response(text, &[head("200"), Seen::Failed(ParseError::Chunk)]);
}

#[test]
fn everything_has_a_limit() {
    let value = "v".repeat(64 << 10);
    let text = format!("HTTP/1.1 200 OK\r\na: {value}\r\n\r\n");
    check_response(&text, &[Seen::Failed(ParseError::HeadTooLarge)]);
    let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101));
    check_response(&text, &[Seen::Failed(ParseError::TooManyHeaders)]);
    let lines = "a: b\r\n".repeat(99);
    let text = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n");
    check_response(&text, &[head("200 0B"), Seen::End]);
    for overhead in [format!("1;{value}"), format!("0\r\na:{value}")] {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{overhead}");
        check_response(
            &text,
            &[head("200"), Seen::Failed(ParseError::ChunkOverhead)],
        );
    }
}
