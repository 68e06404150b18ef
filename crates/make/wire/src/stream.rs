//! A connection of either kind.

use tokio::net::{TcpStream, UnixStream};

use crate::either::delegate_io;

/// A connection of either kind, for loops that do not care. Costs one branch an
/// operation; nothing is boxed.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Closes the connection by a reset where it is TCP, so the peer learns
    /// that something is wrong.
    pub fn reset(self) {
        if let Self::Tcp(stream) = &self {
            // Then it is closed in the usual way.
            stream.set_zero_linger().unwrap_or_default();
        }
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

delegate_io!(Stream: Tcp, Unix);
