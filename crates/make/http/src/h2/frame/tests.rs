use proptest::prelude::*;

use super::*;

const BLOCK_BYTES_MAX: usize = 40_000;

/// A frame from a reader. Parts of a DATA frame are joined.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Data(u32, Vec<u8>, u32, bool),
    Block(String, Vec<u8>),
    Other(String),
    Failed(FrameError),
    Unfinished,
}

fn read(bytes: &[u8], cuts: &[usize]) -> Vec<Seen> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let mut reader = FrameReader::new(FRAME_BYTES_DEFAULT, BLOCK_BYTES_MAX);
    let (mut seen, mut open, mut start) = (Vec::new(), None, 0);
    for end in cuts {
        loop {
            match reader.advance(&bytes[start..end]) {
                Ok((taken, Some(frame))) => {
                    start += taken;
                    record(&reader, frame, &mut open, &mut seen);
                }
                Ok((taken, None)) => {
                    assert_eq!(taken, end - start, "input was left without a frame");
                    start = end;
                    break;
                }
                Err(error) => {
                    assert_eq!(reader.advance(b"x"), Err(error), "a failure was forgotten");
                    seen.push(Seen::Failed(error));
                    return seen;
                }
            }
        }
    }
    if !reader.is_idle() {
        seen.push(Seen::Unfinished);
    }
    seen
}

fn record(
    reader: &FrameReader,
    frame: Frame<'_>,
    open: &mut Option<(Vec<u8>, u32, u32)>,
    seen: &mut Vec<Seen>,
) {
    match frame {
        Frame::Data {
            stream,
            bytes,
            charged_bytes,
            data_bytes,
            end_frame,
            end_stream,
        } => {
            assert!(end_frame || !end_stream, "a stream ends within a frame");
            let (data, charged, announced) = open.get_or_insert_default();
            data.extend_from_slice(bytes);
            *charged += charged_bytes;
            *announced += data_bytes;
            if end_frame && let Some((data, charged, announced)) = open.take() {
                assert_eq!(data.len(), usize::try_from(announced).unwrap());
                seen.push(Seen::Data(stream, data, charged, end_stream));
            }
        }
        Frame::Headers { .. } | Frame::PushPromise { .. } => {
            seen.push(Seen::Block(format!("{frame:?}"), reader.block().to_vec()));
        }
        frame => seen.push(Seen::Other(format!("{frame:?}"))),
    }
}

fn frame_events(frame: Frame<'_>) -> Seen {
    Seen::Other(format!("{frame:?}"))
}

/// Bytes of some frames, and what they are.
fn any_frame() -> impl Strategy<Value = (Vec<u8>, Seen)> {
    let stream = 1_u32..1 << 31;
    let payload = prop::collection::vec(any::<u8>(), 0..60);
    let data = (
        stream.clone(),
        payload.clone(),
        prop::option::of(any::<u8>()),
        any::<bool>(),
    );
    let headers = (
        stream.clone(),
        payload.clone(),
        prop::option::of(any::<u8>()),
        any::<[bool; 3]>(),
    );
    prop_oneof![
        data.prop_map(|(stream, data, padding, end)| padded_data(stream, &data, padding, end)),
        headers.prop_map(|(stream, block, padding, [end, priority, promise])| {
            any_headers(stream, &block, padding, end, priority, promise)
        }),
        (stream.clone(), any::<u32>()).prop_map(|(stream, code)| {
            let (mut out, code) = (Vec::new(), H2ErrorCode(code));
            write_reset(stream, code, &mut out);
            (out, frame_events(Frame::Reset { stream, code }))
        }),
        (any::<[u8; 8]>(), any::<bool>()).prop_map(|(payload, ack)| {
            let mut out = Vec::new();
            write_ping(payload, ack, &mut out);
            (out, frame_events(Frame::Ping { payload, ack }))
        }),
        (stream.clone(), any::<u32>()).prop_map(|(last_stream, code)| {
            let (mut out, code) = (Vec::new(), H2ErrorCode(code));
            write_go_away(last_stream, code, &mut out);
            (out, frame_events(Frame::GoAway { last_stream, code }))
        }),
        (0_u32..1 << 31, 0_u32..1 << 31).prop_map(|(stream, increment_bytes)| {
            let mut out = Vec::new();
            write_window_update(stream, increment_bytes, &mut out);
            (
                out,
                frame_events(Frame::WindowUpdate {
                    stream,
                    increment_bytes,
                }),
            )
        }),
        (any::<[Option<u16>; 7]>(), any::<bool>())
            .prop_map(|(numbers, ack)| any_settings(numbers, ack)),
        (stream, 10_u8.., payload, any::<u8>()).prop_map(|(stream, kind, payload, flags)| {
            let mut out = Vec::new();
            write_frame(kind, flags, stream, &payload, &mut out);
            (out, frame_events(Frame::Ignored { kind }))
        }),
        any::<[u8; 5]>().prop_map(|payload| {
            let mut out = Vec::new();
            write_frame(kind::PRIORITY, 0, 7, &payload, &mut out);
            (out, frame_events(Frame::Priority { stream: 7 }))
        }),
    ]
}

