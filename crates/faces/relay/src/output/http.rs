//! `POST`s of lines, or of what came as a whole request.

use std::io;

use stillwell_http::{H1ResponseEvent, HeadError, RequestTemplate, ResponseParser, Target};
use stillwell_wire::{Stream, dial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::backoff::Backoff;
use super::batch::Batch;
use crate::core::Core;
use crate::server::{self, STAMP_HEADER};

/// Events in one request.
const EVENTS_MAX: u64 = 1000;
/// Bytes in one request, unless one event is longer.
const BODY_BYTES_MAX: usize = 1 << 20;
const READ_BYTES: usize = 16 << 10;
const LINE_END: &[u8] = b"\r\n";

/// The target of requests, and their head.
#[derive(Debug)]
pub(super) struct Destination {
    address: String,
    template: RequestTemplate,
}

impl Destination {
    pub(super) fn new(target: &Target) -> Result<Self, HeadError> {
        let headers = [("content-type", "text/plain")];
        let authority = target.authority();
        Ok(Self {
            address: target.dial_address(),
            template: RequestTemplate::new("POST", target.path_and_query(), &authority, &headers)?,
        })
    }

    /// Writes a request with `stamp` in its header, if that is not empty.
    fn write(&self, stamp: &[u8], body: &[u8], request: &mut Vec<u8>) {
        request.clear();
        self.template.write_head(body.len() as u64, request);
        if !stamp.is_empty() {
            // Before the empty line that ends the head.
            request.truncate(request.len() - LINE_END.len());
            for part in [STAMP_HEADER.as_bytes(), b": ", stamp, LINE_END, LINE_END] {
                request.extend_from_slice(part);
            }
        }
        request.extend_from_slice(body);
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
    let events_max = if is_whole { 1 } else { EVENTS_MAX };
    while batch.fill(core, events_max, BODY_BYTES_MAX).await {
        let (stamp, body) = match batch.bytes.split_last() {
            Some((_line_end, event)) if is_whole => server::parts(event),
            _ => (&[][..], batch.bytes.as_slice()),
        };
        destination.write(stamp, body, &mut request);
        loop {
            match post(destination, &mut connection, &request).await {
                Ok(200..300) => {
                    batch.count(core);
                    backoff.reset();
                    break;
                }
                // Sent again it would be refused again.
                Ok(status @ 400..500) if !matches!(status, 408 | 429) => {
                    core.gave_up(batch.events);
                    break;
                }
                Ok(_) | Err(_) => backoff.wait().await,
            }
        }
    }
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
    connection.stream.write_all(request).await?;
    let (status, keep_alive) = connection.answer().await?;
    if keep_alive {
        *kept = Some(connection);
    }
    Ok(status)
}

impl Connection {
    /// Reads one whole response: its status, and whether another may follow.
    async fn answer(&mut self) -> io::Result<(u16, bool)> {
        let mut buffer = vec![0; READ_BYTES];
        let mut answer = (0, false);
        loop {
            let length = self.stream.read(&mut buffer).await?;
            if length == 0 {
                return match self.parser.finish() {
                    Ok(Some(_)) => Ok((answer.0, false)),
                    Ok(None) | Err(_) => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            let mut read = 0;
            loop {
                let step = self.parser.advance(&buffer[read..length]);
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
}
