use super::*;
use crate::h2::{H2ErrorCode, H2ResponseBlock, TrailerBlock};

fn server() -> Server {
    Server::new(Limits::default())
}

fn ok() -> H2ResponseBlock {
    H2ResponseBlock::new(200, &[("server", "x")]).unwrap()
}

/// In whole and in single bytes.
fn check(wire: &Wire, expected: &[&str]) {
    let cuts: Vec<usize> = (0..wire.bytes.len()).collect();
    assert_eq!(
        events_of(&mut server(), &wire.bytes, &[]),
        expected,
        "whole"
    );
    assert_eq!(
        events_of(&mut server(), &wire.bytes, &cuts),
        expected,
        "cut"
    );
}

/// Events of a client with as many requests under way as `server` had, from the output of
/// the server.
fn answers(server: &mut Server, requests: usize) -> Vec<String> {
    let output = server.output().to_vec();
    server.sent(output.len());
    events_of(&mut client_with(requests), &output, &[])
}

#[test]
fn requests_are_reported_in_order() {
    let post = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "h:1"),
        (":path", "/a?b"),
        ("content-length", "3"),
    ];
    let wire = Wire::client()
        .get(1)
        .headers(3, &post, false)
        .data(3, b"ab", false)
        .get(5)
        .data(3, b"c", false)
        .headers(3, &[("t", "u")], true)
        .headers(7, &[(":method", "CONNECT"), (":authority", "h:2")], true);
    let expected = [
        "1 GET h/",
        "1 end",
        "3 POST h:1/a?b 3B",
        "3 body ab",
        "5 GET h/",
        "5 end",
        "3 body c",
        "3 end {\"t\": \"u\"}",
        "7 CONNECT h:2",
        "7 end",
    ];
    check(&wire, &expected);
}

#[test]
fn what_is_no_request_is_refused_and_counted() {
    let with = |name, value| [&GET[..], &[(name, value)]].concat();
    for fields in [
        GET[1..].to_vec(),
        [&GET[..1], &GET[2..]].concat(),
        [&GET[..2], &GET[3..]].concat(),
        with(":path", "/"),
        with(":status", "200"),
        with("connection", "close"),
        with("transfer-encoding", "chunked"),
        with("content-length", "1"),
        with("Upper", "x"),
        vec![(":method", "GET"), (":scheme", "http"), (":path", "a")],
        vec![(":method", "GET"), (":scheme", "http"), (":path", "")],
        vec![(":method", "CONNECT"), (":path", "/")],
    ] {
        let mut server = server();
        let wire = Wire::client().headers(1, &fields, true).get(3);
        assert_eq!(
            events_of(&mut server, &wire.bytes, &[]),
            ["3 GET h/", "3 end"],
            "{fields:?}"
        );
        assert_eq!(server.take_malformed_requests(), 1, "{fields:?}");
        assert_eq!(server.take_malformed_requests(), 0, "{fields:?}");
        assert_eq!(server.open_streams(), 1, "{fields:?}");
    }
}

#[test]
fn answers_are_read_as_sent() {
    let mut server = server();
    let wire = Wire::client().get(1).get(3).get(5).get(7);
    let mut streams = Vec::new();
    let mut read = 0;
    while let (taken, Some(event)) = server.advance(&wire.bytes[read..]).unwrap() {
        read += taken;
        if let ServerEvent::Head { stream, .. } = event {
            streams.push(stream);
        }
    }
    let trailers = TrailerBlock::new(&[("Grpc-Status", "0")]).unwrap();
    server
        .respond(streams[1], &ok(), BodyLength::Bytes(3))
        .unwrap();
    server.respond(streams[0], &ok(), BodyLength::None).unwrap();
    server
        .respond(streams[2], &ok(), BodyLength::Unknown)
        .unwrap();
    server.send_continue(streams[3]).unwrap();
    assert_eq!(server.send_body(streams[1], b"abc", true), Ok(3));
    assert_eq!(server.send_body(streams[2], b"d", false), Ok(1));
    assert!(server.send_continue(streams[2]).is_err());
    server.send_trailers(streams[2], &trailers).unwrap();
    assert!(server.send_trailers(streams[2], &trailers).is_err());
    let extra = [("x-now", &b"1"[..])];
    server
        .respond_with(streams[3], &ok(), &extra, BodyLength::Withheld(5))
        .unwrap();
    assert!(server.respond(streams[0], &ok(), BodyLength::None).is_err());
    assert_eq!(server.open_streams(), 0);
    let expected = [
        "3 head 200 3B",
        "1 head 200",
        "1 end",
        "5 head 200",
        "3 body abc",
        "3 end",
        "5 body d",
        "5 end {\"grpc-status\": \"0\"}",
        // The client did not send `HEAD`.
        "7 Malformed { what: \"less data than its content-length\" }",
    ];
    assert_eq!(answers(&mut server, 4), expected);
}

