use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Shutdown;

use stillwell_http::Scheme;
use stillwell_http::h2::frame::{SettingsFrame, write_data, write_headers, write_settings};
use stillwell_http::h2::hpack::Encoder;
use stillwell_http::h2::{BodyLength, Client, ClientEvent, H2RequestBlock, Limits, PREFACE};
use stillwell_plan::serve::{FilterSet, ResponseOptions, ServeProtocols};

use super::{Server, listener};

/// Result of a request: its status, its body, and true for an orderly end.
#[derive(Debug, Default, Eq, PartialEq)]
struct Answer {
    status: u16,
    body: Vec<u8>,
    ended: Option<bool>,
}

/// Sends `requests` at once and waits until each has come to its end.
fn exchange(server: &Server, requests: &[&[(&str, &str)]]) -> Vec<Answer> {
    let mut socket = server.connect();
    let mut client = Client::new(Limits::default());
    let mut answers: BTreeMap<u32, Answer> = BTreeMap::new();
    for headers in requests {
        let block = H2RequestBlock::new("GET", Scheme::Http, "a", "/", headers).unwrap();
        let stream = client.request(&block, BodyLength::None).unwrap();
        answers.insert(stream.number(), Answer::default());
    }
    let mut buffer = vec![0; 64 << 10];
    while answers.values().any(|answer| answer.ended.is_none()) {
        socket.write_all(client.output()).unwrap();
        client.sent(client.output().len());
        let length = socket.read(&mut buffer).unwrap();
        let mut read = 0;
        while let Ok((taken, Some(event))) = client.advance(&buffer[read..length]) {
            read += taken;
            note(&mut answers, event);
        }
        if length == 0 {
            while let Ok(Some(event)) = client.finish() {
                note(&mut answers, event);
            }
        }
    }
    answers.into_values().collect()
}

fn note(answers: &mut BTreeMap<u32, Answer>, event: ClientEvent<'_>) {
    let (ClientEvent::Head { stream, .. }
    | ClientEvent::Body { stream, .. }
    | ClientEvent::End { stream, .. }
    | ClientEvent::Failed { stream, .. }) = event
    else {
        return;
    };
    let answer = answers.entry(stream.number()).or_default();
    match event {
        ClientEvent::Head { head, .. } => answer.status = head.status,
        ClientEvent::Body { bytes, .. } => answer.body.extend_from_slice(bytes),
        ClientEvent::End { .. } => answer.ended = Some(true),
        _ => answer.ended = Some(false),
    }
}

fn config(json: &str) -> [(&str, &str); 1] {
    [("x-nighthawk-test-server-config", json)]
}

#[test]
fn many_streams_are_answered_each_in_its_time() {
    let server = Server::of(listener());
    let slow = config(r#"{"static_delay":"0.05s","response_body_size":2}"#);
    let large = config(r#"{"response_body_size":4000000}"#);
    let answers = exchange(&server, &[&slow, &[], &large, &[], &[]]);
    assert!(
        answers
            .iter()
            .all(|answer| (answer.status, answer.ended) == (200, Some(true)))
    );
    let lengths: Vec<_> = answers.iter().map(|answer| answer.body.len()).collect();
    assert_eq!(lengths, [2, 3, 4_000_000, 3, 3]);
    let counts = server.end();
    assert_eq!(
        (counts.requests, counts.connections, counts.abandoned),
        (5, 1, 0)
    );
}

#[test]
fn statuses_and_headers_are_those_of_the_first_version() {
    let mut listener = listener();
    listener.protocols = ServeProtocols::Http2;
    listener.answer.headers.server = Some("envoy".to_owned());
    let server = Server::of(listener);
    let wanted = r#"{"response_headers":[{"header":{"key":":status","value":"204"}}]}"#;
    let answers = exchange(&server, &[&config(wanted), &config("bad")]);
    assert_eq!((answers[0].status, answers[0].body.len()), (204, 0));
    assert_eq!(answers[1].status, 500);
    assert!(
        answers[1]
            .body
            .starts_with(b"time-tracking didn't understand")
    );
    server.end();
}

#[test]
fn faults_are_those_of_streams_or_of_the_connection() {
    for (fault, status, body_bytes, ended) in [
        ("'reset'", 0, 0, Some(false)),
        ("'truncate'", 200, 50, Some(false)),
        ("'close'", 0, 0, Some(false)),
        ("'garbage'", 0, 0, Some(false)),
        ("503", 503, 0, Some(true)),
    ] {
        let mut listener = listener();
        listener.faults.error = Some(fault.parse().unwrap());
        let server = Server::of(listener);
        let answer = exchange(&server, &[&[]]).remove(0);
        let expected = (status, body_bytes, ended);
        assert_eq!(
            (answer.status, answer.body.len(), answer.ended),
            expected,
            "{fault}"
        );
        let counts = server.end();
        assert_eq!((counts.requests, counts.abandoned), (1, 0), "{fault}");
    }
}

#[test]
fn what_waits_when_the_connection_goes_is_abandoned() {
    let mut listener = listener();
    listener.answer.filters = FilterSet::ALL;
    listener.answer.options = ResponseOptions::default();
    listener.faults.error = Some("active_requests > 1 ? 'close' : false".parse().unwrap());
    let server = Server::of(listener);
    let slow = config(r#"{"static_delay":"100s"}"#);
    let answers = exchange(&server, &[&slow, &[]]);
    assert!(answers.iter().all(|answer| answer.ended == Some(false)));
    let counts = server.end();
    assert_eq!(
        (counts.requests, counts.abandoned, counts.faults["close"]),
        (2, 1, 1)
    );
}

#[test]
fn malformed_requests_are_counted_and_the_connection_goes_on() {
    let server = Server::of(listener());
    let mut bytes = PREFACE.to_vec();
    write_settings(&SettingsFrame::default(), &mut bytes);
    for (stream, header, is_whole) in [
        (1, ("connection", "close"), true),
        (3, ("content-length", "1"), false),
        (5, ("x-a", "b"), true),
    ] {
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/"),
            header,
        ];
        let mut block = Vec::new();
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Encoder::new(0).encode(fields, &mut block);
        write_headers(stream, &block, is_whole, 1 << 14, &mut bytes);
        if !is_whole {
            write_data(stream, b"ab", true, &mut bytes);
        }
    }
    let mut socket = server.connect();
    socket.write_all(&bytes).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    socket.read_to_end(&mut Vec::new()).unwrap();
    let counts = server.end();
    assert_eq!((counts.requests, counts.malformed), (1, 2));
}
