//! The loop that accepts connections, for sinks whose connections may be cut while they run.

use std::future::Future;
use std::rc::Rc;

use stillwell_scope::{PartError, Tasks};
use stillwell_wire::Stream;
use stillwell_wire::server::{
    AcceptEnd, Activity, StreamListener, accept_until, finish_connections,
};

use crate::socket::SinkSocket;
use crate::worker::Worker;

/// Counts the end of a connection when it is dropped, also if the connection is cut.
struct CountEnd(Rc<Worker>);

impl Drop for CountEnd {
    fn drop(&mut self) {
        self.0.base.shard.connections_ended.add(1);
    }
}

/// Runs `serve` for each connection, at most `connections_max` at a time, until the
/// worker is to end; then takes what waits already, and ends. On the corresponding
/// instruction, closes its socket, cuts all connections and listens again later.
pub(crate) async fn accept<F: Future<Output = ()> + 'static>(
    worker: Rc<Worker>,
    listener: StreamListener,
    connections_max: usize,
    serve: impl Fn(Rc<Worker>, Stream, Activity) -> F,
) -> Result<(), PartError> {
    worker
        .base
        .shard
        .connections_max
        .set(connections_max as u64);
    let serve = |stream, activity| {
        let ended = CountEnd(Rc::clone(&worker));
        let served = serve(Rc::clone(&worker), stream, activity);
        async move {
            served.await;
            drop(ended);
        }
    };
    let (mut next, mut cuts) = (Some(listener), 0);
    while let Some(listener) = next.take() {
        let mut tasks = Tasks::new(connections_max);
        let cut = worker.cut(cuts);
        let accepted = accept_until(&worker.base, listener, &mut tasks, cut, &serve);
        if accepted.await? == AcceptEnd::Stopped {
            finish_connections(&mut tasks).await;
            break;
        }
        tasks.cut().await;
        if let Some((SinkSocket::Stream(listener), seen)) = worker.reopened().await? {
            (next, cuts) = (Some(listener), seen);
        }
    }
    Ok(())
}
