//! HTTP/1.1 connections from the side of the server.

use bytes::Bytes;
use memchr::memchr;
use stillwell_http::{CONTINUE, H1RequestEvent, H1RequestHead, RequestParser, write_response};
use stillwell_wire::Stream;
use stillwell_wire::server::{Activity, busy};
use tokio::io::AsyncWriteExt;

use crate::core::Core;
use crate::input::InputReader;

/// The longest body that is kept; longer ones are answered with 413.
const BODY_BYTES_MAX: usize = 16 << 20;

/// The first bytes of each body, which always have room: large bodies that never end do not lock out small ones.
const FREE_BYTES: usize = 64 << 10;

/// The longest request that is one event, its stamp included: what a buffer on disk
/// takes.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 << 20;

/// The header that carries the stamp of a request.
pub(crate) const STAMP_HEADER: &str = "stillwell-stamp";

/// The parts of a request that are passed on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct RequestParts<'a> {
    /// Value of its header for stamps; empty if there is none.
    pub(crate) stamp: &'a [u8],
    /// Value of its header `content-type`; empty if there is none.
    pub(crate) content_type: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl<'a> RequestParts<'a> {
    /// Returns the request as one event: stamp and content type with a tab between them, a line
    /// feed, and the body.
    pub(crate) fn event(self) -> Bytes {
        let Self {
            stamp,
            content_type,
            body,
        } = self;
        [stamp, b"\t", content_type, b"\n", body].concat().into()
    }

    /// Reads such an event.
    pub(crate) fn of_event(event: &'a [u8]) -> Self {
        let split = |bytes: &'a [u8], at: u8| {
            let end = memchr(at, bytes).unwrap_or(bytes.len());
            let (first, rest) = bytes.split_at(end);
            (first, rest.get(1..).unwrap_or_default())
        };
        let (head, body) = split(event, b'\n');
        let (stamp, content_type) = split(head, b'\t');
        Self {
            stamp,
            content_type,
            body,
        }
    }
}

/// A whole request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Value of its header for stamps; empty if there is none.
    pub(crate) stamp: Vec<u8>,
    /// Value of its header `content-type`; empty if there is none.
    pub(crate) content_type: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) is_encoded: bool,
    is_last: bool,
    /// The status that refuses the body, which is not kept then.
    refusal: Option<u16>,
}

/// The memory that one connection holds for its request's body, beyond the first bytes. Dropping it gives the memory
/// back.
#[derive(Debug)]
pub(crate) struct HeldBody<'c> {
    core: &'c Core,
    bytes: usize,
}

impl<'c> HeldBody<'c> {
    pub(crate) const fn new(core: &'c Core) -> Self {
        Self { core, bytes: 0 }
    }

    /// Holds memory for a body of this length, beyond its first bytes; false where there is no room.
    #[must_use]
    pub(crate) fn grow_to(&mut self, length: usize) -> bool {
        let more = length.saturating_sub(FREE_BYTES + self.bytes);
        let has_room = self.core.hold(more);
        self.bytes += if has_room { more } else { 0 };
        has_room
    }

    pub(crate) fn release(&mut self) {
        self.core.release(std::mem::take(&mut self.bytes));
    }
}

impl Drop for HeldBody<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// The response to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    status: u16,
    content_type: &'static str,
    body: String,
}

impl Answer {
    /// Without a body.
    pub(crate) const fn status(status: u16) -> Self {
        Self {
            status,
            content_type: "text/plain",
            body: String::new(),
        }
    }

    /// With a body.
    pub(crate) const fn text(content_type: &'static str, body: String) -> Self {
        Self::of(200, content_type, body)
    }

    /// With a status and a body.
    pub(crate) const fn of(status: u16, content_type: &'static str, body: String) -> Self {
        Self {
            status,
            content_type,
            body,
        }
    }
}

/// Answers the requests of one connection, one after another, until it is closed
/// or the relay is to end. The connection is not idle while `answer` waits.
pub(crate) async fn serve(
    core: &Core,
    mut stream: Stream,
    activity: &Activity,
    answer: impl AsyncFn(Request) -> Answer,
) {
    let mut reader = InputReader::new(core);
    let mut parser = RequestParser::new();
    let mut request = Request::default();
    let mut held = HeldBody::new(core);
    let mut out = Vec::new();
    while let Some(input) = reader.read(&mut stream).await {
        let mut read = 0;
        loop {
            let Ok((consumed, event)) = parser.advance(&input[read..]) else {
                write(&Answer::status(400), true, &mut out);
                // The connection is given up either way.
                stream.write_all(&out).await.unwrap_or_default();
                return;
            };
            read += consumed;
            match event {
                Some(H1RequestEvent::Head(head)) => {
                    if head.expect_continue {
                        out.extend_from_slice(CONTINUE);
                    }
                    request = Request::of(&head);
                }
                Some(H1RequestEvent::Body(part)) => request.push(part, &mut held),
                Some(H1RequestEvent::End) => {
                    let request = std::mem::take(&mut request);
                    let is_last = request.is_last;
                    let answer = match request.refusal {
                        Some(status) => Answer::status(status),
                        None => busy(activity, answer(request)).await,
                    };
                    held.release();
                    write(&answer, is_last, &mut out);
                    if is_last {
                        stream.write_all(&out).await.unwrap_or_default();
                        return;
                    }
                }
                None => break,
            }
        }
        if stream.write_all(&out).await.is_err() {
            return;
        }
        out.clear();
    }
}

