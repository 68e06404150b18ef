//! HTTP/2, gRPC and capsules: the same events, however the bytes are cut, within limits.

use std::collections::BTreeMap;
use std::fmt::Debug;

use stillwell_http::Scheme;
use stillwell_http::capsule::{CapsuleReader, UDP_PAYLOAD_BYTES_MAX, write_datagram};
use stillwell_http::grpc::{GrpcMessageReader, MessageCounter};
use stillwell_http::h2::frame::{Frame, FrameReader};
use stillwell_http::h2::hpack::{Decoder, Encoder};
use stillwell_http::h2::{
    BodyLength, Client, ClientEvent, FieldList, H2RequestBlock, H2ResponseBlock, Limits, Server,
    ServerEvent, Stream,
};

/// Events, with the parts of each body put together.
#[derive(Debug, Default, PartialEq)]
struct H2Events {
    events: Vec<String>,
    bodies: BTreeMap<u32, Vec<u8>>,
}

impl H2Events {
    fn record(&mut self, what: &impl Debug) {
        self.events.push(format!("{what:?}"));
    }

    fn part(&mut self, stream: u32, bytes: &[u8]) {
        self.bodies
            .entry(stream)
            .or_default()
            .extend_from_slice(bytes);
    }

    /// Nothing more arrives on `stream`.
    fn end(&mut self, stream: u32, what: &impl Debug) {
        let body = self.bodies.remove(&stream);
        self.record(&(stream, what, body));
    }
}

