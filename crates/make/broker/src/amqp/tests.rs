use proptest::prelude::*;

use super::*;

fn short(text: &str) -> ShortText {
    text.try_into().unwrap()
}

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let begin = begin_frame(kind, channel, &mut out);
    out.extend_from_slice(payload);
    end_frame(begin, &mut out);
    out
}

/// A method's payload: two numbers of two bytes, and arguments.
fn server_method(class: u16, id: u16, arguments: &[u8]) -> Vec<u8> {
    let mut payload = [class.to_be_bytes(), id.to_be_bytes()].concat();
    payload.extend_from_slice(arguments);
    frame(METHOD, 1, &payload)
}

#[test]
fn every_frame_is_read_wherever_it_is_cut() {
    let ack = |multiple| [&7_u64.to_be_bytes()[..], &[multiple]].concat();
    let close = [&404_u16.to_be_bytes()[..], b"\x02no", &[0; 4]].concat();
    let start = [
        &b"\0\x09"[..],
        &[0, 0, 0, 0],
        b"\0\0\0\x05PLAIN",
        b"\0\0\0\0",
    ]
    .concat();
    let tune = [&[0, 9][..], &131_072_u32.to_be_bytes(), &[0, 60]].concat();
    for (bytes, expected) in [
        (
            server_method(10, 10, &start),
            ServerFrame::Start {
                mechanisms: b"PLAIN",
            },
        ),
        (
            server_method(10, 30, &tune),
            ServerFrame::Tune { frame_max: 131_072 },
        ),
        (server_method(10, 41, &[0]), ServerFrame::Opened),
        (server_method(20, 11, &[0; 4]), ServerFrame::ChannelOpened),
        (server_method(85, 11, &[]), ServerFrame::Confirming),
        (
            server_method(60, 80, &ack(1)),
            ServerFrame::Ack {
                number: 7,
                and_before: true,
            },
        ),
        (
            server_method(60, 120, &ack(0)),
            ServerFrame::Nack {
                number: 7,
                and_before: false,
            },
        ),
        (
            server_method(60, 50, &312_u16.to_be_bytes()),
            ServerFrame::Returned { code: 312 },
        ),
        (
            server_method(20, 40, &close),
            ServerFrame::ChannelClosed {
                code: 404,
                text: b"no",
            },
        ),
        (
            server_method(10, 50, &close),
            ServerFrame::ConnectionClosed {
                code: 404,
                text: b"no",
            },
        ),
        (server_method(10, 51, &[]), ServerFrame::Goodbye),
        (frame(HEARTBEAT, 0, &[]), ServerFrame::Other),
        (frame(BODY, 1, b"returned"), ServerFrame::Other),
    ] {
        assert_eq!(read(&bytes), Ok(Some((expected, bytes.len()))));
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), Ok(None), "{expected:?} at {cut}");
        }
    }
}

#[test]
fn what_is_no_amqp_is_refused() {
    assert!(read(b"AMQP\0\0\x09\x01").is_err());
    assert!(read(b"HTTP/1.1 400").is_err());
    assert!(read(&server_method(60, 80, &[0; 4])).is_err());
    let mut without_end = frame(METHOD, 1, &[0, 10, 0, 41]);
    *without_end.last_mut().unwrap() = 0;
    assert!(read(&without_end).is_err());
    assert!(read(&[METHOD, 0, 0, 0xff, 0xff, 0xff, 0xff]).is_err());
}

/// Returns kind, channel and payload of each frame in `bytes`.
fn frames(mut bytes: &[u8]) -> Vec<(u8, u16, Vec<u8>)> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let length = u32::from_be_bytes(bytes[3..7].try_into().unwrap()) as usize;
        assert_eq!(bytes[7 + length], FRAME_END);
        let channel = u16::from_be_bytes([bytes[1], bytes[2]]);
        frames.push((bytes[0], channel, bytes[7..7 + length].to_vec()));
        bytes = &bytes[8 + length..];
    }
    frames
}

#[test]
fn a_returned_message_is_known_by_its_number() {
    let publisher = Publisher::new(&short("x"), &short("key"), (true, true), FRAME_BYTES_MAX);
    let mut out = Vec::new();
    publisher.write(b"hello", 12_345, &mut out);
    let parts = frames(&out);
    assert_eq!(parts.len(), 3);
    assert_eq!(parts[0].2, b"\0\x3c\0\x28\0\0\x01x\x03key\x01");
    assert_eq!(parts[2].2, b"hello");
    let header = frame(HEADER, 1, &parts[1].2);
    let number = Some(12_345);
    let expected = ServerFrame::Properties { number };
    assert_eq!(read(&header), Ok(Some((expected, header.len()))));
}

#[test]
fn credentials_are_sent_by_plain() {
    let mut out = Vec::new();
    write_start_ok("guest", "secret", &mut out);
    let parts = frames(&out);
    assert_eq!(parts[0].1, 0);
    let plain = b"\x05PLAIN\0\0\0\x0d\0guest\0secret\x05en_US";
    assert!(parts[0].2.ends_with(plain));
    let mut cursor = Cursor::new(&parts[0].2[4..], "a test");
    let table = long_text(&mut cursor).unwrap();
    assert!(table.starts_with(b"\x07productS\0\0\0\x09stillwell"));
}

#[test]
fn frames_are_no_larger_than_the_server_takes() {
    let (mut out, root) = (Vec::new(), short("/"));
    assert_eq!(write_tune_ok(0, &root, &mut out), FRAME_BYTES_MAX);
    assert_eq!(write_tune_ok(100, &root, &mut out), FRAME_BYTES_MIN);
    assert_eq!(write_tune_ok(u32::MAX, &root, &mut out), FRAME_BYTES_MAX);
    assert_eq!(frames(&out).len(), 6);
}

proptest! {
    #[test]
    fn for_all_messages_the_parts_make_the_whole(length in 0_usize..20_000, frame_max in 4096_u32..9000) {
        let message: Vec<u8> = (0..=250).cycle().take(length).collect();
        let publisher = Publisher::new(&short(""), &short("queue"), (false, false), frame_max);
        let mut out = Vec::new();
        publisher.write(&message, 1, &mut out);
        let parts = frames(&out);
        let joined: Vec<u8> = parts[2..].iter().flat_map(|(_, _, payload)| payload.clone()).collect();
        prop_assert_eq!(joined, message);
        let header = &parts[1].2;
        prop_assert_eq!(u64::from_be_bytes(header[4..12].try_into().unwrap()), length as u64);
        let part_bytes_max = frame_max as usize - AROUND;
        prop_assert!(parts.iter().all(|(_, _, payload)| payload.len() <= part_bytes_max));
    }

    #[test]
    fn for_all_bytes_nothing_is_read_beyond_them(kind in 1_u8..9, payload: Vec<u8>) {
        let bytes = frame(kind, 1, &payload);
        if let Ok(Some((_, used))) = read(&bytes) {
            prop_assert_eq!(used, bytes.len());
        }
    }
}

const AROUND: usize = 8;
