//! The one loop that accepts connections.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::time::Duration;

use stillwell_scope::{PartError, Tasks};
use stillwell_wire::Stream;
use tokio::net::{TcpListener, UnixListener};
use tokio::select;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::core::Core;

/// Between tries where descriptors or memory have run out.
const PAUSE: Duration = Duration::from_millis(10);

/// A listener that the runtime watches.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Why nothing is accepted any more.
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
    let mut asked_kernel = false;
    loop {
        // All arms are cancel-safe.
        let accepted = select! {
            biased;
            () = tasks.next_end(), if !tasks.is_empty() => continue,
            accepted = listener.accept(), if tasks.has_room() => accepted,
            () = core.token.cancelled() => {
                if asked_kernel {
                    break;
                }
                // Lets the runtime learn of connections that wait already.
                asked_kernel = true;
                yield_now().await;
                continue;
            }
        };
        match accepted {
            Ok(stream) => tasks.spawn(serve(Rc::clone(core), stream)),
            Err(source) if source.kind() == ErrorKind::InvalidInput => {
                return Err(AcceptError { source }.into());
            }
            // The connection has gone, or something has run out that comes back.
            Err(_) => select! {
                () = core.token.cancelled() => {}
                () = sleep(PAUSE) => {}
            },
        }
    }
    drop(listener);
    tasks.all_ended().await;
    Ok(())
}

impl Listener {
    pub(crate) fn tcp(socket: std::net::TcpListener) -> io::Result<Self> {
        TcpListener::from_std(socket).map(Self::Tcp)
    }

    pub(crate) fn unix(socket: std::os::unix::net::UnixListener) -> io::Result<Self> {
        UnixListener::from_std(socket).map(Self::Unix)
    }

    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(socket) => {
                let (stream, _) = socket.accept().await?;
                stream.set_nodelay(true)?;
                Ok(stream.into())
            }
            Self::Unix(socket) => Ok(socket.accept().await?.0.into()),
        }
    }
}