/// Blocks, each behind a byte with its length: what was decoded can be encoded
/// and is the same again, and lists keep to their limit.
pub fn hpack(bytes: &[u8]) {
    const LIST_BYTES_MAX: usize = 8 << 10;
    let (mut decoder, mut list) = (Decoder::new(LIST_BYTES_MAX), FieldList::new());
    let (mut encoder, mut again) = (Encoder::new(300), Decoder::new(LIST_BYTES_MAX));
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first() {
        let (block, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        if decoder.decode(block, &mut list).is_err() {
            return;
        }
        assert!(list.fields().bytes_len() <= LIST_BYTES_MAX);
        let (mut encoded, mut same) = (Vec::new(), FieldList::new());
        encoder.encode(list.fields().iter(), &mut encoded);
        again
            .decode(&encoded, &mut same)
            .expect("encoded text can be decoded");
        assert_eq!(same.fields(), list.fields());
    }
}

/// Frames are the same whole and in parts.
pub fn h2_frames(bytes: &[u8]) {
    same_however_cut(
        bytes,
        || FrameReader::new(16 << 10, 4 << 10),
        |reader, input, events| {
            let (taken, frame) = match reader.advance(input) {
                Ok(step) => step,
                Err(error) => {
                    events.record(&error);
                    return None;
                }
            };
            match &frame {
                Some(Frame::Data {
                    stream,
                    bytes,
                    end_frame,
                    end_stream,
                    ..
                }) => {
                    events.part(*stream, bytes);
                    if *end_frame {
                        events.end(*stream, end_stream);
                    }
                }
                Some(Frame::Headers { .. } | Frame::PushPromise { .. }) => {
                    events.record(&(frame, reader.block()));
                }
                Some(frame) => events.record(frame),
                None => {}
            }
            Some((taken, frame.is_some()))
        },
    );
}

/// A client with a few requests under way: each of them ends once.
pub fn h2_client(bytes: &[u8]) {
    const REQUESTS: usize = 5;
    let new = || {
        let mut client = Client::new(Limits::default());
        for method in ["GET", "HEAD", "GET", "POST", "GET"] {
            let request = H2RequestBlock::new(method, Scheme::Http, "h", "/", &[])
                .expect("this is a request");
            let body = match method {
                "POST" => BodyLength::Unknown,
                _ => BodyLength::None,
            };
            let stream = client.request(&request, body).expect("there is room");
            if method == "POST" {
                send_on(stream, |stream, bytes| {
                    client.send_body(stream, bytes, true)
                });
            }
        }
        (client, 0)
    };
    same_however_cut(bytes, new, |(client, ended), input, events| {
        let mut room = None;
        let step = match client.advance(input) {
            Ok((taken, event)) => {
                match event {
                    Some(ClientEvent::Body { stream, bytes }) => {
                        events.part(stream.number(), bytes)
                    }
                    Some(ClientEvent::End { stream, .. } | ClientEvent::Failed { stream, .. }) => {
                        events.end(stream.number(), &event);
                        *ended += 1;
                    }
                    Some(ClientEvent::Room { stream }) => room = Some(stream),
                    Some(event) => events.record(&event),
                    None => {}
                }
                Some((taken, event.is_some()))
            }
            Err(error) => {
                assert_eq!(*ended, REQUESTS, "a request that never ends");
                events.record(&(error, digest(client.output())));
                None
            }
        };
        if let Some(stream) = room {
            send_on(stream, |stream, bytes| {
                client.send_body(stream, bytes, true)
            });
        }
        assert_eq!(client.open_streams() + *ended, REQUESTS);
        step
    });
}

/// A server that answers every request.
pub fn h2_server(bytes: &[u8]) {
    let response = H2ResponseBlock::new(200, &[]).expect("this is a response");
    let new = || Server::new(Limits::default());
    same_however_cut(bytes, new, |server, input, events| {
        let (mut room, mut whole) = (None, None);
        let step = match server.advance(input) {
            Ok((taken, event)) => {
                match event {
                    Some(ServerEvent::Body { stream, bytes }) => {
                        events.part(stream.number(), bytes)
                    }
                    Some(ServerEvent::Failed { stream, .. }) => events.end(stream.number(), &event),
                    Some(ServerEvent::End { stream, .. }) => {
                        events.end(stream.number(), &event);
                        whole = Some(stream);
                    }
                    Some(ServerEvent::Room { stream }) => room = Some(stream),
                    Some(event) => events.record(&event),
                    None => {}
                }
                Some((taken, event.is_some()))
            }
            Err(error) => {
                assert_eq!(server.open_streams(), 0, "a request that never ends");
                events.record(&(error, digest(server.output())));
                None
            }
        };
        if let Some(stream) = whole {
            server
                .respond(stream, &response, BodyLength::Unknown)
                .expect("a whole request can be answered");
        }
        if let Some(stream) = whole.or(room) {
            send_on(stream, |stream, bytes| {
                server.send_body(stream, bytes, true)
            });
        }
        assert!(server.output().len() < 4 << 20, "output without bounds");
        step
    });
}

/// Messages are the same whole and in parts.
pub fn grpc_messages(bytes: &[u8]) {
    same_however_cut(
        bytes,
        || GrpcMessageReader::new(4 << 10),
        |reader, input, events| {
            let (taken, message) = match reader.advance(input) {
                Ok(step) => step,
                Err(error) => {
                    events.record(&error);
                    return None;
                }
            };
            if let Some(message) = message {
                events.record(&message);
            }
            Some((taken, message.is_some()))
        },
    );
    messages_are_counted(bytes);
}

/// Counted messages are the messages that are read.
fn messages_are_counted(bytes: &[u8]) {
    let (mut counter, mut reader) = (MessageCounter::default(), GrpcMessageReader::new(u32::MAX));
    let counted = bytes.chunks(7).try_for_each(|piece| counter.take(piece));
    let (mut rest, mut messages) = (bytes, 0);
    let read = loop {
        match reader.advance(rest) {
            Ok((taken, Some(_))) => (rest, messages) = (&rest[taken..], messages + 1),
            Ok((_, None)) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    assert_eq!((counted, counter.messages()), (read, messages));
}

/// Datagrams are the same whole and in parts, no longer than packets are, and read as
/// they are written.
pub fn capsules(bytes: &[u8]) {
    same_however_cut(bytes, CapsuleReader::new, |reader, input, events| {
        let (taken, payload) = match reader.advance(input) {
            Ok(step) => step,
            Err(error) => {
                events.record(&error);
                return None;
            }
        };
        if let Some(payload) = payload {
            assert!(payload.len() <= UDP_PAYLOAD_BYTES_MAX);
            let (mut again, mut capsule) = (CapsuleReader::new(), Vec::new());
            write_datagram(payload, &mut capsule);
            assert_eq!(again.advance(&capsule), Ok((capsule.len(), Some(payload))));
            events.record(&payload);
        }
        Some((taken, payload.is_some()))
    });
}

/// Distinguishes outputs.
fn digest(output: &[u8]) -> u64 {
    output.iter().fold(output.len() as u64, |digest, byte| {
        digest.wrapping_mul(31).wrapping_add(u64::from(*byte))
    })
}

/// Sends what is there to send; all of it is the same, so it does not matter
/// where it goes on.
fn send_on<E: Debug>(stream: Stream, send: impl FnOnce(Stream, &[u8]) -> Result<usize, E>) {
    send(stream, &[b'x'; 70_000]).expect("a stream that has room is open");
}

/// The first byte says how the others are cut. A step gives what was taken and
/// whether there was an event, or nothing once it has failed.
fn same_however_cut<P>(
    bytes: &[u8],
    new: impl Fn() -> P,
    step: impl Fn(&mut P, &[u8], &mut H2Events) -> Option<(usize, bool)>,
) {
    let Some((cut, message)) = bytes.split_first() else {
        return;
    };
    let parsed = |parts: &[&[u8]]| {
        let (mut reader, mut events) = (new(), H2Events::default());
        for part in parts {
            let mut read = 0;
            loop {
                let Some((taken, is_event)) = step(&mut reader, &part[read..], &mut events) else {
                    return events;
                };
                read += taken;
                if !is_event {
                    assert_eq!(read, part.len(), "all is taken before there is no event");
                    break;
                }
            }
        }
        events
    };
    let parts: Vec<&[u8]> = message.chunks(usize::from(*cut) + 1).collect();
    assert_eq!(parsed(&parts), parsed(&[message]));
}
