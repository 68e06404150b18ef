//! The one loop that accepts connections.

use std::future::{Future, pending};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use stillwell_scope::{PartError, Tasks, clock};
use tokio::select;
use tokio::time::{sleep, timeout};

use super::account::active;
use super::listener::StreamListener;
use super::open::{Activity, OpenConnections};
use super::worker::{ServerWorker, account_ticks};
use crate::Stream;

/// Between tries where descriptors or memory have run out: closing connections
/// gives some back.
const PAUSE: Duration = Duration::from_millis(10);

/// Connections end by themselves long before that, unless an answer is far from
/// due or a peer does not take it.
const END_MAX: Duration = Duration::from_secs(1);

/// The reason for which a worker that accepts connections ended.
#[derive(Debug, thiserror::Error)]
#[error("accept connections")]
struct AcceptError {
    source: io::Error,
}

/// Reasons for which a listener was closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AcceptEnd {
    /// The worker is to end.
    Stopped,
    /// Connections are to be cut.
    Cut,
}

/// Runs `serve` for each connection, at most `connections_max` at a time, until
/// the worker is to end; then takes what waits already, and ends. Where no more may be open,
/// a new connection takes the place of the one that has been idle longest, if that is five seconds or more.
/// A connection is not idle while a part of `serve` is [`busy`](super::busy) with its [`Activity`].
///
/// # Errors
/// The listener fails for good.
pub async fn accept<F: Future<Output = ()> + 'static>(
    worker: Rc<ServerWorker>,
    listener: StreamListener,
    connections_max: usize,
    serve: impl Fn(Stream, Activity) -> F,
) -> Result<(), PartError> {
    let mut tasks = Tasks::new(connections_max);
    accept_until(&worker, listener, &mut tasks, pending(), &serve).await?;
    finish_connections(&mut tasks).await;
    Ok(())
}

/// Waits for connections to end by themselves. Those that are left after
/// a second end where they are once `tasks` is dropped.
pub async fn finish_connections(tasks: &mut Tasks) {
    timeout(END_MAX, tasks.all_ended())
        .await
        .unwrap_or_default();
}

/// Accepts connections until the worker is to end or `cut` is ready; the listener is
/// closed then.
///
/// # Errors
/// The listener fails for good.
pub async fn accept_until<F: Future<Output = ()> + 'static>(
    worker: &Rc<ServerWorker>,
    listener: StreamListener,
    tasks: &mut Tasks,
    cut: impl Future<Output = ()>,
    serve: &impl Fn(Stream, Activity) -> F,
) -> Result<AcceptEnd, PartError> {
    let (listener, file) = (listener.socket.watched()?, listener.file);
    let mut stopping = worker.stopping();
    let mut ticks = account_ticks();
    let mut cut = pin!(cut);
    let mut open = OpenConnections::default();
    loop {
        let has_room = open.has_room(tasks, clock::now());
        // All arms are cancel-safe.
        let accepted = select! {
            biased;
            () = tasks.next_end(), if !tasks.is_empty() => continue,
            _ = ticks.tick() => continue,
            () = &mut cut => {
                drop((listener, file));
                return Ok(AcceptEnd::Cut);
            }
            () = worker.token.cancelled(), if !has_room => break,
            accepted = stopping.next(|context| listener.poll_accept(context)),
                if has_room => accepted,
        };
        match accepted {
            Some(Ok(stream)) => {
                worker.shard.connections.add(1);
                let is_one_closed = open.spawn(tasks, |active_at| {
                    let served = serve(stream, Rc::clone(&active_at));
                    active(Rc::clone(worker), active_at, served)
                });
                worker.shard.errors.add(u64::from(is_one_closed));
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
    Ok(AcceptEnd::Stopped)
}

/// Returns true if the listener can go on after `error`: the connection has gone already, or
/// a resource ran out that comes back.
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
