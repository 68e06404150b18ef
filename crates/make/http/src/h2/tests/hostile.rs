use super::*;
use crate::h2::frame::flag;
use proptest::prelude::*;

const DATA_ON_IDLE: &str = "failed: the peer broke the protocol: a frame on a stream that is idle";

#[test]
fn clients_refuse_what_servers_may_not_do() {
    let push = SettingsFrame {
        push: Some(true),
        ..SettingsFrame::default()
    };
    for (wire, error) in [
        (
            Wire::default().ok(1, true),
            "the peer broke the protocol: a frame before its settings",
        ),
        (
            Wire::default().frame(kind::SETTINGS, flag::ACK, 0, &[]),
            "the peer broke the protocol: a frame before its settings",
        ),
        (
            Wire::default().settings(&push),
            "the peer broke the protocol: a server that enables push",
        ),
        (
            Wire::server().frame(kind::SETTINGS, 1, 0, &[]).frame(
                kind::PUSH_PROMISE,
                4,
                1,
                &[0; 5],
            ),
            "the peer broke the protocol: a push promise, although push is disabled",
        ),
        (
            Wire::server().frame(kind::HEADERS, 4, 1, &[0x80]),
            "failed to read a header block",
        ),
        (
            Wire::server().frame(kind::PING, 0, 0, &[0]),
            "failed to read a frame",
        ),
        (
            Wire::server().frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]),
            "the peer broke the protocol: a window update of zero",
        ),
        (
            Wire::server().frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            "the peer broke the protocol: a window above 2³¹ − 1",
        ),
    ] {
        let mut client = client_with(1);
        let events = events_of(&mut client, &wire.bytes, &[]);
        assert_eq!(
            events,
            ["1 ConnectionLost".to_owned(), format!("failed: {error}")]
        );
        // The peer receives an error.
        let code = client.output().last_chunk::<4>().copied().unwrap();
        assert_ne!(u32::from_be_bytes(code), 0, "{error}");
    }
    for wire in [
        Wire::server().data(3, b"x", true),
        Wire::server().ok(3, true),
        Wire::server().ok(2, true),
    ] {
        assert_eq!(
            events_of(&mut client_with(1), &wire.bytes, &[])[1],
            DATA_ON_IDLE
        );
    }
    let wire = Wire::server().ok(1, true).data(1, b"x", true);
    let ended = "failed: the peer broke the protocol: a frame on a stream that has ended";
    assert_eq!(
        events_of(&mut client_with(1), &wire.bytes, &[]),
        ["1 head 200", "1 end", ended]
    );
}

#[test]
fn more_data_than_the_windows_allow_is_refused() {
    let limits = Limits {
        stream_window_bytes: 70_000,
        connection_window_bytes: 65_535,
        ..Limits::default()
    };
    let mut client = Client::new(limits);
    client.request(&get(), BodyLength::None).unwrap();
    let mut wire = Wire::server()
        .frame(kind::SETTINGS, flag::ACK, 0, &[])
        .ok(1, false);
    for _ in 0..8 {
        wire = wire.data(1, &[0; 16_000], false);
    }
    // Updates go out at half a window, so those who read them go on.
    let events = events_of(&mut client, &wire.bytes, &[]);
    assert_eq!(events.len(), 2, "{:?}", &events[2..]);
    let limits = Limits {
        stream_window_bytes: 10,
        ..limits
    };
    let mut client = Client::new(limits);
    client.request(&get(), BodyLength::None).unwrap();
    let wire = Wire::server().frame(kind::SETTINGS, flag::ACK, 0, &[]);
    let first = events_of(&mut client, &wire.bytes, &[]);
    assert_eq!(first, [""; 0]);
    client.request(&get(), BodyLength::None).unwrap();
    let wire = Wire::default()
        .ok(3, false)
        .data(3, &[b'x'; 11], true)
        .ok(1, true);
    let expected = [
        "3 head 200",
        "3 Malformed { what: \"more data than the window allowed\" }",
        "1 head 200",
        "1 end",
    ];
    assert_eq!(events_of(&mut client, &wire.bytes, &[]), expected);
}

