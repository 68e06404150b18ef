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
use crate::steering::Socket;
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
/// the worker is to end; then takes what waits already, and ends. Where it is told
/// to, closes its socket, cuts all connections and listens again later.
pub(crate) async fn accept<F: Future<Output = ()> + 'static>(
    worker: Rc<Worker>,
    listener: StreamListener,
    connections_max: usize,
    serve: impl Fn(Rc<Worker>, Stream) -> F,
) -> Result<(), PartError> {
    let (mut next, mut cuts) = (Some(listener), 0);
    while let Some(listener) = next.take() {
        let mut tasks = Tasks::new(connections_max);
        if listen(&worker, listener, &mut tasks, cuts, &serve).await? == Heard::End {
            // Those that are left then are ended where they stand.
            timeout(END_MAX, tasks.all_ended())
                .await
                .unwrap_or_default();
            break;
        }
        tasks.cut().await;
        if let Some((Socket::Stream(listener), seen)) = worker.reopened().await? {
            (next, cuts) = (Some(listener), seen);
        }
    }
    Ok(())
}

/// Why a listener was closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Heard {
    /// The worker is to end.
    End,
    /// Connections are to be cut.
    Cut,
}

/// Accepts connections until the worker is to end or is cut off once more than
/// `cuts` times; the listener is closed then.
async fn listen<F: Future<Output = ()> + 'static>(
    worker: &Rc<Worker>,
    listener: StreamListener,
    tasks: &mut Tasks,
    cuts: u64,
    serve: &impl Fn(Rc<Worker>, Stream) -> F,
) -> Result<Heard, PartError> {
    let (listener, file) = (listener.socket.watched()?, listener.file);
    let mut stopping = worker.stopping();
    let mut ticks = account_ticks();
    loop {
        // All arms are cancel-safe.
        let accepted = select! {
            biased;
            () = tasks.next_end(), if !tasks.is_empty() => continue,
            _ = ticks.tick() => continue,
            () = worker.cut(cuts) => {
                drop((listener, file));
                return Ok(Heard::Cut);
            }
            () = worker.token.cancelled(), if !tasks.has_room() => break,
            accepted = stopping.next(|context| listener.poll_accept(context)),
                if tasks.has_room() => accepted,
        };
        match accepted {
            Some(Ok(stream)) => {
                worker.shard.connections.add(1);
                let serving = serve(Rc::clone(worker), stream);
                tasks.spawn(accounted(Rc::clone(worker), serving));
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
    Ok(Heard::End)
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
