use std::io::{BufReader, Read, Write};

use stillwell_relay::{RelayError, bind};

use crate::support::{
    Connection, RunningRelay, collect, collect_datagrams, endpoint_of, listener, options, run,
    run_bound,
};

/// A relay with an HTTP input. A URL cannot name port 0, so this takes a free port, and
/// another where a second process was faster.
fn run_http(output: &str, buffer_events: usize) -> RunningRelay {
    loop {
        let (listener, endpoint) = listener();
        drop(listener);
        let mut options = options(&endpoint.replace("tcp://", "http://"), output);
        options.buffer_events = buffer_events;
        match bind(options) {
            Ok(bound) => return run_bound(bound),
            Err(error) => assert!(matches!(error, RelayError::Listen { .. }), "{error}"),
        }
    }
}

#[test]
fn requests_are_answered_once_their_events_are_in() {
    let collector = collect();
    let relay = run_http(&collector.endpoint, 4096);
    let mut client = Connection::to(relay.input());
    assert_eq!(client.post("one\ntwo\n"), 200);
    assert_eq!(client.post("three"), 200);
    assert_eq!(client.post(""), 200);
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.status(), 405);
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx");
    assert_eq!(client.status(), 415);
    client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send("3\r\nfou\r\n2\r\nr\n\r\n0\r\n\r\n");
    assert_eq!(client.status(), 200);
    client.send("what?\r\n\r\n");
    assert_eq!(client.status(), 400);
    let report = relay.end();
    assert_eq!((report.events_in, report.events_out), (4, 4));
    assert_eq!(report.compressed_refused, 1);
    assert_eq!(collector.all(), b"one\ntwo\nthree\nfour\n");
}

/// Two bodies of JSON are not one, so each event is a request of its own. An array of objects without a
/// type became text, in which a sink saw one event. A body that is one event counted a line end that it did not have.
#[test]
fn the_content_type_of_requests_is_passed_on() {
    let json = "application/json";
    for (stated, kind, bodies) in [
        (json, json, vec!["[1,2]", "[3]"]),
        ("text/plain", "text/plain", vec!["a\n"]),
        ("text/plain", "text/plain", vec!["[{},{}]\n"]),
        ("application/x-ndjson", "application/x-ndjson", vec!["{}\n"]),
        ("", json, vec!["[{\"a\":1},{}]", " [ {}]"]),
        ("", "text/plain", vec!["[1] a\n"]),
    ] {
        let (listener, endpoint) = listener();
        let relay = run_http(&format!("{}/x", endpoint.replace("tcp", "http")), 4096);
        let mut client = Connection::to(relay.input());
        for body in &bodies {
            let length = body.len();
            let stated = match stated {
                "" => String::new(),
                stated => format!("content-type: {stated}\r\n"),
            };
            client.send(&format!(
                "POST / HTTP/1.1\r\nhost: a\r\n{stated}content-length: {length}\r\n\r\n{body}"
            ));
            assert_eq!(client.status(), 200);
        }
        let mut connection = Connection(BufReader::new(listener.accept().unwrap().0));
        for &body in &bodies {
            let (head, received) = connection.message().unwrap();
            assert!(
                head.contains(&format!("content-type: {kind}\r\n")),
                "{head}"
            );
            assert_eq!(received, body, "{kind}");
            connection.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
        drop(client);
        let bytes = bodies.concat().len() as u64;
        let report = relay.end();
        assert_eq!(
            (report.bytes_in, report.bytes_out),
            (bytes, bytes),
            "{kind}"
        );
    }
}

#[test]
fn requests_are_taken_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let relay = run_http(&endpoint_of("unixgram", &out), 70);
    let mut client = Connection::to(relay.input());
    assert_eq!(client.post(&"x\n".repeat(71)), 413);
    // The output takes up to 64 in hand and waits; the rest stays.
    assert_eq!(client.post(&"x\n".repeat(70)), 200);
    assert_eq!(client.post(&"x\n".repeat(70)), 503);
    relay.stop();
    let collector = collect_datagrams(&out);
    let report = relay.end();
    assert_eq!((report.events_in, report.events_out), (70, 70));
    assert_eq!(collector.all(), vec![b"x"; 70]);
}

#[test]
fn batches_are_sent_again_until_they_are_taken_or_refused() {
    let (listener, endpoint) = listener();
    let relay = run(options(
        "tcp://127.0.0.1:0",
        &format!("{}/x", endpoint.replace("tcp", "http")),
    ));
    let mut input = relay.connect();
    let accept = || Connection(BufReader::new(listener.accept().unwrap().0));
    let answer = |connection: &mut Connection, status: &str| {
        let (head, body) = connection.message().unwrap();
        assert!(head.starts_with("POST /x HTTP/1.1\r\n"), "{head}");
        connection.send(&format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n"));
        body
    };
    input.write_all(b"one\ntwo\n").unwrap();
    let mut connection = accept();
    let first = answer(&mut connection, "503");
    assert!(first == "one\n" || first == "one\ntwo\n");
    // Closed without an answer: sent again over a new connection.
    assert_eq!(connection.message().unwrap().1, first);
    drop(connection);
    let mut connection = accept();
    assert_eq!(answer(&mut connection, "200"), first);
    let mut taken = first;
    while taken != "one\ntwo\n" {
        taken += &answer(&mut connection, "200");
    }
    input.write_all(b"bad\n").unwrap();
    assert_eq!(answer(&mut connection, "400"), "bad\n");
    let report = relay.end();
    assert_eq!(
        (report.events_out, report.events_dropped, report.bytes_out),
        (2, 1, 8)
    );
    assert!(connection.message().is_none());
}

/// It was sent again for ever to a server that closed, and waited for ever for a server that did not. No later event
/// arrived.
#[test]
fn a_request_that_is_answered_before_it_was_read_is_not_sent_again() {
    let (listener, endpoint) = listener();
    let relay = run_http(&format!("{}/x", endpoint.replace("tcp", "http")), 4096);
    let mut client = Connection::to(relay.input());
    // More than the kernel holds for a peer that does not read.
    let long = "x".repeat(12 << 20);
    for body in [&long[..], &long[..], "last"] {
        assert_eq!(client.post(body), 200);
    }
    let mut open = Vec::new();
    for closes in [true, false] {
        let (mut peer, _) = listener.accept().unwrap();
        peer.read_exact(&mut [0; 1024]).unwrap();
        peer.write_all(b"HTTP/1.1 413 X\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
        if !closes {
            open.push(peer);
        }
    }
    let mut connection = Connection(BufReader::new(listener.accept().unwrap().0));
    assert_eq!(connection.message().unwrap().1, "last\n");
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let report = relay.end();
    assert_eq!((report.events_out, report.events_dropped), (1, 2));
}

#[test]
fn a_name_without_an_address_is_an_error() {
    // Longer than any name that a name server takes.
    let name = "a".repeat(300);
    let error = bind(options(&format!("http://{name}:1/"), "discard:")).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("find the address of http://{name}:1/")
    );
}