fn padded_data(stream: u32, data: &[u8], padding: Option<u8>, end: bool) -> (Vec<u8>, Seen) {
    let mut out = Vec::new();
    let charged = data.len() + padding.map_or(0, |padding| 1 + usize::from(padding));
    match padding {
        None => write_data(stream, data, end, &mut out),
        Some(padding) => {
            let fill = vec![0; usize::from(padding)];
            let payload = [&[padding], data, &fill].concat();
            write_frame(
                kind::DATA,
                flag::PADDED | u8::from(end),
                stream,
                &payload,
                &mut out,
            );
        }
    }
    let charged = u32::try_from(charged).unwrap();
    (out, Seen::Data(stream, data.to_vec(), charged, end))
}

fn any_headers(
    stream: u32,
    block: &[u8],
    padding: Option<u8>,
    end: bool,
    priority: bool,
    promise: bool,
) -> (Vec<u8>, Seen) {
    let mut out = Vec::new();
    let frame = match promise {
        true => Frame::PushPromise {
            stream,
            promised: 2,
        },
        false => Frame::Headers {
            stream,
            end_stream: end,
        },
    };
    let seen = Seen::Block(format!("{frame:?}"), block.to_vec());
    if padding.is_none() && !priority && !promise {
        write_headers(stream, block, end, 7, &mut out);
        return (out, seen);
    }
    // The first half, then what continues it.
    let (first, second) = block.split_at(block.len() / 2);
    let fill = vec![0; usize::from(padding.unwrap_or(0))];
    let (mut payload, mut flags) = (Vec::new(), 0);
    if let Some(padding) = padding {
        payload.push(padding);
        flags |= flag::PADDED;
    }
    let kind = if promise {
        payload.extend_from_slice(&[0, 0, 0, 2]);
        kind::PUSH_PROMISE
    } else {
        payload.extend_from_slice(if priority { &[9; 5] } else { &[] });
        flags |= if priority { flag::PRIORITY } else { 0 };
        flags |= u8::from(end);
        kind::HEADERS
    };
    payload.extend_from_slice(first);
    payload.extend_from_slice(&fill);
    write_frame(kind, flags, stream, &payload, &mut out);
    write_frame(
        kind::CONTINUATION,
        flag::END_HEADERS,
        stream,
        second,
        &mut out,
    );
    (out, seen)
}

