//! The one loop that accepts connections.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::time::Duration;

use stillwell_scope::{PartError, Tasks};
use stillwell_wire::Stream;
use tokio::select;
use tokio::time::{sleep, timeout};

use crate::account::accounted;
use crate::bind::StreamListener;
use crate::worker::{Worker, account_ticks};

/// Between tries where descriptors or memory have run out: closing connections
/// gives some back.
const PAUSE: Duration = Duration::from_millis(10);

/// Connections end by themselves long before that, unless an answer is far from
/// due or a peer does not take it.
const END_MAX: Duration = Duration::from_secs(1);

/// Why a worker that accepts connections ended.
#[derive(Debug, thiserror::Error)]
#[error("accept connections")]
struct AcceptError {
    source: io::Error,
}

/// Runs `serve` for each connection, at most `connections_max` at a time, until
/// the worker is to end; then takes what waits already, and ends.
pub(crate) async fn accept<F: Future<Output = ()> + 'static>(
    worker: Rc<Worker>,
    listener: StreamListener,
    connections_max: usize,
    serve: impl Fn(Rc<Worker>, Stream) -> F,
) -> Result<(), PartError> {
    let (listener, file) = (listener.socket.watched()?, listener.file);
    let mut tasks = Tasks::new(connections_max);
    let mut stopping = worker.stopping();
    let mut ticks = account_ticks();
    loop {
        // All arms are cancel-safe.
        let accepted = select! {
            biased;
            () = tasks.next_end(), if !tasks.is_empty() => continue,
            _ = ticks.tick() => continue,
            () = worker.token.cancelled(), if !tasks.has_room() => break,
            accepted = stopping.next(|context| listener.poll_accept(context)),
                if tasks.has_room() => accepted,
        };
        match accepted {
            Some(Ok(stream)) => {
                worker.shard.connections.add(1);
                let serving = serve(Rc::clone(&worker), stream);
                tasks.spawn(accounted(Rc::clone(&worker), serving));
            }
            Some(Err(error)) if is_passing(&error) => {
                worker.shard.errors.add(1);
                select! {
                    () = worker.token.cancelled() => {}
                    () = sleep(PAUSE) => {}
                }
            }
            Some(Err(source)) => return Err(AcceptError { source }.into()),
            None => break,
        }
    }
    drop((listener, file));
    // Those that are left then are ended where they stand.
    timeout(END_MAX, tasks.all_ended())
        .await
        .unwrap_or_default();
    Ok(())
}

/// Whether the listener can go on after `error`: the connection has gone
/// already, or something has run out that comes back.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let is_of_connection = matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted
    );
    let exhausted = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::PROTO,
    ];
    is_of_connection || Errno::from_io_error(error).is_some_and(|errno| exhausted.contains(&errno))
}