impl Request {
    fn of(head: &H1RequestHead<'_>) -> Self {
        let is_plain = |coding: &str| coding.eq_ignore_ascii_case("identity");
        Self {
            method: head.method.to_owned(),
            target: head.target.to_owned(),
            stamp: head.header(STAMP_HEADER).unwrap_or_default().to_vec(),
            content_type: head.header("content-type").unwrap_or_default().to_vec(),
            body: Vec::new(),
            is_encoded: head
                .content_encoding
                .is_some_and(|coding| !is_plain(coding)),
            is_last: !head.keep_alive,
            refusal: None,
        }
    }

    fn push(&mut self, part: &[u8], held: &mut HeldBody<'_>) {
        if self.refusal.is_some() {
            return;
        }
        let length = self.body.len() + part.len();
        if length > BODY_BYTES_MAX {
            self.refusal = Some(413);
        } else if !held.grow_to(length) {
            self.refusal = Some(503);
        }
        if self.refusal.is_some() {
            self.body = Vec::new();
            held.release();
        } else {
            self.body.extend_from_slice(part);
        }
    }
}

fn write(answer: &Answer, is_last: bool, out: &mut Vec<u8>) {
    let content_type = ("content-type", answer.content_type);
    let headers = [content_type, ("connection", "close")];
    let headers = if is_last { &headers[..] } else { &headers[..1] };
    write_response(answer.status, headers, answer.body.as_bytes(), out)
        .unwrap_or_else(|_| unreachable!("statuses and headers are constants that can be sent"));
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::rc::Rc;
    use std::time::Duration;

    use stillwell_scope::{Token, clock};
    use stillwell_wire::server::watched;
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    use super::*;
    use crate::endpoint::Endpoint;
    use crate::options::RelayOptions;

    #[test]
    fn bodies_of_all_connections_are_bounded_in_sum() {
        let options = RelayOptions::new(Endpoint::Discard, Endpoint::Discard);
        let core = Core::new(&options, None, Token::new());
        let holder = || HeldBody {
            core: &core,
            bytes: 0,
        };
        let (mut first, mut second) = (holder(), holder());
        let of = |mebibytes: usize| (mebibytes << 20) + FREE_BYTES;
        assert!(first.grow_to(of(200)));
        assert!(!second.grow_to(of(57)));
        assert!(second.grow_to(of(56)));
        // A small body always has room. A larger one is refused, and gives back what it held.
        let mut third = holder();
        let mut request = Request::default();
        request.push(&vec![0; FREE_BYTES], &mut third);
        assert_eq!((request.refusal, third.bytes), (None, 0));
        request.push(b"a", &mut third);
        assert_eq!((request.refusal, third.bytes), (Some(503), 0));
        drop(first);
        assert!(second.grow_to(of(256)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_request_waits_for_its_answer_is_not_idle() {
        let options = RelayOptions::new(Endpoint::Discard, Endpoint::Discard);
        let core = Core::new(&options, None, Token::new());
        let (mut client, stream) = UnixStream::pair().unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        client.write_all(request).await.unwrap();
        let activity = Activity::default();
        let served = serve(&core, stream.into(), &activity, async |_| pending().await);
        let served = watched(Rc::clone(&activity), served);
        let a_while = Duration::from_secs(1);
        assert!(timeout(a_while, served).await.is_err());
        assert!(activity.get() > clock::now());
    }

    #[test]
    fn a_request_comes_out_of_its_event_as_it_went_in() {
        let kind = &b"application/json"[..];
        for (stamp, content_type, body) in [
            (&b""[..], &b""[..], &b""[..]),
            (b"", kind, b"a\nb\n"),
            (b"stamp", b"", b""),
            (b"stamp", kind, b"\n\tx"),
        ] {
            let parts = RequestParts {
                stamp,
                content_type,
                body,
            };
            assert_eq!(RequestParts::of_event(&parts.event()), parts);
        }
        let parts = RequestParts::of_event(b"no line end");
        assert_eq!((parts.stamp, parts.body), (&b"no line end"[..], &b""[..]));
    }
}