fn any_settings(numbers: [Option<u16>; 7], ack: bool) -> (Vec<u8>, Seen) {
    let mut out = Vec::new();
    if ack {
        write_settings_ack(&mut out);
        return (out, frame_events(Frame::SettingsAck));
    }
    let numbers = numbers.map(|number| number.map(u32::from));
    let [table, push, streams, window, frame, list, connect] = numbers;
    let settings = SettingsFrame {
        header_table_bytes: table,
        push: push.map(|push| push % 2 == 0),
        concurrent_streams_max: streams,
        initial_window_bytes: window,
        frame_bytes_max: frame.map(|bytes| bytes + (1 << 14)),
        header_list_bytes_max: list,
        connect_protocol: connect.map(|connect| connect % 2 == 0),
    };
    write_settings(&settings, &mut out);
    (out, frame_events(Frame::Settings(settings)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn for_all_frames_and_cuts_what_is_written_is_read(
        frames in prop::collection::vec(any_frame(), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let (bytes, expected): (Vec<_>, Vec<_>) = frames.into_iter().unzip();
        prop_assert_eq!(read(&bytes.concat(), &cuts), expected);
    }

    #[test]
    fn for_all_bytes_and_cuts_the_frames_are_the_same(
        heads in prop::collection::vec(
            (0_u32..40, 0_u8..11, any::<u8>(), 0_u32..3, prop::collection::vec(0_u8..9, 0..40)), 0..8),
        rest in prop::collection::vec(any::<u8>(), 0..60),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut bytes = Vec::new();
        for (length, kind, flags, stream, payload) in heads {
            // Mostly of the length that they say.
            let length = if length < 4 { length } else { u32::try_from(payload.len()).unwrap() };
            bytes.extend_from_slice(&length.to_be_bytes()[1..]);
            bytes.extend_from_slice(&[kind, flags]);
            bytes.extend_from_slice(&stream.to_be_bytes());
            bytes.extend_from_slice(&payload);
        }
        bytes.extend(rest);
        prop_assert_eq!(read(&bytes, &cuts), read(&bytes, &[]));
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(kind, flags, stream, payload, &mut out);
    out
}

fn check_refused(bytes: &[u8], error: FrameError) {
    let cuts: Vec<usize> = (0..bytes.len().min(30)).collect();
    assert_eq!(read(bytes, &[]), [Seen::Failed(error)], "{bytes:x?}");
    assert_eq!(read(bytes, &cuts), [Seen::Failed(error)], "cut: {bytes:x?}");
}

#[test]
fn frames_on_the_wrong_stream_or_of_the_wrong_length_are_refused() {
    for (kind, stream) in [(0, 0), (1, 0), (3, 0), (9, 0), (4, 1), (6, 1), (7, 1)] {
        let bytes = frame(kind, 4, stream, &[0; 8]);
        check_refused(&bytes, FrameError::Stream { kind, stream });
    }
    for (kind, flags, bytes) in [
        (2, 0, 4),
        (3, 0, 5),
        (4, 0, 5),
        (4, 1, 6),
        (6, 0, 7),
        (7, 0, 7),
        (8, 0, 3),
        (1, 0x24, 4),
        (5, 4, 3),
    ] {
        let stream = u32::from(!matches!(kind, 4 | 6 | 7));
        let payload = vec![0; usize::try_from(bytes).unwrap()];
        let wire = frame(kind, flags, stream, &payload);
        check_refused(&wire, FrameError::Length { kind, bytes });
    }
    let (bytes, bytes_max) = (16_385, FRAME_BYTES_DEFAULT);
    let wire = frame(0, 0, 1, &[0; 16_385]);
    check_refused(&wire, FrameError::TooLarge { bytes, bytes_max });
}

#[test]
fn frames_with_an_impossible_content_are_refused() {
    for (flags, kind, payload) in [
        (8, 0, &[][..]),
        (8, 0, &[1]),
        (12, 1, &[2, 0]),
        (12, 5, &[]),
    ] {
        check_refused(&frame(kind, flags, 1, payload), FrameError::Padding);
    }
    for bytes in [
        frame(9, 4, 1, b""),
        [frame(1, 0, 1, b""), frame(9, 4, 3, b"")].concat(),
        [frame(1, 0, 1, b""), frame(0, 0, 1, b"")].concat(),
    ] {
        check_refused(&bytes, FrameError::Continuation);
    }
    for (identifier, value) in [(2, 2), (4, 1 << 31), (5, 1), (5, 1 << 24), (8, 2)] {
        let identifier_bytes = u16::to_be_bytes(identifier);
        let payload = [&identifier_bytes[..], &u32::to_be_bytes(value)].concat();
        let error = FrameError::Setting { identifier, value };
        check_refused(&frame(4, 0, 0, &payload), error);
    }
    // In the clear and behind the mark of those who may not share.
    for payload in [[0, 0, 0, 5, 9], [0x80, 0, 0, 5, 9]] {
        let error = FrameError::SelfDependency { stream: 5 };
        check_refused(&frame(kind::PRIORITY, 0, 5, &payload), error);
        let flags = flag::PRIORITY | flag::END_HEADERS;
        check_refused(&frame(kind::HEADERS, flags, 5, &payload), error);
    }
}

#[test]
fn header_blocks_have_a_limit_in_bytes_and_in_frames() {
    for fragment in [&[0; 10_000][..], &[]] {
        let mut bytes = Vec::new();
        write_frame(kind::HEADERS, 0, 1, &[], &mut bytes);
        for _ in 0..100 {
            write_frame(kind::CONTINUATION, 0, 1, fragment, &mut bytes);
        }
        assert_eq!(read(&bytes, &[]), [Seen::Failed(FrameError::BlockTooLarge)]);
    }
}