#[test]
fn requests_can_be_answered_before_they_end() {
    let mut server = server();
    let post = [(":method", "POST"), (":scheme", "http"), (":path", "/")];
    let wire = Wire::client().headers(1, &post, false).data(1, b"a", false);
    assert_eq!(
        events_of(&mut server, &wire.bytes, &[]),
        ["1 POST /", "1 body a"]
    );
    let stream = server.connection_stream(1);
    server.respond(stream, &ok(), BodyLength::None).unwrap();
    let wire = Wire::default().data(1, b"b", true);
    assert_eq!(
        events_of(&mut server, &wire.bytes, &[]),
        ["1 body b", "1 end"]
    );
    assert_eq!(server.open_streams(), 0);
}

#[test]
fn too_many_at_once_are_refused_and_so_are_all_after_the_farewell() {
    let limits = Limits {
        concurrent_streams_max: 2,
        ..Limits::default()
    };
    let mut server = Server::new(limits);
    let wire = Wire::client().get(1).get(3).get(5);
    let events = events_of(&mut server, &wire.bytes, &[]);
    assert_eq!(events, ["1 GET h/", "1 end", "3 GET h/", "3 end"]);
    server.close();
    let (first, second) = (server.connection_stream(1), server.connection_stream(3));
    server.respond(first, &ok(), BodyLength::None).unwrap();
    assert_eq!(
        events_of(&mut server, &Wire::default().get(7).bytes, &[]),
        [""; 0]
    );
    server.respond(second, &ok(), BodyLength::None).unwrap();
    assert_eq!(server.take_malformed_requests(), 0);
    assert_eq!(server.open_streams(), 0);
    let expected = [
        "5 Refused",
        "7 Refused",
        "1 head 200",
        "1 end",
        "3 head 200",
        "3 end",
    ];
    let mut events = answers(&mut server, 4);
    events[..2].sort();
    assert_eq!(events, expected);
}

#[test]
fn a_client_that_leaves_ends_its_requests() {
    let mut server = server();
    let wire = Wire::client().get(1).get(3).reset(1, 8);
    let events = events_of(&mut server, &wire.bytes, &[]);
    let expected = [
        "1 GET h/",
        "1 end",
        "3 GET h/",
        "3 end",
        "1 Reset(H2ErrorCode(8))",
    ];
    assert_eq!(events, expected);
    let third = server.connection_stream(3);
    let truncated = "failed: the connection ended with open streams or within a frame";
    assert_eq!(events_of_end(&mut server), ["3 ConnectionLost", truncated]);
    assert!(server.respond(third, &ok(), BodyLength::None).is_err());
}

#[test]
fn the_preface_distinguishes_the_protocols() {
    use crate::h2::is_http2;
    assert_eq!(is_http2(b""), None);
    assert_eq!(is_http2(b"PR"), None);
    assert_eq!(is_http2(b"PUT / HTTP/1.1"), Some(false));
    assert_eq!(is_http2(PREFACE), Some(true));
    assert_eq!(is_http2(&Wire::client().bytes), Some(true));
    let preface = ["failed: the connection does not begin with HTTP/2's preface"];
    assert_eq!(
        events_of(&mut server(), b"GET / HTTP/1.1\r\n", &[]),
        preface
    );
    let mut early = server();
    assert_eq!(events_of(&mut early, b"PRI *", &[]), [""; 0]);
    assert_eq!(
        events_of_end(&mut early),
        ["failed: the connection ended with open streams or within a frame"]
    );
    assert_eq!(events_of_end(&mut server()), [""; 0]);
    assert_eq!(H2ErrorCode::PROTOCOL_ERROR.to_string(), "PROTOCOL_ERROR");
}
