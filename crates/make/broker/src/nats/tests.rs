use proptest::prelude::*;

use super::*;

#[test]
fn every_word_is_read() {
    for (text, message) in [
        ("PING\r\n", ServerMessage::Ping),
        ("pong\r\n", ServerMessage::Pong),
        ("+OK\n", ServerMessage::Ok),
        ("INFO {\"a\":1} \r\n", ServerMessage::Info(b"{\"a\":1}")),
        (
            "-ERR 'Authorization Violation'\r\n",
            ServerMessage::Refusal("Authorization Violation"),
        ),
        (
            "MSG _INBOX.x.7 1 2\r\nab\r\n",
            ServerMessage::Message {
                subject: "_INBOX.x.7",
                headers: b"",
                payload: b"ab",
            },
        ),
        (
            "HMSG s 1 r 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
            ServerMessage::Message {
                subject: "s",
                headers: b"NATS/1.0 503\r\n\r\n",
                payload: b"",
            },
        ),
    ] {
        let bytes = text.as_bytes();
        assert_eq!(read(bytes), Ok(Some((message, bytes.len()))), "{text}");
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), Ok(None), "{text} at {cut}");
        }
    }
}

#[test]
fn what_is_no_nats_is_refused() {
    for text in [
        "HTTP/1.1 400 Bad Request\r\n",
        "MSG a 1\r\n",
        "MSG a 1 2 3 4 5\r\n",
        "MSG a 1 99999999999999999999\r\n",
        "HMSG a 1 5 4\r\nabcdef\r\n",
        "MSG a 1 2\r\nabcd",
        "\r\n",
    ] {
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
    let endless = vec![b'I'; LINE_BYTES_MAX + 1];
    assert!(read(&endless).is_err());
}

#[test]
fn a_connection_begins_with_the_login() {
    let mut out = Vec::new();
    let options = ConnectOptions {
        user: Some("u\"1"),
        password: Some("p"),
        ..ConnectOptions::default()
    };
    write_connect(&options, &SubjectPublisher::new("a", None), &mut out);
    let text = String::from_utf8(out).unwrap();
    let json = text.strip_prefix("CONNECT ").unwrap();
    let json = json.strip_suffix("\r\nPING\r\n").unwrap();
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(value["user"], "u\"1");
    assert_eq!(value["pass"], "p");
    assert_eq!(value["verbose"], false);
    assert!(value.get("auth_token").is_none());
}

/// A user who may not subscribe waited for each acknowledgement until its timeout.
#[test]
fn a_server_refuses_the_login_and_the_subscription_before_it_is_ready() {
    for (inbox, subscription) in [(None, ""), (Some("_INBOX.x"), "SUB _INBOX.x.* 1\r\n")] {
        let publisher = SubjectPublisher::new("logs.a", inbox);
        let mut out = Vec::new();
        write_connect(&ConnectOptions::default(), &publisher, &mut out);
        let text = String::from_utf8(out).unwrap();
        let (connect, rest) = text.split_once("\r\n").unwrap();
        assert!(connect.starts_with("CONNECT {"), "{connect}");
        assert_eq!(rest, format!("{subscription}PING\r\n"));
    }
}

#[test]
fn answers_bear_the_numbers_of_their_messages() {
    let publisher = SubjectPublisher::new("logs.a", Some("_INBOX.x"));
    let mut out = Vec::new();
    publisher.write_subscription(&mut out);
    publisher.write(b"hi", 120, &mut out);
    assert_eq!(
        out,
        b"SUB _INBOX.x.* 1\r\nPUB logs.a _INBOX.x.120 2\r\nhi\r\n"
    );
    assert_eq!(publisher.number_of("_INBOX.x.120"), Some(120));
    assert_eq!(publisher.number_of("_INBOX.y.120"), None);
    assert_eq!(publisher.number_of("_INBOX.x.a"), None);
}

#[test]
fn acknowledgements_of_jetstream_are_read() {
    for (headers, payload, expected) in [
        ("", r#"{"stream":"S","seq":4}"#, Ok(JetStreamAck::Kept)),
        (
            "",
            r#"{"stream":"S","seq":4,"duplicate":true}"#,
            Ok(JetStreamAck::Kept),
        ),
        (
            "",
            r#"{"error":{"code":400,"err_code":10077,"description":"max bytes"}}"#,
            Ok(JetStreamAck::Refused(400)),
        ),
        ("NATS/1.0 503\r\n\r\n", "", Ok(JetStreamAck::Refused(503))),
    ] {
        let ack = JetStreamAck::read(headers.as_bytes(), payload.as_bytes());
        assert_eq!(ack, expected, "{headers}{payload}");
    }
    assert!(JetStreamAck::read(b"", b"{}").is_err());
    assert!(JetStreamAck::read(b"", b"pong").is_err());
}

proptest! {
    #[test]
    fn for_all_bytes_nothing_is_read_beyond_them(bytes in "(INFO|MSG|HMSG|PING|-ERR| |a|1|2|\r\n){0,12}") {
        if let Ok(Some((_, used))) = read(bytes.as_bytes()) {
            prop_assert!((1..=bytes.len()).contains(&used));
        }
    }

    #[test]
    fn for_all_numbers_decimals_are_as_the_library_writes_them(number: u64) {
        let mut out = Vec::new();
        write_decimal(number, &mut out);
        prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
    }
}
