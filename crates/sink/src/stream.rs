//! Connections that only send: read, count, forget.

use std::rc::Rc;

use stillwell_wire::Stream;

use crate::lines::Lines;
use crate::worker::Worker;

/// Counts what comes over `stream` until its peer closes it or the worker ends.
pub(crate) async fn count(worker: Rc<Worker>, mut stream: Stream) {
    let shard = &worker.shard;
    let mut stopping = worker.stopping();
    let mut lines = Lines::default();
    let mut stamps = worker.stamps();
    loop {
        let take = |bytes: &[u8]| {
            shard.events.add(lines.take(bytes));
            stamps.feed(bytes);
        };
        match worker.receive(&mut stream, &mut stopping, take).await {
            Some(Ok(0)) => {
                shard.events.add(lines.finish());
                return;
            }
            Some(Ok(length)) => shard.bytes.add(length as u64),
            Some(Err(_)) => {
                shard.errors.add(u64::from(lines.is_within_line()));
                return;
            }
            None => return,
        }
    }
}