#[test]
fn floods_are_cut_off() {
    let ping = |wire: Wire| wire.frame(kind::PING, 0, 0, &[0; 8]);
    let settings = |wire: Wire| wire.settings(&SettingsFrame::default());
    let reset = |count: u32| {
        move |wire: Wire| {
            (0..count).fold(wire, |wire, index| {
                wire.get(2 * index + 1).reset(2 * index + 1, 8)
            })
        }
    };
    let post = [(":method", "POST"), (":scheme", "http"), (":path", "/")];
    let empty = |wire: Wire| wire.data(1, b"", false);
    let unknown = |wire: Wire| wire.frame(77, 0, 0, b"x");
    let malformed = |count: u32| {
        move |wire: Wire| {
            (0..count).fold(wire, |wire, index| {
                wire.headers(2 * index + 1, &GET[1..], true)
            })
        }
    };
    let many =
        |step: fn(Wire) -> Wire, count: usize, wire| (0..count).fold(wire, |wire, _| step(wire));
    for (wire, what) in [
        (
            many(ping, 1_001, Wire::client()),
            "frames whose responses it does not read",
        ),
        (
            many(settings, 1_001, Wire::client()),
            "frames whose responses it does not read",
        ),
        (
            reset(1_001)(Wire::client()),
            "streams that it resets or that must be reset",
        ),
        (
            malformed(1_001)(Wire::client()),
            "streams that it resets or that must be reset",
        ),
        (
            many(empty, 10_001, Wire::client().headers(1, &post, false)),
            "data frames without data",
        ),
        (
            many(unknown, 10_001, Wire::client()),
            "frames without effect",
        ),
    ] {
        let mut server = Server::new(Limits::default());
        let events = events_of(&mut server, &wire.bytes, &[]);
        let expected = format!("failed: the peer sends too many {what}");
        assert_eq!(events.last(), Some(&expected));
        assert!(server.output().len() < 100_000);
    }
}

#[test]
fn a_client_that_reads_its_answers_may_send_more() {
    let mut server = Server::new(Limits::default());
    events_of(&mut server, &Wire::client().bytes, &[]);
    let ping = Wire::default().frame(kind::PING, 0, 0, &[0; 8]).bytes;
    for _ in 0..5_000 {
        assert_eq!(events_of(&mut server, &ping, &[]), [""; 0]);
        server.sent(server.output().len());
    }
}

/// Frames of which conversations are made, whole and broken.
fn any_wire() -> impl Strategy<Value = Vec<u8>> {
    let frame = (
        prop_oneof![4 => 0_u8..10, 1 => any::<u8>()],
        prop_oneof![
            Just(0_u8),
            Just(1),
            Just(4),
            Just(5),
            Just(0x2d),
            any::<u8>()
        ],
        0_u32..9,
        prop_oneof![
            Just(vec![0x82, 0x86, 0x84]),
            Just(vec![0x88]),
            Just(vec![0x83, 0x86, 0x84]),
            Just(vec![0, 0, 0, 8]),
            Just(vec![0; 8]),
            Just(vec![0, 4, 0, 0, 0, 9]),
            prop::collection::vec(any::<u8>(), 0..20),
        ],
    );
    let frame = frame.prop_map(|(kind, flags, stream, payload)| {
        Wire::default().frame(kind, flags, stream, &payload).bytes
    });
    let frames = prop::collection::vec(frame, 0..12).prop_map(|frames| frames.concat());
    (frames, prop::collection::vec(any::<u8>(), 0..20))
        .prop_map(|(frames, rest)| [frames, rest].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn for_all_bytes_and_cuts_both_sides_report_the_same(
        wire in any_wire(),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        requests in 0_usize..4,
    ) {
        let server = [Wire::server().bytes, wire.clone()].concat();
        let (mut whole, mut cut) = (client_with(requests), client_with(requests));
        let events = events_of(&mut whole, &server, &[]);
        prop_assert_eq!(&events_of(&mut cut, &server, &cuts), &events);
        prop_assert_eq!(cut.output(), whole.output());
        let ended = [events, events_of_end(&mut whole)].concat();
        for number in (1..).step_by(2).take(requests) {
            // Every request ends exactly once.
            let ends = |event_text: &&String| {
                event_text.strip_prefix(&format!("{number} ")).is_some_and(|rest| {
                    !["head", "body", "room"].iter().any(|word| rest.starts_with(word))
                })
            };
            prop_assert_eq!(ended.iter().filter(ends).count(), 1, "{}: {:?}", number, ended);
        }

        let client = [Wire::client().bytes, wire].concat();
        let (mut whole, mut cut) = (Server::new(Limits::default()), Server::new(Limits::default()));
        prop_assert_eq!(events_of(&mut cut, &client, &cuts), events_of(&mut whole, &client, &[]));
        prop_assert_eq!(cut.output(), whole.output());
    }
}
