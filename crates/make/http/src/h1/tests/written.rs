//! Written messages are read back, and cannot be read as anything else.

use stillwell_units::ByteSize;

use super::*;
use crate::{
    HeadError, OneShot, OneShotError, PreparedResponse, RequestTemplate, Response, Target,
    connect_head, write_response,
};

fn request(headers: &[(&str, &str)]) -> Result<RequestTemplate, HeadError> {
    RequestTemplate::new("POST", "/", "h", headers)
}

#[test]
fn a_request_head_is_appended_as_laid_out() {
    let template = RequestTemplate::new("POST", "/in?a", "h:81", &[("a-b", "c d")]).unwrap();
    let mut out = b"before".to_vec();
    template.write_head(0, &mut out);
    template.write_head(u64::MAX, &mut out);
    let head = |length| {
        format!("POST /in?a HTTP/1.1\r\nhost: h:81\r\na-b: c d\r\ncontent-length: {length}\r\n\r\n")
    };
    let expected = format!("before{}{}", head(0), head(u64::MAX));
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    assert_eq!(template.head_bytes_max(), head(u64::MAX).len());
}

#[test]
fn a_proxy_gets_the_host_and_its_port_and_nothing_else() {
    let head = connect_head("[::1]:443", &[("a-b", "c d")]).unwrap();
    let expected = "CONNECT [::1]:443 HTTP/1.1\r\nhost: [::1]:443\r\na-b: c d\r\n\r\n";
    assert_eq!(String::from_utf8(head).unwrap(), expected);
    for authority in ["", "h:1\r\na: b", "user@h:1", "h:1/x"] {
        assert!(connect_head(authority, &[]).is_err(), "{authority}");
    }
    assert!(connect_head("h:1", &[("host", "x")]).is_err());
}

#[test]
fn a_request_cannot_be_made_into_two() {
    for name in ["Content-Length", "transfer-encoding", "HOST"] {
        let error = request(&[(name, "1")]).unwrap_err();
        assert_eq!(
            error,
            HeadError::HeaderReserved {
                name: name.to_owned()
            }
        );
    }
    for name in ["", "a b", "a:", "a\r\nb", "ä"] {
        let error = request(&[(name, "1")]).unwrap_err();
        assert_eq!(
            error,
            HeadError::HeaderName {
                name: name.to_owned()
            }
        );
    }
    for value in ["a\r\nb: c", "a\n", "\0", "\x7f"] {
        let error = request(&[("a", value)]).unwrap_err();
        assert_eq!(
            error,
            HeadError::HeaderValue {
                name: "a".to_owned()
            }
        );
    }
    assert!(matches!(
        request(&[("a", "b"); 91]),
        Err(HeadError::TooManyHeaders { count: 91 })
    ));
    for (method, path, authority) in [
        ("", "/", "h"),
        ("A B", "/", "h"),
        ("CONNECT", "/", "h"),
        ("GET", "", "h"),
        ("GET", "a", "h"),
        ("GET", "/ HTTP/1.1\r\n", "h"),
        ("GET", "/", ""),
        ("GET", "/", "h\r\na: b"),
        ("GET", "/", "user@h"),
    ] {
        assert!(RequestTemplate::new(method, path, authority, &[]).is_err());
    }
}

#[test]
fn answers_read_back() {
    let close = [("connection", "close")];
    let mut out = Vec::new();
    write_response(200, &[], b"ok", &mut out).unwrap();
    write_response(204, &[], b"", &mut out).unwrap();
    write_response(599, &close, b"", &mut out).unwrap();
    let expected = [
        head("200 2B"),
        body("ok"),
        Seen::End,
        head("204"),
        Seen::End,
        head("599 0B close"),
        Seen::End,
    ];
    check::<ResponseParser>(&out, &expected);
    check::<ResponseParser>(super::super::CONTINUE, &[]);
    let prepared = PreparedResponse::new(200, &[], b"ok").unwrap();
    assert!(out.starts_with(prepared.bytes()));
    assert_eq!(
        prepared.head(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
    );
}

#[test]
fn a_refused_answer_leaves_nothing_behind() {
    let mut out = b"before".to_vec();
    for (status, headers, body) in [
        (200, [("a", "b\r\n")].as_slice(), ""),
        (200, &[("content-length", "1")], ""),
        (100, &[], ""),
        (600, &[], ""),
        (204, &[], "x"),
    ] {
        assert!(write_response(status, headers, body.as_bytes(), &mut out).is_err());
        assert_eq!(out, b"before");
    }
}

#[test]
fn one_question_gets_one_answer() {
    let target: Target = "http://[::1]:9090/metrics".parse().unwrap();
    let bytes = OneShot::request(&target, &[("accept", "text/plain")]).unwrap();
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "GET /metrics HTTP/1.1\r\nhost: [::1]:9090\r\nuser-agent: stillwell\r\n\
         accept-encoding: identity\r\nconnection: close\r\naccept: text/plain\r\n\r\n"
    );
    let ok = || Response {
        status: 200,
        body: b"hello".to_vec(),
    };
    let mut shot = OneShot::new(ByteSize::new(5));
    assert_eq!(
        shot.push(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"),
        Ok(None)
    );
    assert_eq!(shot.push(b"lo, and more"), Ok(Some(ok())));
    let mut shot = OneShot::new(ByteSize::new(5));
    assert_eq!(shot.push(b"HTTP/1.0 200 OK\r\n\r\nhello"), Ok(None));
    assert_eq!(shot.finish(), Ok(ok()));
}

#[test]
fn no_answer_has_its_reason() {
    let body_max = ByteSize::new(4);
    let too_large = OneShotError::BodyTooLarge { body_max };
    let mut shot = OneShot::new(body_max);
    assert_eq!(shot.push(b"HTTP/1.1 200 OK\r\n\r\nhello"), Err(too_large));
    let mut shot = OneShot::new(body_max);
    assert_eq!(
        shot.push(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"),
        Ok(None)
    );
    assert_eq!(
        shot.finish(),
        Err(OneShotError::Parse(ParseError::Truncated))
    );
    let shot = OneShot::new(body_max);
    assert_eq!(shot.finish(), Err(OneShotError::NoResponse));
    let mut shot = OneShot::new(body_max);
    let error = shot.push(b"SSH-2.0-x\r\n\r\n").unwrap_err();
    assert!(matches!(
        error,
        OneShotError::Parse(ParseError::Malformed { .. })
    ));
}
