//! `POST`s of lines.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr_iter;
use stillwell_wire::Stream;
use tokio::time::timeout;

use crate::core::Core;
use crate::counters::add;
use crate::server::{self, Answer, Request};

/// So long a request waits for room.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Takes in the lines of the requests of one connection.
pub(super) async fn serve(core: Rc<Core>, stream: Stream) {
    server::serve(&core, stream, async |request| answer(&core, request).await).await;
}

async fn answer(core: &Core, request: Request) -> Answer {
    if !matches!(request.method.as_str(), "POST" | "PUT") {
        return Answer::status(405);
    }
    if request.is_encoded {
        return Answer::status(415);
    }
    let mut body = request.body;
    add(&core.counters.bytes_in, body.len() as u64);
    if body.last().is_some_and(|last| *last != b'\n') {
        body.push(b'\n');
    }
    let events = memchr_iter(b'\n', &body).count();
    let bytes = body.len() - events;
    if !core.can_hold(events, bytes) {
        return Answer::status(413);
    }
    if core.refuses(events) {
        return Answer::status(503);
    }
    if timeout(WAIT_MAX, core.reserve(events, bytes))
        .await
        .is_err()
    {
        return Answer::status(503);
    }
    core.take_in(Bytes::from(body), true).await;
    core.kept().await;
    Answer::status(200)
}
