use stillwell_relay::{RelayError, bind};

use crate::support::{Connection, RunningRelay, collect, listener, options, run_bound};

/// A relay with an input for Splunk's events; see the one with an HTTP input.
fn run_hec(output: &str) -> RunningRelay {
    loop {
        let (listener, endpoint) = listener();
        drop(listener);
        let options = options(&endpoint.replace("tcp://", "hec://"), output);
        match bind(options) {
            Ok(bound) => return run_bound(bound),
            Err(error) => assert!(matches!(error, RelayError::Listen { .. }), "{error}"),
        }
    }
}

fn post(client: &mut Connection, path: &str, body: &str) -> u16 {
    let length = body.len();
    client.send(&format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}"
    ));
    client.status()
}

#[test]
fn splunk_events_are_relayed_as_lines() {
    let collector = collect();
    let relay = run_hec(&collector.endpoint);
    let mut client = Connection::to(relay.input());
    let event = "/services/collector/event";
    assert_eq!(
        post(&mut client, event, r#"{"event":"a"}{"event":"b"}"#),
        200
    );
    assert_eq!(post(&mut client, "/services/collector/raw", "c\nd"), 200);
    assert_eq!(
        post(
            &mut client,
            "/services/collector/ack?channel=x",
            r#"{"acks":[0]}"#
        ),
        200
    );
    assert_eq!(post(&mut client, event, "text"), 400);
    assert_eq!(post(&mut client, event, ""), 400);
    assert_eq!(post(&mut client, "/", "{}"), 404);
    client.send(&format!(
        "POST {event} HTTP/1.1\r\nhost: a\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx"
    ));
    assert_eq!(client.status(), 415);
    let report = relay.end();
    assert_eq!(report.compressed_refused, 1);
    assert_eq!((report.events_in, report.events_out), (4, 4));
    let lines = "{\"event\":\"a\"}\n{\"event\":\"b\"}\nc\nd\n";
    assert_eq!(collector.all(), lines.as_bytes());
}

#[test]
fn paths_with_a_version_are_answered_as_those_without() {
    let relay = run_hec("discard:");
    let mut client = Connection::to(relay.input());
    for (method, path, body, expected) in [
        (
            "GET",
            "health",
            "",
            r#"{"text":"HEC is healthy","code":17}"#,
        ),
        ("POST", "ack", r#"{"acks":[0]}"#, r#"{"acks":{"0":false}}"#),
    ] {
        for version in ["", "/1.0"] {
            let length = body.len();
            client.send(&format!(
                "{method} /services/collector/{path}{version} HTTP/1.1\r\nhost: a\r\n\
                 content-length: {length}\r\n\r\n{body}"
            ));
            let (head, answer) = client.message().unwrap();
            assert!(head.starts_with("HTTP/1.1 200 "), "{path}{version}: {head}");
            assert_eq!(answer, expected, "{path}{version}");
        }
    }
    assert_eq!(relay.end().events_in, 0);
}
