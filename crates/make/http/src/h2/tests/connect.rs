//! `CONNECT`, with a protocol and without.

use super::*;
use crate::HeadError;
use crate::capsule::{CapsuleReader, write_datagram};
use crate::h2::{H2ErrorCode, H2ResponseBlock};

const UDP: [(&str, &str); 5] = [
    (":method", "CONNECT"),
    (":protocol", "connect-udp"),
    (":scheme", "https"),
    (":authority", "proxy"),
    (":path", "/.well-known/masque/udp/h/53/"),
];

/// A server that takes protocols.
fn proxy() -> Server {
    Server::new(Limits {
        connect_protocol: true,
        ..Limits::default()
    })
}

fn udp(host: &str, port: u16) -> Result<H2RequestBlock, HeadError> {
    H2RequestBlock::connect_udp(Scheme::Https, "proxy:443", (host, port), &[("A", "b")])
}

#[test]
fn proxies_get_endpoints_as_the_rfc_requires() {
    for (host, in_path) in [
        ("192.0.2.6", "192.0.2.6"),
        ("a-b.example", "a-b.example"),
        ("2001:db8::42", "2001%3Adb8%3A%3A42"),
        ("::ffff:192.0.2.6", "%3A%3Affff%3A192.0.2.6"),
    ] {
        let mut client = Client::new(Limits::default());
        let block = udp(host, 443).unwrap();
        client.request(&block, BodyLength::Unknown).unwrap();
        let mut server = proxy();
        let (_, event) = server.advance(client.output()).unwrap();
        let Some(ServerEvent::Head { head, .. }) = event else {
            panic!("no head");
        };
        let path = format!("/.well-known/masque/udp/{in_path}/443/");
        let expected: [(&[u8], &[u8]); 7] = [
            (b":method", b"CONNECT"),
            (b":protocol", b"connect-udp"),
            (b":scheme", b"https"),
            (b":authority", b"proxy:443"),
            (b":path", path.as_bytes()),
            (b"capsule-protocol", b"?1"),
            (b"a", b"b"),
        ];
        assert_eq!(head.fields.iter().collect::<Vec<_>>(), expected);
        assert_eq!(head.protocol, Some("connect-udp"));
        assert_eq!((head.scheme, head.authority), ("https", "proxy:443"));
        assert_eq!((head.path, head.content_length), (path.as_str(), None));
    }
}

#[test]
fn proxies_do_not_get_what_is_no_endpoint() {
    for (host, port) in [
        ("", 53),
        ("h", 0),
        ("h:53", 53),
        ("[::1]", 53),
        ("fe80::1%eth0", 53),
        ("a/b", 53),
        ("a b", 53),
        ("a%2Fb", 53),
        ("ä", 53),
    ] {
        let authority = format!("{host}:{port}");
        let error = udp(host, port).unwrap_err();
        assert_eq!(error, HeadError::Authority { authority });
    }
    let (scheme, endpoint) = (Scheme::Http, ("h", 53));
    assert!(H2RequestBlock::connect_udp(scheme, "a/b", endpoint, &[]).is_err());
    for name in ["Capsule-Protocol", "content-length", "upgrade", ":protocol"] {
        let block = H2RequestBlock::connect_udp(scheme, "proxy", endpoint, &[(name, "x")]);
        assert!(block.is_err(), "{name}");
    }
}

#[test]
fn a_protocol_is_accepted_with_connect_alone_and_after_its_setting_was_sent() {
    let without = |left_out: &str| -> Vec<_> {
        let rest = UDP.into_iter().filter(|(name, _)| *name != left_out);
        rest.collect()
    };
    let with = |field| [&UDP[..], &[field]].concat();
    let check = |mut server: Server, fields: &[(&str, &str)], expected: &[&str]| {
        let wire = Wire::client().headers(1, fields, false).get(3);
        let expected = [expected, &["3 GET h/", "3 end"]].concat();
        assert_eq!(
            events_of(&mut server, &wire.bytes, &[]),
            expected,
            "{fields:?}"
        );
        let malformed = u64::from(expected.len() == 2);
        assert_eq!(server.take_malformed_requests(), malformed, "{fields:?}");
    };
    let usual = || Server::new(Limits::default());
    let to_udp = ["1 CONNECT proxy/.well-known/masque/udp/h/53/"];
    check(proxy(), &UDP, &to_udp);
    check(usual(), &UDP, &[]);
    for fields in [
        without(":method"),
        without(":scheme"),
        without(":path"),
        // `CONNECT` without a protocol has no path.
        without(":protocol"),
        [&GET[..], &[(":protocol", "connect-udp")]].concat(),
        with((":protocol", "connect-udp")),
        [
            without(":protocol"),
            vec![("a", "b"), (":protocol", "connect-udp")],
        ]
        .concat(),
        [&UDP[..1], &[(":protocol", "a b")], &UDP[2..]].concat(),
    ] {
        check(proxy(), &fields, &[]);
        check(usual(), &fields, &[]);
    }
    let plain = [(":method", "CONNECT"), (":authority", "h:2")];
    check(proxy(), &plain, &["1 CONNECT h:2"]);
    check(usual(), &plain, &["1 CONNECT h:2"]);
}

