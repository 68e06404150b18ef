//! Splunk's HTTP event collector: `POST`s of JSON objects or of lines. Each
//! request is answered with a number for its acknowledgement, and every number
//! given out is acknowledged, since a request is only answered once its events
//! are in.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr_iter;
use stillwell_wire::Stream;
use stillwell_wire::server::Activity;
use tokio::time::timeout;

use crate::core::Core;
use crate::counters::add;
use crate::server::{self, Answer, Request};

/// Maximum time that a request waits for room.
const WAIT_MAX: Duration = Duration::from_secs(1);

const JSON: &str = "application/json";

/// Takes in the events of the requests of one connection.
pub(super) async fn serve(core: Rc<Core>, stream: Stream, activity: Activity, acks: Rc<Cell<u64>>) {
    server::serve(&core, stream, &activity, async |request| {
        answer(&core, &acks, request).await
    })
    .await;
}

async fn answer(core: &Core, acks: &Cell<u64>, request: Request) -> Answer {
    if request.is_encoded {
        add(&core.counters.compressed_refused, 1);
        return Answer::status(415);
    }
    let path = request.target.split('?').next().unwrap_or_default();
    let Some(rest) = path.strip_prefix("/services/collector") else {
        return Answer::status(404);
    };
    match (request.method.as_str(), rest) {
        ("POST", "" | "/event" | "/event/1.0") => {
            add(&core.counters.bytes_in, request.body.len() as u64);
            match lines_of_objects(&request.body) {
                Some(lines) => take(core, acks, lines).await,
                None => refuse(400, "Invalid data format", 6),
            }
        }
        ("POST", "/raw" | "/raw/1.0") => {
            add(&core.counters.bytes_in, request.body.len() as u64);
            let mut lines = request.body;
            if lines.last().is_some_and(|last| *last != b'\n') {
                lines.push(b'\n');
            }
            take(core, acks, lines).await
        }
        ("POST", "/ack" | "/ack/1.0") => acknowledge(acks.get(), &request.body),
        ("GET", "/health" | "/health/1.0") => refuse(200, "HEC is healthy", 17),
        _ => Answer::status(405),
    }
}

/// Takes in `lines`, each with its end.
async fn take(core: &Core, acks: &Cell<u64>, lines: Vec<u8>) -> Answer {
    let events = memchr_iter(b'\n', &lines).count();
    if events == 0 {
        return refuse(400, "No data", 5);
    }
    let bytes = lines.len() - events;
    if !core.can_hold(events, bytes) {
        return Answer::status(413);
    }
    if core.refuses(events) {
        return refuse(503, "Server is busy", 9);
    }
    let Ok(reserved) = timeout(WAIT_MAX, core.reserve(events, bytes)).await else {
        return refuse(503, "Server is busy", 9);
    };
    core.take_in(Bytes::from(lines), Some(reserved)).await;
    core.kept().await;
    let ack = acks.get();
    acks.set(ack + 1);
    let body = format!(r#"{{"text":"Success","code":0,"ackId":{ack}}}"#);
    Answer::text(JSON, body)
}

fn refuse(status: u16, text: &str, code: u8) -> Answer {
    Answer::of(
        status,
        JSON,
        format!(r#"{{"text":"{text}","code":{code}}}"#),
    )
}

fn acknowledge(next: u64, body: &[u8]) -> Answer {
    let question: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let requested = question
        .as_ref()
        .and_then(|question| question["acks"].as_array());
    let Some(requested) = requested else {
        return refuse(400, "Invalid data format", 6);
    };
    let ids = requested.iter().filter_map(serde_json::Value::as_u64);
    let acks: Vec<String> = ids.map(|id| format!("\"{id}\":{}", id < next)).collect();
    Answer::text(JSON, format!("{{\"acks\":{{{}}}}}", acks.join(",")))
}

/// The JSON objects in `body`, which follow each other, as one line each; `None` if `body`
/// has anything else.
fn lines_of_objects(body: &[u8]) -> Option<Vec<u8>> {
    let mut lines = Vec::with_capacity(body.len() + 1);
    let (mut depth, mut is_within_string, mut is_escaped) = (0_u32, false, false);
    for byte in body {
        let byte = *byte;
        if is_within_string {
            is_within_string = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            lines.push(byte);
            continue;
        }
        match byte {
            b'\n' | b'\r' => continue,
            b' ' | b'\t' if depth == 0 => continue,
            b'{' => depth += 1,
            _ if depth == 0 => return None,
            b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => is_within_string = true,
            _ => {}
        }
        lines.push(byte);
        if depth == 0 {
            lines.push(b'\n');
        }
    }
    (depth == 0).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_become_lines() {
        for (body, lines) in [
            ("", Some("")),
            (r#"{"a":1}{"b":2}"#, Some("{\"a\":1}\n{\"b\":2}\n")),
            (
                "{\"a\":\n1}\n \n{\"}\\\"{\":[{}]}",
                Some("{\"a\":1}\n{\"}\\\"{\":[{}]}\n"),
            ),
            ("{", None),
            ("text", None),
            ("}", None),
            ("[{}]", None),
        ] {
            let converted = lines_of_objects(body.as_bytes());
            assert_eq!(converted.as_deref(), lines.map(str::as_bytes), "{body}");
        }
    }
}
