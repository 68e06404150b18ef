use std::io::{Read, Write};

use stillwell_http::Scheme;
use stillwell_http::grpc::{status, write_message};
use stillwell_http::h2::{BodyLength, Client, ClientEvent, H2RequestBlock, Limits};
use stillwell_relay::{RelayError, bind};

use crate::support::{RunningRelay, collect, listener, options, run};

/// Makes one call on a connection of its own; gives its status.
fn call(relay: &RunningRelay, method: &str, message: &[u8]) -> Option<u32> {
    call_with(relay, method, message, false)
}

fn call_with(
    relay: &RunningRelay,
    method: &str,
    message: &[u8],
    is_compressed: bool,
) -> Option<u32> {
    let mut stream = relay.connect();
    let mut client = Client::new(Limits::default());
    let headers = [("content-type", "application/grpc")];
    let head = H2RequestBlock::new("POST", Scheme::Http, "relay", method, &headers).unwrap();
    let call = client.request(&head, BodyLength::Unknown).unwrap();
    let mut framed = Vec::new();
    write_message(message, is_compressed, &mut framed).unwrap();
    client.send_body(call, &framed, true).unwrap();
    let mut room = vec![0; 4096];
    loop {
        stream.write_all(client.output()).unwrap();
        client.sent(client.output().len());
        let length = stream.read(&mut room).unwrap();
        let mut input = &room[..length];
        assert!(length > 0, "the relay has closed");
        while let (taken, Some(event)) = client.advance(input).unwrap() {
            input = &input[taken..];
            if let ClientEvent::End { trailers, .. } = event {
                return trailers.and_then(status);
            }
        }
    }
}

fn message(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap();
    [&[number << 3 | 2, length], bytes].concat()
}

#[test]
fn log_records_and_other_calls_become_lines() {
    let collector = collect();
    let relay = run(options("grpc://127.0.0.1:0", &collector.endpoint));
    let record = |text: &[u8]| message(2, &message(5, &message(1, text)));
    let scope = [record(b"one"), record(b"two")].concat();
    let export = message(1, &message(2, &scope));
    let logs = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
    assert_eq!(call(&relay, logs, &export), Some(0));
    assert_eq!(call(&relay, "/a.B/C", b"12345"), Some(0));
    assert_eq!(call(&relay, logs, b"\xff"), Some(3));
    assert_eq!(call_with(&relay, logs, &export, true), Some(12));
    let report = relay.end();
    assert_eq!(report.compressed_refused, 1);
    assert_eq!((report.events_in, report.events_out), (3, 3));
    assert_eq!(collector.all(), b"one\ntwo\n/a.B/C 5\n");
}

#[test]
fn calls_and_files_are_no_outputs() {
    let (_listener, endpoint) = listener();
    for output in ["grpc://127.0.0.1:1", "tail:///tmp"] {
        let error = bind(options(&endpoint, output)).unwrap_err();
        assert!(matches!(error, RelayError::OutputOnlyIn { .. }), "{error}");
    }
}
