//! A listener of either kind.

use std::io;
use std::task::{Context, Poll};

use tokio::net::{TcpListener, UnixListener};

use crate::Stream;

/// A listener of either kind that the calling worker's runtime watches, for
/// loops that do not care.
#[derive(Debug)]
pub enum Listener {
    /// Over TCP.
    Tcp(TcpListener),
    /// Over a Unix socket.
    Unix(UnixListener),
}

impl Listener {
    /// Has the calling worker's runtime watch `socket`, which must not block.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn tcp(socket: std::net::TcpListener) -> io::Result<Self> {
        TcpListener::from_std(socket).map(Self::Tcp)
    }

    /// As [`Listener::tcp`].
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn unix(socket: std::os::unix::net::UnixListener) -> io::Result<Self> {
        UnixListener::from_std(socket).map(Self::Unix)
    }

    /// The next connection, without delay for small writes. An error may be of
    /// one connection only.
    pub fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        match self {
            Self::Tcp(socket) => socket.poll_accept(context).map_ok(|(stream, _)| {
                // A peer that has gone already is noticed when it is read from.
                stream.set_nodelay(true).unwrap_or_default();
                stream.into()
            }),
            Self::Unix(socket) => {
                let accepted = socket.poll_accept(context);
                accepted.map_ok(|(stream, _)| stream.into())
            }
        }
    }
}
