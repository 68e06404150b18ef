use super::*;
use crate::h2::frame::{Frame, FrameReader};
use crate::h2::{H2ErrorCode, RequestRefused};

/// In whole and in single bytes, a client with `requests` under way says what
/// the table says.
fn check(requests: usize, wire: &Wire, expected: &[&str]) {
    let cuts: Vec<usize> = (0..wire.bytes.len()).collect();
    assert_eq!(
        events_of(&mut client_with(requests), &wire.bytes, &[]),
        expected,
        "whole"
    );
    assert_eq!(
        events_of(&mut client_with(requests), &wire.bytes, &cuts),
        expected,
        "cut"
    );
}

/// The head of an interim response.
const EARLY: [(&str, &str); 2] = [(":status", "103"), ("link", "x")];

/// The frames that are to be written, without what begins a connection.
fn written(output: &[u8]) -> Vec<String> {
    let mut reader = FrameReader::new(1 << 20, 1 << 20);
    let (mut frames, mut read) = (Vec::new(), 0);
    while let (taken, Some(frame)) = reader.advance(&output[read..]).unwrap() {
        read += taken;
        frames.push(match frame {
            Frame::Data {
                bytes, end_stream, ..
            } => format!("data {} {end_stream}", bytes.len()),
            frame => format!("{frame:?}"),
        });
    }
    assert_eq!(read, output.len());
    frames
}

#[test]
fn responses_are_reported_in_order() {
    let wire = Wire::server()
        .headers(3, &EARLY, false)
        .headers(3, &[(":status", "204"), ("content-length", "9")], true)
        .headers(1, &[(":status", "200"), ("content-length", "4")], false)
        .data(1, b"ab", false)
        .ok(5, false)
        .data(1, b"cd", true)
        .frame(kind::DATA, 0x9, 5, &[3, b'x', 0, 0, 0]);
    let expected = [
        "3 head 204 9B",
        "3 end",
        "1 head 200 4B",
        "1 body ab",
        "5 head 200",
        "1 body cd",
        "1 end",
        "5 body x",
        "5 end",
    ];
    check(3, &wire, &expected);
    let trailers = Wire::server().ok(1, false).headers(
        1,
        &[("grpc-status", "0"), ("grpc-message", "fine")],
        true,
    );
    let expected = [
        "1 head 200",
        "1 end {\"grpc-status\": \"0\", \"grpc-message\": \"fine\"}",
    ];
    check(1, &trailers, &expected);
}

#[test]
fn requests_end_once_with_any_server() {
    let fail = |what: &str| format!("1 Malformed {{ what: {what:?} }}");
    for (wire, expected) in [
        (
            Wire::server().reset(1, 2),
            "1 Reset(H2ErrorCode(2))".to_owned(),
        ),
        (Wire::server().reset(1, 7), "1 Refused".to_owned()),
        (
            Wire::server().headers(1, &[(":status", "101")], false),
            fail("a switch of protocols"),
        ),
        (
            Wire::server().headers(1, &[(":status", "100")], true),
            fail("an interim response that ends the stream"),
        ),
        (
            (0..101).fold(Wire::server(), |wire, _| wire.headers(1, &EARLY, false)),
            fail("more than 100 interim responses"),
        ),
        (
            Wire::server().headers(1, &[("server", "x")], true),
            fail("a response without `:status`"),
        ),
        (
            Wire::server().data(1, b"x", true),
            fail("data before the head"),
        ),
        (
            Wire::server().headers(1, &[(":status", "200"), ("content-length", "1")], true),
            fail("less data than its content-length"),
        ),
        (
            Wire::server().frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4]),
            fail("a window update of zero"),
        ),
    ] {
        check(1, &wire, &[&expected]);
    }
}

/// A server that sends early hints with each response is no flood.
#[test]
fn interim_responses_are_limited_for_each_request_and_not_for_a_connection() {
    let mut client = client_with(0);
    let first = events_of(&mut client, &Wire::server().bytes, &[]);
    assert_eq!(first, [""; 0]);
    for _ in 0..200 {
        let number = client.request(&get(), BodyLength::None).unwrap().number();
        let early = (0..100).fold(Wire::default(), |wire, _| {
            wire.headers(number, &EARLY, false)
        });
        let events = events_of(&mut client, &early.ok(number, true).bytes, &[]);
        let expected = [format!("{number} head 200"), format!("{number} end")];
        assert_eq!(events, expected);
        client.sent(usize::MAX / 2);
    }
}

