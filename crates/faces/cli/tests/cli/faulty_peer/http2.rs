//! All that a server of HTTP/2 can get wrong, frame by frame.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::server::PeerSession;

/// A fault of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    ResetAtAccept,
    CloseAtAccept,
    Garbage,
    Http1,
    ResetUnanswered,
    CloseUnanswered,
    ResetMidAnswer,
    HalfBody,
    StallMidAnswer,
    Silent,
    CloseAfterThree,
    StreamReset,
    StreamRefused,
    GoAwayAtOnce,
    GoAwayAfterThree,
    FrameTooLong,
    BadHpack,
    HeadOf64KiB,
    EndlessHead,
    SettingsFlood,
    PingFlood,
    GoAwayFlood,
    NoStreams,
    NoWindow,
    Promise,
    NoStatus,
    DataFirst,
    MoreThanItsLength,
}

mod kind {
    pub(super) const DATA: u8 = 0;
    pub(super) const HEADERS: u8 = 1;
    pub(super) const RESET: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;
    pub(super) const PROMISE: u8 = 5;
    pub(super) const PING: u8 = 6;
    pub(super) const GO_AWAY: u8 = 7;
    pub(super) const CONTINUATION: u8 = 9;
}

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200`, from the static table.
const OK: &[u8] = &[0x88];

/// Length of the HTTP/2 preface.
const PREFACE_BYTES: usize = 24;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn setting(number: u16, value: u32) -> Vec<u8> {
    [number.to_be_bytes().as_slice(), &value.to_be_bytes()].concat()
}

/// A field that no table has, with its name and value as they are.
fn field(name: &str, value: &str) -> Vec<u8> {
    let lengths = [name, value].map(|text| u8::try_from(text.len()).unwrap());
    assert!(
        lengths.iter().all(|length| *length < 127),
        "longer than one byte says"
    );
    let parts: [&[u8]; 5] = [
        &[0],
        &lengths[..1],
        name.as_bytes(),
        &lengths[1..],
        value.as_bytes(),
    ];
    parts.concat()
}

pub(super) async fn serve_session(fault: Fault, mut session: PeerSession) -> io::Result<()> {
    match fault {
        Fault::ResetAtAccept => return session.reset(),
        Fault::CloseAtAccept => return Ok(()),
        _ => {}
    }
    let mut preface = [0; PREFACE_BYTES];
    session.stream.read_exact(&mut preface).await?;
    let settings = match fault {
        Fault::Garbage => return session.stream.write_all(&[0xa5; 64]).await,
        Fault::Http1 => {
            let answer = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n";
            return session.stream.write_all(answer).await;
        }
        Fault::NoStreams => setting(3, 0),
        Fault::NoWindow => setting(4, 0),
        _ => Vec::new(),
    };
    session
        .stream
        .write_all(&frame(kind::SETTINGS, 0, 0, &settings))
        .await?;
    if let Fault::SettingsFlood | Fault::PingFlood | Fault::GoAwayFlood = fault {
        return flood(fault, &mut session).await;
    }
    let mut answered = 0;
    while let Some((kind, flags, stream)) = take_frame(&mut session).await? {
        match kind {
            kind::SETTINGS if flags & ACK == 0 => {
                session
                    .stream
                    .write_all(&frame(kind::SETTINGS, ACK, 0, &[]))
                    .await?;
            }
            kind::HEADERS if answered < 3 || fault != Fault::GoAwayAfterThree => {
                session.saw_request();
                answered += 1;
                match fault {
                    Fault::ResetUnanswered => return session.reset(),
                    Fault::CloseUnanswered => return Ok(()),
                    Fault::Silent => return session.fall_silent().await,
                    Fault::NoWindow => {}
                    _ => {
                        session
                            .stream
                            .write_all(&faulty_response(fault, stream, answered))
                            .await?
                    }
                }
                match fault {
                    Fault::EndlessHead => return endless_head(stream, &mut session).await,
                    Fault::ResetMidAnswer => return session.reset(),
                    Fault::HalfBody | Fault::GoAwayAtOnce => return Ok(()),
                    Fault::StallMidAnswer => return session.fall_silent().await,
                    Fault::CloseAfterThree if answered == 3 => return Ok(()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The answer to request number `answered` on `stream`.
fn faulty_response(fault: Fault, stream: u32, answered: u32) -> Vec<u8> {
    let head = |flags: u8, block: &[u8]| frame(kind::HEADERS, END_HEADERS | flags, stream, block);
    let well = || [head(0, OK), frame(kind::DATA, END_STREAM, stream, b"hello")].concat();
    match fault {
        Fault::HalfBody | Fault::StallMidAnswer | Fault::ResetMidAnswer => {
            let block = [OK, &field("content-length", "10")].concat();
            [head(0, &block), frame(kind::DATA, 0, stream, b"hello")].concat()
        }
        Fault::StreamReset => frame(kind::RESET, 0, stream, &[0, 0, 0, 2]),
        // What was sent before it was known that nothing may be.
        Fault::StreamRefused | Fault::NoStreams => frame(kind::RESET, 0, stream, &[0, 0, 0, 7]),
        Fault::GoAwayAtOnce => frame(kind::GO_AWAY, 0, 0, &[0; 8]),
        Fault::GoAwayAfterThree if answered == 3 => {
            let last = [&stream.to_be_bytes()[..], &[0; 4]].concat();
            [well(), frame(kind::GO_AWAY, 0, 0, &last)].concat()
        }
        Fault::FrameTooLong => vec![0xff, 0xff, 0xff, kind::DATA, 0, 0, 0, 0, 1],
        Fault::BadHpack => head(END_STREAM, &[0x80]),
        Fault::HeadOf64KiB => {
            let fields = (0..700).map(|_| field("x-huge", &"a".repeat(100)));
            let block = [OK.to_vec(), fields.collect::<Vec<_>>().concat()].concat();
            let mut parts = block.chunks(16 << 10);
            let first = parts.next().unwrap_or_default();
            let mut bytes = frame(kind::HEADERS, END_STREAM, stream, first);
            let mut parts = parts.peekable();
            while let Some(part) = parts.next() {
                let flags = if parts.peek().is_none() {
                    END_HEADERS
                } else {
                    0
                };
                bytes.extend(frame(kind::CONTINUATION, flags, stream, part));
            }
            bytes
        }
        Fault::EndlessHead => frame(kind::HEADERS, END_STREAM, stream, OK),
        Fault::Promise => {
            let block = [&[0, 0, 0, 2], OK].concat();
            frame(kind::PROMISE, END_HEADERS, stream, &block)
        }
        Fault::NoStatus => head(END_STREAM, &field("a", "b")),
        Fault::DataFirst => frame(kind::DATA, END_STREAM, stream, b"hello"),
        Fault::MoreThanItsLength => {
            let block = [OK, &field("content-length", "1")].concat();
            [
                head(0, &block),
                frame(kind::DATA, END_STREAM, stream, b"hello"),
            ]
            .concat()
        }
        _ => well(),
    }
}

async fn endless_head(stream: u32, session: &mut PeerSession) -> io::Result<()> {
    let more = frame(kind::CONTINUATION, 0, stream, &field("x-more", "and more"));
    session.write_endlessly(&more).await
}

async fn flood(fault: Fault, session: &mut PeerSession) -> io::Result<()> {
    let again = match fault {
        Fault::PingFlood => frame(kind::PING, 0, 0, &[1; 8]),
        Fault::GoAwayFlood => frame(kind::GO_AWAY, 0, 0, &[0, 0, 0xff, 0xff, 0, 0, 0, 0]),
        _ => frame(kind::SETTINGS, 0, 0, &setting(3, 100)),
    };
    session.write_endlessly(&again).await
}

/// The kind, the flags and the stream of the next frame; none at the end.
async fn take_frame(session: &mut PeerSession) -> io::Result<Option<(u8, u8, u32)>> {
    session.flush().await?;
    let mut head = [0; 9];
    if let Err(error) = session.stream.read_exact(&mut head).await {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(None),
            _ => Err(error),
        };
    }
    let [a, b, c, kind, flags, d, e, f, g] = head;
    let length = u32::from_be_bytes([0, a, b, c]);
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    session.stream.read_exact(&mut payload).await?;
    Ok(Some((kind, flags, u32::from_be_bytes([d, e, f, g]))))
}
