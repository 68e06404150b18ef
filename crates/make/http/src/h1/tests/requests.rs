use super::*;

fn check_request(text: &str, expected: &[Seen]) {
    check::<RequestParser>(text.as_bytes(), expected);
}

#[test]
fn requests_read_as_sent() {
    for (text, expected) in [
        ("", vec![]),
        ("\r\n\r\n", vec![]),
        (
            "GET /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n",
            vec![head("GET /a?b=c"), Seen::End],
        ),
        (
            "\r\nPOST / HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\n\
             CONTENT-ENCODING: gzip\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\nabc",
            vec![
                head("POST / 3B expects text/plain gzip"),
                body("abc"),
                Seen::End,
            ],
        ),
        (
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
             3\r\nabc\r\n0\r\n\r\n",
            vec![head("PUT / chunked close"), body("abc"), Seen::End],
        ),
        (
            "POST /1 HTTP/1.1\r\nContent-Length: 1\r\n\r\na\
             POST /2 HTTP/1.1\r\nContent-Length: 1\r\n\r\nb\
             GET /3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            vec![
                head("POST /1 1B"),
                body("a"),
                Seen::End,
                head("POST /2 1B"),
                body("b"),
                Seen::End,
                head("GET /3 close"),
                Seen::End,
            ],
        ),
    ] {
        check_request(text, &expected);
    }
}

#[test]
fn what_two_programs_could_read_differently_is_refused() {
    use ParseError::{
        BareLineFeed, BothLengths, ContentLength, ContentLengthsDiffer, HeaderNotText,
        HeaderRepeated, Malformed, TransferEncoding, Truncated,
    };
    let header = |line: &str| format!("POST / HTTP/1.1\r\n{line}\r\n\r\n");
    let name = Malformed {
        part: "header name",
    };
    for (text, error) in [
        ("<13>1 2024-01-01 a b\n".to_owned(), BareLineFeed),
        ("POST / HTTP/1.1\r\n\n".to_owned(), BareLineFeed),
        (
            "POST /\r\n\r\n".to_owned(),
            Malformed { part: "start line" },
        ),
        (
            "POST / HTTP/2.0\r\n\r\n".to_owned(),
            Malformed { part: "version" },
        ),
        ("POST / HT".to_owned(), Truncated),
        (
            header("Content-Length: 1\r\nTransfer-Encoding: chunked"),
            BothLengths,
        ),
        (
            header("Transfer-Encoding: chunked\r\nContent-Length: 1"),
            BothLengths,
        ),
        (
            header("Content-Length: 1\r\nContent-Length: 01x"),
            ContentLength,
        ),
        (
            header("Content-Length: 1\r\nContent-Length: 2"),
            ContentLengthsDiffer,
        ),
        (header("Transfer-Encoding: xchunked"), TransferEncoding),
        (
            header("Transfer-Encoding: chunked, identity"),
            TransferEncoding,
        ),
        (header("Content-Length : 1"), name),
        (header("a: b\r\n folded"), name),
        (
            header("Content-Encoding: a\r\nContent-Encoding: b"),
            HeaderRepeated {
                name: "content-encoding",
            },
        ),
    ] {
        check_request(&text, &[Seen::Failed(error)]);
    }
    check::<RequestParser>(
        b"POST / HTTP/1.1\r\nContent-Type: \xff\r\n\r\n",
        &[Seen::Failed(HeaderNotText {
            name: "content-type",
        })],
    );
}

#[test]
fn other_headers_can_be_looked_up_however_the_head_arrived() {
    let text = b"\r\nGET / HTTP/1.1\r\nHost: h:1\r\nX-Stamp:  a b \r\nEmpty:\r\n\r\n";
    for cut in 0..text.len() {
        let mut parser = RequestParser::new();
        let (consumed, event) = parser.advance(&text[..cut]).unwrap();
        assert_eq!((consumed, event), (cut, None));
        let (_, event) = parser.advance(&text[cut..]).unwrap();
        let Some(H1RequestEvent::Head(head)) = event else {
            panic!("{event:?}");
        };
        assert_eq!(head.header("x-stamp"), Some(b"a b".as_slice()));
        assert_eq!(head.header("HOST"), Some(b"h:1".as_slice()));
        assert_eq!(head.header("empty"), Some(b"".as_slice()));
        assert_eq!(head.header("absent"), None);
        assert_eq!(head.headers().count(), 3);
    }
}

#[test]
fn idle_is_between_requests_only() {
    let mut parser = RequestParser::new();
    assert!(parser.is_idle());
    parser.advance(b"GET / HTTP/1.1\r\n").unwrap();
    assert!(!parser.is_idle());
    parser.advance(b"\r\n").unwrap();
    assert!(!parser.is_idle());
    assert_eq!(parser.advance(b""), Ok((0, Some(H1RequestEvent::End))));
    assert!(parser.is_idle());
}
