//! The one loop that accepts connections.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::time::Duration;

use stillwell_scope::{PartError, Tasks};
use stillwell_wire::{Listener, Stream};
use tokio::select;
use tokio::time::sleep;

use crate::core::Core;

/// Between tries where descriptors or memory have run out.
const PAUSE: Duration = Duration::from_millis(10);

/// The reason for which no connection is accepted any more.
#[derive(Debug, thiserror::Error)]
#[error("accept connections")]
struct AcceptError {
    source: io::Error,
}

/// Runs `serve` for each connection, at most `connections_max` at a time, until
/// the relay is to end and all of them have ended.
pub(crate) async fn accept<F: Future<Output = ()> + 'static>(
    core: &Rc<Core>,
    listener: Listener,
    connections_max: usize,
    serve: impl Fn(Rc<Core>, Stream) -> F,
) -> Result<(), PartError> {
    let mut tasks = Tasks::new(connections_max);
    let mut stopping = core.stopping();
    loop {
        // All arms are cancel-safe.
        let accepted = select! {
            biased;
            () = tasks.next_end(), if !tasks.is_empty() => continue,
            () = core.token.cancelled(), if !tasks.has_room() => break,
            accepted = stopping.next(|context| listener.poll_accept(context)),
                if tasks.has_room() => accepted,
        };
        match accepted {
            None => break,
            Some(Ok(stream)) => tasks.spawn(serve(Rc::clone(core), stream)),
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
