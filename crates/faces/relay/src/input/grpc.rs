//! Unary gRPC calls. A call that exports OpenTelemetry logs is one event for each
//! record: its body, if that is a text. Any other call is one event that names it, or
//! where events are requests its message. Compressed messages are refused.

use std::rc::Rc;

use bytes::Bytes;
use stillwell_http::grpc::{GrpcMessageReader, MESSAGE_HEAD_BYTES};
use stillwell_http::h2::{
    BodyLength, H2ResponseBlock, Limits, Server, ServerEvent, Stream as Call, TrailerBlock,
};
use stillwell_http::protobuf::within;
use stillwell_wire::Stream;
use stillwell_wire::server::{Activity, busy};
use tokio::io::AsyncWriteExt as _;

use super::InputReader;
use crate::core::Core;
use crate::counters::add;
use crate::server::{self, HeldBody, RequestParts, STAMP_HEADER};

/// The longest message that is taken, in bytes.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;

const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

const OK: u32 = 0;
const INVALID_ARGUMENT: u32 = 3;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;

/// A call that is not whole yet.
#[derive(Debug)]
struct Incoming<'c> {
    stream: Call,
    method: String,
    /// Value of its metadata for stamps; empty if there is none.
    stamp: Vec<u8>,
    body: Vec<u8>,
    /// Memory for the body.
    held: HeldBody<'c>,
    /// There was no room for the body, which is not kept then.
    is_refused: bool,
}

impl Incoming<'_> {
    fn push(&mut self, bytes: &[u8]) {
        let length = self.body.len() + bytes.len();
        let longest = MESSAGE_BYTES_MAX as usize + MESSAGE_HEAD_BYTES;
        if self.is_refused || length > longest || !self.held.grow_to(length) {
            self.is_refused = true;
            self.body = Vec::new();
            self.held.release();
        } else {
            self.body.extend_from_slice(bytes);
        }
    }
}

/// Takes in the calls of one connection, one after another.
pub(super) async fn serve(core: Rc<Core>, mut stream: Stream, activity: Activity) {
    let mut reader = InputReader::new(&core);
    let mut server = Server::new(Limits::default());
    let mut calls: Vec<Incoming<'_>> = Vec::new();
    loop {
        if stream.write_all(server.output()).await.is_err() {
            return;
        }
        server.sent(server.output().len());
        let Some(input) = reader.read(&mut stream).await else {
            return;
        };
        let mut whole = Vec::new();
        if take(&core, &mut server, (&mut calls, &mut whole), input).is_err() {
            // The connection is given up either way.
            stream.write_all(server.output()).await.unwrap_or_default();
            return;
        }
        for call in whole {
            let status = busy(&activity, answer(&core, &call)).await;
            reply(&mut server, call.stream, status);
        }
    }
}

/// Takes in what was read; calls that are whole go to `whole`.
fn take<'c>(
    core: &'c Core,
    server: &mut Server,
    (calls, whole): (&mut Vec<Incoming<'c>>, &mut Vec<Incoming<'c>>),
    input: &[u8],
) -> Result<(), stillwell_http::h2::H2ConnectionError> {
    let mut read = 0;
    loop {
        let (taken, event) = server.advance(&input[read..])?;
        read += taken;
        match event {
            None => return Ok(()),
            Some(ServerEvent::Head { stream, head }) => calls.push(Incoming {
                stream,
                method: head.path.to_owned(),
                stamp: head.fields.value(STAMP_HEADER).unwrap_or_default().to_vec(),
                body: Vec::new(),
                held: HeldBody::new(core),
                is_refused: false,
            }),
            Some(ServerEvent::Body { stream, bytes }) => {
                if let Some(call) = calls.iter_mut().find(|call| call.stream == stream) {
                    call.push(bytes);
                }
            }
            Some(ServerEvent::End { stream, .. }) => {
                if let Some(place) = calls.iter().position(|call| call.stream == stream) {
                    whole.push(calls.swap_remove(place));
                }
            }
            Some(ServerEvent::Failed { stream, .. }) => {
                calls.retain(|call| call.stream != stream);
            }
            // Answers are a few bytes, for which there always is room.
            Some(ServerEvent::Room { .. }) => {}
        }
    }
}

