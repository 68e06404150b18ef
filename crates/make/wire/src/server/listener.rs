//! A bound listener, before the runtime of a worker watches it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use crate::{ListenError, Listener, SocketFile, listen};

/// A bound listener, and the file that is removed with it.
#[derive(Debug)]
pub struct StreamListener {
    /// The socket.
    pub socket: ListenerSocket,
    /// The file of a Unix socket.
    pub file: Option<Arc<SocketFile>>,
}

/// A bound socket that takes connections.
#[derive(Debug)]
pub enum ListenerSocket {
    /// Over TCP.
    Tcp(TcpListener),
    /// Over a Unix socket.
    Unix(UnixListener),
}

impl StreamListener {
    /// Listens on a TCP address.
    ///
    /// # Errors
    /// [`ListenError`] with what to do about it.
    pub fn tcp(address: SocketAddr) -> Result<Self, ListenError> {
        Ok(Self {
            socket: ListenerSocket::Tcp(listen::tcp(address)?),
            file: None,
        })
    }

    /// Listens on a Unix socket, whose file is removed once the last copy is dropped.
    ///
    /// # Errors
    /// [`ListenError`] with what to do about it.
    pub fn unix(path: &Path) -> Result<Self, ListenError> {
        Ok(Self {
            socket: ListenerSocket::Unix(listen::unix_stream(path)?),
            file: SocketFile::at(path).map(Arc::new),
        })
    }

    /// The address with the port that the kernel chose; `None` for Unix sockets.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            ListenerSocket::Tcp(socket) => socket.local_addr().ok(),
            ListenerSocket::Unix(_) => None,
        }
    }

    /// A second handle to the same socket, for one more worker.
    ///
    /// # Errors
    /// The kernel has no descriptor left.
    pub fn share(&self) -> io::Result<Self> {
        let socket = match &self.socket {
            ListenerSocket::Tcp(socket) => ListenerSocket::Tcp(socket.try_clone()?),
            ListenerSocket::Unix(socket) => ListenerSocket::Unix(socket.try_clone()?),
        };
        Ok(Self {
            socket,
            file: self.file.clone(),
        })
    }
}

impl ListenerSocket {
    /// Has the calling worker's runtime watch it.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn watched(self) -> io::Result<Listener> {
        match self {
            Self::Tcp(socket) => Listener::tcp(socket),
            Self::Unix(socket) => Listener::unix(socket),
        }
    }
}