#[test]
fn heads_that_are_none_end_their_requests() {
    let pseudo = "a pseudo-field that is unknown, repeated, malformed or misplaced";
    let pseudo = format!("1 Malformed {{ what: {pseudo:?} }}");
    for fields in [
        &[(":status", "200"), (":status", "200")][..],
        &[(":status", "2000")],
        &[(":status", "099")],
        &[(":status", "200"), (":path", "/")],
        &[("a", "b"), (":status", "200")],
    ] {
        check(1, &Wire::server().headers(1, fields, true), &[&pseudo]);
    }
    for (name, value) in [
        ("connection", "close"),
        ("Server", "x"),
        ("a b", "x"),
        ("", "x"),
        ("a", " x"),
        ("a", "x\n"),
        ("te", "gzip"),
        ("content-length", "+1"),
    ] {
        let wire = Wire::server().headers(1, &[(":status", "200"), (name, value)], true);
        let events = events_of(&mut client_with(1), &wire.bytes, &[]);
        assert!(
            events.len() == 1 && events[0].starts_with("1 Malformed"),
            "{name}: {events:?}"
        );
    }
    for wire in [
        Wire::server()
            .ok(1, false)
            .data(1, b"", false)
            .headers(1, &[("a", "b")], false),
        Wire::server()
            .ok(1, false)
            .headers(1, &[(":status", "200")], true),
    ] {
        let events = events_of(&mut client_with(1), &wire.bytes, &[]);
        assert!(
            events.len() == 2 && events[1].starts_with("1 Malformed"),
            "{events:?}"
        );
    }
}

#[test]
fn answers_to_head_have_no_body_for_any_length() {
    let head = H2RequestBlock::new("HEAD", Scheme::Http, "h", "/", &[]).unwrap();
    let mut client = Client::new(Limits::default());
    client.request(&head, BodyLength::None).unwrap();
    let fields = [(":status", "200"), ("content-length", "7")];
    let wire = Wire::server().headers(1, &fields, true);
    assert_eq!(
        events_of(&mut client, &wire.bytes, &[]),
        ["1 head 200 7B", "1 end"]
    );
}

#[test]
fn going_away_fails_what_will_not_be_answered() {
    let go_away = |last: u32, code: u32| [last.to_be_bytes(), code.to_be_bytes()].concat();
    let mut client = client_with(3);
    let wire = Wire::server()
        .frame(kind::GOAWAY, 0, 0, &go_away(1, 0))
        .ok(1, true);
    let mut events = events_of(&mut client, &wire.bytes, &[]);
    events[..2].sort();
    assert_eq!(events, ["3 Refused", "5 Refused", "1 head 200", "1 end"]);
    assert_eq!(client.going_away(), Some(H2ErrorCode::NO_ERROR));
    let code = H2ErrorCode::NO_ERROR;
    let refused = client.request(&get(), BodyLength::None);
    assert_eq!(refused, Err(RequestRefused::GoingAway { code }));
    assert_eq!(events_of_end(&mut client), [""; 0]);
}

#[test]
fn the_end_of_the_connection_ends_what_is_under_way() {
    let mut client = client_with(2);
    let wire = Wire::server().ok(3, false).ok(1, true);
    assert_eq!(
        events_of(&mut client, &wire.bytes, &[]),
        ["3 head 200", "1 head 200", "1 end"]
    );
    let truncated = "failed: the connection ended with open streams or within a frame";
    assert_eq!(events_of_end(&mut client), ["3 ConnectionLost", truncated]);
    assert_eq!(
        client.request(&get(), BodyLength::None),
        Err(RequestRefused::Failed)
    );
    assert_eq!(events_of_end(&mut client_with(0)), [""; 0]);
}

#[test]
fn the_server_limits_how_many_are_in_flight() {
    let mut client = Client::new(Limits::default());
    assert_eq!(
        (client.requests_available(), client.is_ready()),
        (100, false)
    );
    let settings = SettingsFrame {
        concurrent_streams_max: Some(2),
        ..SettingsFrame::default()
    };
    let wire = Wire::default().settings(&settings);
    assert_eq!(events_of(&mut client, &wire.bytes, &[]), [""; 0]);
    assert!(client.is_ready());
    let first = client.request(&get(), BodyLength::None).unwrap();
    let second = client.request(&get(), BodyLength::None).unwrap();
    assert_eq!((first.slot(), second.slot()), (0, 1));
    assert_eq!(
        client.request(&get(), BodyLength::None),
        Err(RequestRefused::Busy)
    );
    let wire = Wire::default().ok(1, true);
    assert_eq!(
        events_of(&mut client, &wire.bytes, &[]),
        ["1 head 200", "1 end"]
    );
    let third = client.request(&get(), BodyLength::None).unwrap();
    assert_eq!((third.number(), third.slot()), (5, 0));
}

/// Servers refused those beyond a limit that they had not stated yet.
#[test]
fn until_its_settings_a_server_gets_a_hundred_requests_and_then_as_many_as_it_states() {
    for (stated, expected) in [(Some(128), 28), (Some(50), 0), (None, 100)] {
        let mut client = Client::new(Limits {
            concurrent_streams_max: 200,
            ..Limits::default()
        });
        while client.requests_available() > 0 {
            client.request(&get(), BodyLength::None).unwrap();
        }
        assert_eq!(client.open_streams(), 100);
        let settings = SettingsFrame {
            concurrent_streams_max: stated,
            ..SettingsFrame::default()
        };
        let wire = Wire::default().settings(&settings);
        assert_eq!(events_of(&mut client, &wire.bytes, &[]), [""; 0]);
        assert_eq!(client.requests_available(), expected, "{stated:?}");
    }
}

