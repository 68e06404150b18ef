//! The one loop that accepts connections.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::time::Duration;

use stillwell_scope::{PartError, Tasks, clock};
use stillwell_wire::server::{Activity, OpenConnections, watched};
use stillwell_wire::{Listener, Stream};
use tokio::select;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::core::Core;

/// Between tries where descriptors or memory have run out.
const PAUSE: Duration = Duration::from_millis(10);

/// Between looks for a connection that may be closed for a new one.
const TICK: Duration = Duration::from_millis(100);

/// The reason for which no connection is accepted any more.
#[derive(Debug, thiserror::Error)]
#[error("accept connections")]
struct AcceptError {
    source: io::Error,
}

/// Runs `serve` for each connection, at most `connections_max` at a time, until
/// the relay is to end and all of them have ended. Where no more may be open, the one that has
/// been idle longest is closed for a new one. A connection with events that wait for the relay
/// is not idle.
pub(crate) async fn accept<F: Future<Output = ()> + 'static>(
    core: &Rc<Core>,
    listener: Listener,
    connections_max: usize,
    serve: impl Fn(Rc<Core>, Stream, Activity) -> F,
) -> Result<(), PartError> {
    let mut tasks = Tasks::new(connections_max);
    let mut stopping = core.stopping();
    let mut open = OpenConnections::default();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let has_room = open.has_room(&tasks, clock::now());
        // All arms are cancel-safe.
        let accepted = select! {
            biased;
            () = tasks.next_end(), if !tasks.is_empty() => continue,
            // Also where one is idle, as it may become active.
            _ = ticks.tick(), if !tasks.has_room() => continue,
            () = core.token.cancelled(), if !has_room => break,
            accepted = stopping.next(|context| listener.poll_accept(context)),
                if has_room => accepted,
        };
        match accepted {
            None => break,
            Some(Ok(stream)) => {
                open.spawn(&mut tasks, |active_at| {
                    let served = serve(Rc::clone(core), stream, Rc::clone(&active_at));
                    watched(active_at, served)
                });
            }
            Some(Err(source)) if source.kind() == ErrorKind::InvalidInput => {
                return Err(AcceptError { source }.into());
            }
            // The connection has gone, or something has run out that comes back.
            Some(Err(_)) => select! {
                () = core.token.cancelled() => {}
                () = sleep(PAUSE) => {}
            },
        }
    }
    drop(listener);
    tasks.all_ended().await;
    Ok(())
}
