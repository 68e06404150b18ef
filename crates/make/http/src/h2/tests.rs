//! Both sides against each other, and each against a peer that writes frames by
//! hand.

mod clients;
mod connect;
mod held;
mod hostile;
mod pair;
mod servers;

use super::frame::{SettingsFrame, kind, write_frame, write_headers, write_settings};
use super::hpack::Encoder;
use super::{
    BodyLength, Client, ClientEvent, H2ConnectionError, H2RequestBlock, Limits, PREFACE, Server,
    ServerEvent, Stream,
};
use crate::Scheme;

/// Frames written by hand, one after the other.
#[derive(Default)]
struct Wire {
    bytes: Vec<u8>,
}

impl Wire {
    /// The first bytes of a server.
    fn server() -> Self {
        Self::default().settings(&SettingsFrame::default())
    }

    /// The first bytes of a client.
    fn client() -> Self {
        let bytes = PREFACE.to_vec();
        Self { bytes }.settings(&SettingsFrame::default())
    }

    fn settings(mut self, settings: &SettingsFrame) -> Self {
        write_settings(settings, &mut self.bytes);
        self
    }

    fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        write_frame(kind, flags, stream, payload, &mut self.bytes);
        self
    }

    fn headers(mut self, stream: u32, fields: &[(&str, &str)], end_stream: bool) -> Self {
        let mut block = Vec::new();
        let pairs = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Encoder::new(4096).encode(pairs, &mut block);
        write_headers(stream, &block, end_stream, 1 << 14, &mut self.bytes);
        self
    }

    fn get(self, stream: u32) -> Self {
        self.headers(stream, &GET, true)
    }

    fn ok(self, stream: u32, end_stream: bool) -> Self {
        self.headers(stream, &[(":status", "200")], end_stream)
    }

    fn data(self, stream: u32, bytes: &[u8], end_stream: bool) -> Self {
        self.frame(kind::DATA, u8::from(end_stream), stream, bytes)
    }

    fn reset(self, stream: u32, code: u32) -> Self {
        self.frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
    }
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "h"),
];

fn get() -> H2RequestBlock {
    H2RequestBlock::new("GET", Scheme::Http, "h", "/", &[("x-test", "1")]).unwrap()
}

/// The common part of both sides.
trait Side {
    fn step(&mut self, input: &[u8]) -> Result<(usize, Option<String>), H2ConnectionError>;
    fn end(&mut self) -> Result<Option<String>, H2ConnectionError>;
}

impl Side for Client {
    fn step(&mut self, input: &[u8]) -> Result<(usize, Option<String>), H2ConnectionError> {
        let (taken, event) = self.advance(input)?;
        Ok((taken, event.map(client_event_text)))
    }

    fn end(&mut self) -> Result<Option<String>, H2ConnectionError> {
        Ok(self.finish()?.map(client_event_text))
    }
}

impl Side for Server {
    fn step(&mut self, input: &[u8]) -> Result<(usize, Option<String>), H2ConnectionError> {
        let (taken, event) = self.advance(input)?;
        Ok((taken, event.map(server_event_text)))
    }

    fn end(&mut self) -> Result<Option<String>, H2ConnectionError> {
        Ok(self.finish()?.map(server_event_text))
    }
}

fn client_event_text(event: ClientEvent<'_>) -> String {
    match event {
        ClientEvent::Head { stream, head } => {
            let length = head
                .content_length
                .map_or_else(String::new, |n| format!(" {n}B"));
            format!("{} head {}{length}", stream.number(), head.status)
        }
        ClientEvent::Body { stream, bytes } => body_text(stream, bytes),
        ClientEvent::End { stream, trailers } => match trailers {
            Some(trailers) => format!("{} end {trailers:?}", stream.number()),
            None => format!("{} end", stream.number()),
        },
        ClientEvent::Failed { stream, cause } => format!("{} {cause:?}", stream.number()),
        ClientEvent::Room { stream } => format!("{} room", stream.number()),
    }
}

fn server_event_text(event: ServerEvent<'_>) -> String {
    match event {
        ServerEvent::Head { stream, head } => {
            let length = head
                .content_length
                .map_or_else(String::new, |n| format!(" {n}B"));
            let number = stream.number();
            format!(
                "{number} {} {}{}{length}",
                head.method, head.authority, head.path
            )
        }
        ServerEvent::Body { stream, bytes } => body_text(stream, bytes),
        ServerEvent::End { stream, trailers } => match trailers {
            Some(trailers) => format!("{} end {trailers:?}", stream.number()),
            None => format!("{} end", stream.number()),
        },
        ServerEvent::Failed { stream, cause } => format!("{} {cause:?}", stream.number()),
        ServerEvent::Room { stream } => format!("{} room", stream.number()),
    }
}

fn body_text(stream: Stream, bytes: &[u8]) -> String {
    format!("{} body {}", stream.number(), bytes.escape_ascii())
}

/// Everything that `side` says about `bytes`, read in pieces that end at `cuts`;
/// parts of a body that follow each other are joined.
fn events_of(side: &mut impl Side, bytes: &[u8], cuts: &[usize]) -> Vec<String> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let (mut events, mut start) = (Vec::<String>::new(), 0);
    for end in cuts {
        loop {
            match side.step(&bytes[start..end]) {
                Ok((taken, Some(event_text))) => {
                    start += taken;
                    record(&mut events, event_text);
                }
                Ok((taken, None)) => {
                    assert_eq!(taken, end - start, "input was left without an event");
                    start = end;
                    break;
                }
                Err(error) => {
                    assert_eq!(side.step(b"x"), Err(error), "a failure was forgotten");
                    events.push(format!("failed: {error}"));
                    return events;
                }
            }
        }
    }
    events
}

fn record(events: &mut Vec<String>, event_text: String) {
    if let (Some(last), Some((stream, part))) = (events.last_mut(), event_text.split_once(" body "))
        && last
            .split_once(" body ")
            .is_some_and(|(last_stream, _)| last_stream == stream)
    {
        last.push_str(part);
        return;
    }
    events.push(event_text);
}

/// Events of `side` once the connection has ended.
fn events_of_end(side: &mut impl Side) -> Vec<String> {
    let mut events = Vec::new();
    loop {
        match side.end() {
            Ok(Some(event_text)) => events.push(event_text),
            Ok(None) => return events,
            Err(error) => {
                events.push(format!("failed: {error}"));
                return events;
            }
        }
    }
}

/// A client with `requests` under way on streams 1, 3 and so on; its output so
/// far is gone.
fn client_with(requests: usize) -> Client {
    let mut client = Client::new(Limits::default());
    for _ in 0..requests {
        client.request(&get(), BodyLength::None).unwrap();
    }
    client.sent(usize::MAX / 2);
    client
}
