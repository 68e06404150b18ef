use std::error::Error;

use stillwell_relay::{Format, OneIn, RelayError, bind};

use crate::support::{listener, options};

#[test]
fn events_cannot_come_from_nowhere() {
    let error = bind(options("discard:", "discard:")).unwrap_err();
    assert!(matches!(error, RelayError::InputDiscard));
}

#[test]
fn inputs_without_answers_cannot_refuse() {
    for (input, is_taken) in [
        ("tcp://127.0.0.1:0", false),
        ("udp://127.0.0.1:0", false),
        ("unix:///nowhere/in", false),
        ("unixgram:///nowhere/in", false),
        ("grpc://127.0.0.1:0", false),
        ("tail:///nowhere", false),
        ("http://127.0.0.1:1/", true),
        ("hec://127.0.0.1:1", true),
    ] {
        let mut options = options(input, "discard:");
        options.faults.refuse = OneIn::new(2);
        // The port itself may still be in use.
        let error = bind(options).err().map(|error| error.to_string());
        let refused = format!("input of {input} cannot be refused");
        let is_refused = error.is_some_and(|error| error.contains(&refused));
        assert_eq!(is_refused, !is_taken, "{input}");
    }
}

#[test]
fn requests_go_by_http_and_stay_as_they_are() {
    let (http, tcp) = ("http://127.0.0.1:1/", "tcp://127.0.0.1:1");
    for (input, output, parse, is_taken) in [
        (http, http, false, true),
        ("grpc://127.0.0.1:0", "discard:", false, true),
        (http, http, true, false),
        (http, tcp, false, false),
        (tcp, http, false, false),
        ("hec://127.0.0.1:1", http, false, false),
    ] {
        let mut options = options(input, output);
        (options.format, options.parse) = (Format::Requests, parse);
        let refused = bind(options).err();
        let is_refused = matches!(refused, Some(RelayError::NotRequests));
        assert_eq!(is_refused, !is_taken, "{input} to {output}");
    }
}

#[test]
fn a_taken_port_is_an_error_at_once() {
    let (_listener, endpoint) = listener();
    let error = bind(options(&endpoint, "discard:")).unwrap_err();
    assert_eq!(error.to_string(), format!("open {endpoint}"));
    let source = error.source().unwrap().to_string();
    assert!(source.contains("it is already in use"), "{source}");
}
