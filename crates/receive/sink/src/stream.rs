//! Connections that only send: read, count, forget.

use std::rc::Rc;

use stillwell_wire::Stream;
use stillwell_wire::server::Activity;

use crate::worker::Worker;

/// Counts what comes over `stream` until its peer closes it or the worker ends.
pub(crate) async fn count(worker: Rc<Worker>, mut stream: Stream, activity: Activity) {
    let shard = &worker.base.shard;
    let mut reads = worker.reads(activity);
    let mut events = worker.events();
    let mut stamps = worker.stamps();
    loop {
        let take = |bytes: &[u8]| {
            shard.events.add(events.take(bytes));
            stamps.feed(bytes);
        };
        match worker.receive(&mut stream, &mut reads, take).await {
            Some(Ok(0)) => {
                shard.events.add(events.finish());
                return;
            }
            Some(Ok(length)) => shard.bytes.add(length as u64),
            Some(Err(_)) => {
                shard.errors.add(u64::from(events.is_within_event()));
                return;
            }
            None => return,
        }
    }
}
