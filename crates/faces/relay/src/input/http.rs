//! `POST`s of lines, or of any bytes where a request is one event.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr_iter;
use stillwell_wire::Stream;
use stillwell_wire::server::Activity;
use tokio::time::timeout;

use crate::core::Core;
use crate::counters::add;
use crate::server::{self, Answer, Request, RequestParts};

/// Maximum time that a request waits for room.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Takes in the lines of the requests of one connection.
pub(super) async fn serve(core: Rc<Core>, stream: Stream, activity: Activity) {
    server::serve(&core, stream, &activity, async |request| {
        answer(&core, request).await
    })
    .await;
}

async fn answer(core: &Core, request: Request) -> Answer {
    if !matches!(request.method.as_str(), "POST" | "PUT") {
        return Answer::status(405);
    }
    if request.is_encoded {
        add(&core.counters.compressed_refused, 1);
        return Answer::status(415);
    }
    let mut body = request.body;
    add(&core.counters.bytes_in, body.len() as u64);
    let (event, events, bytes) = if core.takes_requests() {
        let parts = RequestParts {
            stamp: &request.stamp,
            content_type: content_type(&request.content_type, &body),
            body: &body,
        };
        let event = parts.event();
        let bytes = event.len();
        (event, 1, bytes)
    } else {
        let newest = content_type(&request.content_type, &body);
        core.note_content_type(newest).await;
        if body.last().is_some_and(|last| *last != b'\n') {
            body.push(b'\n');
        }
        let events = memchr_iter(b'\n', &body).count();
        let bytes = body.len() - events;
        (Bytes::from(body), events, bytes)
    };
    let is_too_long = core.takes_requests() && bytes > server::REQUEST_BYTES_MAX;
    if is_too_long || !core.can_hold(events, bytes) {
        return Answer::status(413);
    }
    if core.refuses(events) {
        return Answer::status(503);
    }
    let Ok(reserved) = timeout(WAIT_MAX, core.reserve(events, bytes)).await else {
        return Answer::status(503);
    };
    if core.takes_requests() {
        core.take_whole(event, reserved).await;
    } else {
        core.take_in(event, Some(reserved)).await;
    }
    core.kept().await;
    Answer::status(200)
}

/// Returns the stated content type, or JSON for an array of objects without one: as lines of text, two
/// such bodies would become one.
fn content_type<'a>(stated: &'a [u8], body: &[u8]) -> &'a [u8] {
    let array = body.trim_ascii_start().strip_prefix(b"[");
    let is_of_objects = array.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"));
    if stated.is_empty() && is_of_objects {
        b"application/json"
    } else {
        stated
    }
}
