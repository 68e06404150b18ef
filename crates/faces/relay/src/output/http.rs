//! `POST`s of lines, or of what came as a whole request.

use std::io;
use std::pin::pin;

use stillwell_http::{H1ResponseEvent, HeadError, RequestTemplate, ResponseParser, Target};
use stillwell_wire::{Stream, dial};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::select;

use super::backoff::Backoff;
use super::batch::Batch;
use crate::core::Core;
use crate::server::{RequestParts, STAMP_HEADER};

/// Events in one request.
const EVENTS_MAX: u64 = 1000;
/// Bytes in one request, unless one event is longer.
const BODY_BYTES_MAX: usize = 1 << 20;
const READ_BYTES: usize = 16 << 10;
const LINE_END: &[u8] = b"\r\n";
/// Type of a body whose request has none.
const TEXT: &[u8] = b"text/plain";

/// The target of requests, and their head.
#[derive(Debug)]
pub(super) struct Destination {
    address: String,
    template: RequestTemplate,
}

impl Destination {
    pub(super) fn new(target: &Target) -> Result<Self, HeadError> {
        let authority = target.authority();
        Ok(Self {
            address: target.dial_address(),
            template: RequestTemplate::new("POST", target.path_and_query(), &authority, &[])?,
        })
    }

    /// Writes a request, with the stamp in its header, if that is not empty.
    fn write(&self, parts: RequestParts<'_>, request: &mut Vec<u8>) {
        request.clear();
        self.template.write_head(parts.body.len() as u64, request);
        // Before the empty line that ends the head.
        request.truncate(request.len() - LINE_END.len());
        let content_type = match parts.content_type {
            [] => TEXT,
            content_type => content_type,
        };
        let headers = [("content-type", content_type), (STAMP_HEADER, parts.stamp)];
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            for part in [name.as_bytes(), b": ", value, LINE_END] {
                request.extend_from_slice(part);
            }
        }
        request.extend_from_slice(LINE_END);
        request.extend_from_slice(parts.body);
    }
}

/// A connection on which no answer is outstanding.
struct Connection {
    stream: Stream,
    parser: ResponseParser,
}

/// Sends batches on, one at a time, each until it was taken or refused permanently.
pub(super) async fn send_on(core: &Core, destination: &Destination) {
    let mut backoff = Backoff::new();
    let mut connection = None;
    let mut batch = Batch::default();
    let mut request = Vec::new();
    let is_whole = core.takes_requests();
    // The first request of all decides by its type before its events are taken.
    while core.buffer.wait().await {
        let content_type = core.content_type();
        let is_one = is_whole || !is_of_lines(&content_type);
        let events_max = if is_one { 1 } else { EVENTS_MAX };
        if !batch.fill(core, events_max, BODY_BYTES_MAX).await {
            return;
        }
        let parts = match batch.bytes.split_last() {
            Some((_line_end, event)) if is_whole => RequestParts::of_event(event),
            Some((_line_end, body)) if is_one => RequestParts {
                content_type: &content_type,
                body,
                ..RequestParts::default()
            },
            _ => RequestParts {
                content_type: &content_type,
                body: &batch.bytes,
                ..RequestParts::default()
            },
        };
        let body_bytes = parts.body.len() as u64;
        destination.write(parts, &mut request);
        loop {
            match post(destination, &mut connection, &request).await {
                Ok(200..300) => {
                    core.handed_over(batch.events(), body_bytes);
                    backoff.reset();
                    break;
                }
                // Sent again it would be refused again.
                Ok(status @ 400..500) if !matches!(status, 408 | 429) => {
                    core.gave_up(batch.events());
                    break;
                }
                Ok(_) | Err(_) => backoff.wait().await,
            }
        }
    }
}

