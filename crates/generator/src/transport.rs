//! The catalogue of ways in which bytes reach a target.

mod tcp;
mod udp;
mod unix_datagram;
mod unix_stream;

use std::future::Future;
use std::io::{self, ErrorKind};
use std::rc::Rc;

use stillwell_http::{HeadError, TargetError};
use stillwell_metric::Outcome;
use stillwell_plan::TransportPlan;
use stillwell_scope::Tasks;
use stillwell_wire::DialError;

use crate::drive::drive;
use crate::exchange::{Exchange, exchange};
use crate::worker::Worker;
use tcp::Tcp;
use udp::Udp;
use unix_datagram::UnixDatagram;
use unix_stream::UnixStream;

/// Takes bytes and says nothing back; driven by [`drive`].
pub(crate) trait Transport: 'static {
    /// One open connection or socket.
    type Connection;

    /// Whether each block is a message of its own; else blocks join.
    const IS_MESSAGES: bool;

    /// Opens one more connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, DialError>>;

    /// Hands bytes to the kernel, as many as it takes at once; all or none where
    /// they are a message.
    fn try_send(connection: &Self::Connection, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until the kernel may take more. Cancel-safe.
    fn writable(connection: &Self::Connection) -> impl Future<Output = io::Result<()>>;

    /// What a refusal by the kernel means.
    fn failure(error: &io::Error) -> Failure;
}

/// What a refusal by the kernel means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    /// Whether the connection is still good.
    pub(crate) is_good: bool,
}

/// One of the transports, ready to be opened on a worker.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    Tcp(Tcp),
    Udp(Udp),
    UnixStream(UnixStream),
    UnixDatagram(UnixDatagram),
    Http(Exchange),
}

/// Why requests cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error(transparent)]
    Url(#[from] TargetError),
    #[error(transparent)]
    Head(#[from] HeadError),
}

impl Line {
    pub(crate) fn new(plan: &TransportPlan) -> Result<Self, LineError> {
        Ok(match plan {
            TransportPlan::Tcp { address } => Self::Tcp(Tcp::new(address)),
            TransportPlan::Udp { address, bind } => Self::Udp(Udp::new(address, bind)),
            TransportPlan::UnixStream { path } => Self::UnixStream(UnixStream::new(path)),
            TransportPlan::UnixDatagram { path } => Self::UnixDatagram(UnixDatagram::new(path)),
            TransportPlan::Http { url, headers } => Self::Http(Exchange::new(url, headers)?),
        })
    }

    /// Starts the tasks of `connections` connections.
    pub(crate) fn open(self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        match self {
            Self::Tcp(tcp) => push(tcp, worker, connections, tasks),
            Self::Udp(udp) => push(udp, worker, connections, tasks),
            Self::UnixStream(unix) => push(unix, worker, connections, tasks),
            Self::UnixDatagram(unix) => push(unix, worker, connections, tasks),
            Self::Http(http) => {
                let http = Rc::new(http);
                for _ in 0..connections {
                    tasks.spawn(exchange(Rc::clone(worker), Rc::clone(&http)));
                }
            }
        }
    }
}

fn push(transport: impl Transport, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
    let transport = Rc::new(transport);
    for _ in 0..connections {
        tasks.spawn(drive(Rc::clone(worker), Rc::clone(&transport)));
    }
}

/// What a refusal on a stream counts as.
pub(crate) fn stream_outcome(error: &io::Error) -> Outcome {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
            Outcome::PeerClosed
        }
        ErrorKind::TimedOut => Outcome::TimedOut,
        _ => Outcome::SendFailed,
    }
}