#[test]
fn a_client_reads_whether_the_server_accepts_protocols() {
    for connect_protocol in [false, true] {
        let mut client = client_with(0);
        assert_eq!(client.peer_connect_protocol(), None);
        let server = Server::new(Limits {
            connect_protocol,
            ..Limits::default()
        });
        // Settings that do not speak of it leave it as it is.
        for settings in [server.output(), &Wire::server().bytes] {
            assert_eq!(events_of(&mut client, settings, &[]), [""; 0]);
            assert_eq!(client.peer_connect_protocol(), Some(connect_protocol));
        }
    }
}

#[test]
fn settings_that_cannot_be_or_are_taken_back_end_a_connection() {
    let taken_back = "the peer broke the protocol: settings that withdraw `:protocol`";
    for (frames, error) in [
        (&[&[0_u8][..], &[1, 1], &[1]][..], None),
        (&[&[2]], Some("failed to read a frame")),
        (&[&[1, 0]], Some("failed to read a frame")),
        (&[&[1], &[0]], Some(taken_back)),
    ] {
        let mut wire = Wire::default();
        for values in frames {
            let settings = values.iter().map(|value| [0, 8, 0, 0, 0, *value]);
            let payload: Vec<u8> = settings.flatten().collect();
            wire = wire.frame(kind::SETTINGS, 0, 0, &payload);
        }
        let mut client = client_with(0);
        let events = events_of(&mut client, &wire.bytes, &[]);
        let Some(error) = error else {
            assert_eq!(events, [""; 0]);
            assert_eq!(client.peer_connect_protocol(), Some(true));
            continue;
        };
        assert_eq!(events, [format!("failed: {error}")]);
        let code = client.output().last_chunk::<4>().copied().unwrap();
        assert_eq!(
            H2ErrorCode(u32::from_be_bytes(code)),
            H2ErrorCode::PROTOCOL_ERROR
        );
    }
}

#[test]
fn datagrams_go_both_ways() {
    let (mut client, mut server) = (Client::new(Limits::default()), proxy());
    let block = udp("h", 53).unwrap();
    let stream = client.request(&block, BodyLength::Unknown).unwrap();
    let mut capsules = Vec::new();
    for payload in [&b"ab"[..], b"", b"c"] {
        write_datagram(payload, &mut capsules);
    }
    let sent = client.send_body(stream, &capsules, false);
    assert_eq!(sent, Ok(capsules.len()));
    let (mut input, mut reader, mut payloads) = (client.output(), CapsuleReader::new(), Vec::new());
    while let (taken, Some(event)) = server.advance(input).unwrap() {
        input = &input[taken..];
        let ServerEvent::Body { mut bytes, .. } = event else {
            continue;
        };
        while let (taken, Some(payload)) = reader.advance(bytes).unwrap() {
            bytes = &bytes[taken..];
            payloads.push(payload.to_vec());
        }
    }
    assert_eq!(payloads, [b"ab".to_vec(), vec![], b"c".to_vec()]);
    assert_eq!(reader.finish(), Ok(()));
    // A header of a connection of HTTP/1.1 is left out.
    let headers = [("Connection", "close"), ("capsule-protocol", "?1")];
    let ok = H2ResponseBlock::new(200, &headers).unwrap();
    let stream = server.connection_stream(1);
    server.respond(stream, &ok, BodyLength::Unknown).unwrap();
    let sent = server.send_body(stream, b"\0\x04\0xyz", true);
    assert_eq!(sent, Ok(6));
    let events = events_of(&mut client, server.output(), &[]);
    assert_eq!(events, ["1 head 200", "1 body \\x00\\x04\\x00xyz", "1 end"]);
    assert!(client.peer_connect_protocol().unwrap());
}