/// Returns true if a body of this type stays one with the lines of other requests in it. JSON
/// does not.
fn is_of_lines(content_type: &[u8]) -> bool {
    const OF_LINES: [&[u8]; 3] = [b"text/", b"application/x-ndjson", b"application/ndjson"];
    content_type.is_empty()
        || OF_LINES
            .iter()
            .any(|of_lines| content_type.starts_with(of_lines))
}

/// The status that `request` was answered with; the connection is kept where
/// both sides allow it.
async fn post(
    destination: &Destination,
    kept: &mut Option<Connection>,
    request: &[u8],
) -> io::Result<u16> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => Connection {
            stream: dial::tcp(&destination.address)
                .await
                .map_err(|error| error.source)?
                .into(),
            parser: ResponseParser::new(),
        },
    };
    let Connection { stream, parser } = &mut connection;
    let (status, keep_alive) = exchange(stream, parser, request).await?;
    if keep_alive {
        *kept = Some(connection);
    }
    Ok(status)
}

/// Writes `request` and reads its answer at the same time: a server may answer before it has read
/// all, and read no more. Returns the status, and true if another request may follow.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite,
    parser: &mut ResponseParser,
    request: &[u8],
) -> io::Result<(u16, bool)> {
    let (reader, mut writer) = split(stream);
    let mut answered = pin!(answer(reader, parser));
    // A write that is cut off ends the connection.
    let written = select! {
        biased;
        early = &mut answered => return early.map(|(status, _)| (status, false)),
        written = writer.write_all(request) => written,
    };
    let answered = answered.await;
    match written {
        Ok(()) => answered,
        // The answer says why, if there is one.
        Err(error) => answered
            .map(|(status, _)| (status, false))
            .map_err(|_| error),
    }
}

/// Reads one whole response. Returns its status, and true if another request may follow.
async fn answer(
    mut reader: impl AsyncRead + Unpin,
    parser: &mut ResponseParser,
) -> io::Result<(u16, bool)> {
    let mut buffer = vec![0; READ_BYTES];
    let mut answer = (0, false);
    loop {
        let length = reader.read(&mut buffer).await?;
        if length == 0 {
            return match parser.finish() {
                Ok(Some(_)) => Ok((answer.0, false)),
                Ok(None) | Err(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        let mut read = 0;
        loop {
            let step = parser.advance(&buffer[read..length]);
            let (consumed, event) = step.map_err(io::Error::other)?;
            read += consumed;
            match event {
                Some(H1ResponseEvent::Head(head)) => answer = (head.status, head.keep_alive),
                Some(H1ResponseEvent::Body(_)) => {}
                Some(H1ResponseEvent::End) => return Ok(answer),
                None => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;
    use tokio::join;

    use super::*;

    /// Sends a request of 4 KiB to a server that reads `read_bytes` and then answers.
    async fn answer_of(read_bytes: usize, answer: &[u8], stays_open: bool) -> Option<(u16, bool)> {
        // A write of more waits until the server reads.
        let (client, mut server) = duplex(64);
        let serve = async move {
            server.read_exact(&mut vec![0; read_bytes]).await.unwrap();
            server.write_all(answer).await.unwrap();
            stays_open.then_some(server)
        };
        let mut parser = ResponseParser::new();
        let exchanged = exchange(client, &mut parser, &[b'x'; 4096]);
        let (answered, _server) = join!(exchanged, serve);
        answered.ok()
    }

    #[tokio::test]
    async fn an_answer_that_comes_before_all_was_sent_counts_and_ends_the_connection() {
        let taken = &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..];
        let too_large = &b"HTTP/1.1 413 X\r\ncontent-length: 2\r\n\r\nno"[..];
        for (read_bytes, answer, stays_open, expected) in [
            (4096, taken, true, Some((200, true))),
            (1024, too_large, true, Some((413, false))),
            (1024, too_large, false, Some((413, false))),
            (1024, &b""[..], false, None),
        ] {
            let answered = answer_of(read_bytes, answer, stays_open).await;
            assert_eq!(answered, expected, "{read_bytes} bytes, {stays_open}");
        }
    }
}
