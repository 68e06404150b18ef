use std::error::Error;

use stillwell_relay::{RelayError, bind};

use crate::support::{listener, options};

#[test]
fn events_cannot_come_from_nowhere() {
    let error = bind(options("discard:", "discard:")).unwrap_err();
    assert!(matches!(error, RelayError::InputDiscard));
}

#[test]
fn a_taken_port_is_told_at_once() {
    let (_listener, endpoint) = listener();
    let error = bind(options(&endpoint, "discard:")).unwrap_err();
    assert_eq!(error.to_string(), format!("open {endpoint}"));
    let source = error.source().unwrap().to_string();
    assert!(source.contains("it is taken"), "{source}");
}