#[test]
fn what_was_given_up_is_passed_over() {
    let mut client = client_with(1);
    let stream = client.request(&get(), BodyLength::None).unwrap();
    client.reset(stream, H2ErrorCode::CANCEL);
    client.reset(stream, H2ErrorCode::CANCEL);
    let wire = Wire::server()
        .ok(3, false)
        .data(3, b"x", true)
        .reset(3, 0)
        .ok(1, true);
    assert_eq!(
        events_of(&mut client, &wire.bytes, &[]),
        ["1 head 200", "1 end"]
    );
    let resets = written(client.output())
        .into_iter()
        .filter(|frame| frame.contains("Reset"));
    assert_eq!(resets.count(), 1);
}

/// A target that stalls for several timeouts responds to all requests that were given up.
#[test]
fn any_number_of_late_responses_is_passed_over() {
    let mut client = client_with(0);
    let mut wire = Wire::server();
    for _ in 0..20 {
        for _ in 0..1_000 {
            let stream = client.request(&get(), BodyLength::None).unwrap();
            client.reset(stream, H2ErrorCode::CANCEL);
            let number = stream.number();
            wire = wire
                .ok(number, false)
                .data(number, b"x", true)
                .reset(number, 0);
        }
        client.sent(usize::MAX / 2);
        let events = events_of(&mut client, &std::mem::take(&mut wire).bytes, &[]);
        assert!(events.is_empty(), "{events:?}");
    }
}

#[test]
fn bodies_wait_for_windows_and_settings_move_them() {
    let mut client = client_with(0);
    let settings = |initial_window_bytes| SettingsFrame {
        initial_window_bytes: Some(initial_window_bytes),
        ..SettingsFrame::default()
    };
    let wire = Wire::default().settings(&settings(5));
    assert_eq!(events_of(&mut client, &wire.bytes, &[]), [""; 0]);
    let post = H2RequestBlock::new("POST", Scheme::Http, "h", "/", &[]).unwrap();
    let stream = client.request(&post, BodyLength::Bytes(10)).unwrap();
    client.sent(usize::MAX / 2);
    assert_eq!(client.send_body(stream, b"0123456789", true), Ok(5));
    assert_eq!(client.send_body(stream, b"56789", true), Ok(0));
    // Five bytes are on their way: a window of 3 leaves less than none.
    let wire = Wire::default().settings(&settings(3));
    assert_eq!(events_of(&mut client, &wire.bytes, &[]), [""; 0]);
    let wire = Wire::default().frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 3]);
    assert_eq!(events_of(&mut client, &wire.bytes, &[]), ["1 room"]);
    assert_eq!(client.send_body(stream, b"56789", true), Ok(1));
    let wire = Wire::default().settings(&settings(7));
    assert_eq!(events_of(&mut client, &wire.bytes, &[]), ["1 room"]);
    assert_eq!(client.send_body(stream, b"6789", true), Ok(4));
    assert!(client.send_body(stream, b"", true).is_err());
    let data: Vec<_> = written(client.output())
        .into_iter()
        .filter(|frame| frame.starts_with("data"))
        .collect();
    assert_eq!(data, ["data 5 false", "data 1 false", "data 4 true"]);
}

#[test]
fn an_answer_before_the_body_was_sent_ends_the_request() {
    let mut client = client_with(0);
    let post = H2RequestBlock::new("POST", Scheme::Http, "h", "/", &[]).unwrap();
    let stream = client.request(&post, BodyLength::Unknown).unwrap();
    client.sent(usize::MAX / 2);
    let wire = Wire::server().ok(1, true).reset(1, 0);
    assert_eq!(
        events_of(&mut client, &wire.bytes, &[]),
        ["1 head 200", "1 end"]
    );
    assert!(client.send_body(stream, b"x", true).is_err());
    let reset = "Reset { stream: 1, code: H2ErrorCode(8) }";
    assert!(written(client.output()).contains(&reset.to_owned()));
    assert_eq!(client.open_streams(), 0);
}

#[test]
fn a_small_table_is_answered_with_none() {
    let mut client = client_with(0);
    let settings = SettingsFrame {
        header_table_bytes: Some(0),
        ..SettingsFrame::default()
    };
    let wire = Wire::default().settings(&settings);
    assert_eq!(events_of(&mut client, &wire.bytes, &[]), [""; 0]);
    client.sent(usize::MAX / 2);
    for first in [0x20, 0x82] {
        client.request(&get(), BodyLength::None).unwrap();
        assert_eq!(client.output()[9], first);
        client.sent(usize::MAX / 2);
    }
}