/// Takes the events of a call in; gives the call's status.
async fn answer(core: &Core, call: &Incoming<'_>) -> u32 {
    if call.is_refused {
        return RESOURCE_EXHAUSTED;
    }
    let mut reader = GrpcMessageReader::new(MESSAGE_BYTES_MAX);
    let message = match reader.advance(&call.body) {
        Ok((_, Some(message))) if message.is_compressed => {
            add(&core.counters.compressed_refused, 1);
            return UNIMPLEMENTED;
        }
        Ok((_, Some(message))) => message.bytes,
        Ok((_, None)) | Err(_) => return INVALID_ARGUMENT,
    };
    add(&core.counters.bytes_in, message.len() as u64);
    if core.takes_requests() {
        let parts = RequestParts {
            stamp: &call.stamp,
            content_type: b"",
            body: message,
        };
        let event = parts.event();
        if event.len() > server::REQUEST_BYTES_MAX || !core.can_hold(1, event.len()) {
            return RESOURCE_EXHAUSTED;
        }
        let reserved = core.reserve(1, event.len()).await;
        core.take_whole(event, reserved).await;
        core.kept().await;
        return OK;
    }
    let lines = if call.method == LOGS {
        match lines_of_logs(message) {
            Some(lines) => lines,
            None => return INVALID_ARGUMENT,
        }
    } else {
        format!("{} {}\n", call.method, message.len()).into_bytes()
    };
    if core.disk.is_some() && !fits_on_disk(core, &lines) {
        return RESOURCE_EXHAUSTED;
    }
    // Waits while the buffer is full; the caller waits with it.
    core.take_in(Bytes::from(lines), None).await;
    core.kept().await;
    OK
}

/// Returns false if a line could not be kept on disk, or would wait for room for ever.
fn fits_on_disk(core: &Core, lines: &[u8]) -> bool {
    let longest = lines.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    let longest = longest.unwrap_or_default();
    longest <= server::REQUEST_BYTES_MAX && core.can_hold(1, longest)
}

fn reply(server: &mut Server, stream: Call, status: u32) {
    let head = H2ResponseBlock::new(200, &[("content-type", "application/grpc")]);
    let trailers = TrailerBlock::new(&[("grpc-status", &status.to_string())]);
    let (Ok(head), Ok(trailers)) = (head, trailers) else {
        unreachable!("names and values are constants that can be sent");
    };
    // A client that has given up needs no answer.
    let begun = server.respond(stream, &head, BodyLength::Unknown);
    if begun.is_ok() && status == OK {
        let empty = [0; MESSAGE_HEAD_BYTES];
        server.send_body(stream, &empty, false).unwrap_or_default();
    }
    if begun.is_ok() {
        server.send_trailers(stream, &trailers).unwrap_or_default();
    }
}

/// The bodies of all log records, each as a line; `None` where it is no export.
fn lines_of_logs(export: &[u8]) -> Option<Vec<u8>> {
    let mut lines = Vec::new();
    within(export, &[1, 2, 2], &mut |record| {
        let mut text: &[u8] = b"";
        within(record, &[5, 1], &mut |body| {
            text = body;
            Some(())
        })?;
        let plain = |byte: &u8| if *byte == b'\n' { b' ' } else { *byte };
        lines.extend(text.iter().map(plain));
        lines.push(b'\n');
        Some(())
    })?;
    Some(lines)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, bytes) in fields {
            out.extend_from_slice(&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()]);
            out.extend_from_slice(bytes);
        }
        out
    }

    #[test]
    fn log_records_become_lines() {
        let text = |text: &[u8]| message(&[(5, &message(&[(1, text)]))]);
        let scope = message(&[
            (2, &text(b"one\ntwo")),
            (2, b"\x08\x05"),
            (2, &text(b"three")),
        ]);
        let export = message(&[(1, &message(&[(2, &scope)]))]);
        assert_eq!(lines_of_logs(&export).unwrap(), b"one two\n\nthree\n");
        assert_eq!(lines_of_logs(b"\xff"), None);
    }

    proptest! {
        #[test]
        fn for_all_bytes_reading_ends(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            lines_of_logs(&bytes);
        }
    }
}
