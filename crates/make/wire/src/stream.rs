//! A connection of either kind.

use std::io::{self, IoSlice};

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

macro_rules! either {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($inner) => $call,
            Stream::Unix($inner) => $call,
        }
    };
}

impl Stream {
    /// Reads what is there. See [`TcpStream::try_read`].
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where nothing is, else the kernel's answer.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, inner => inner.try_read(buffer))
    }

    /// Writes what fits. See [`TcpStream::try_write`].
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where nothing does, else the kernel's answer.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, inner => inner.try_write(bytes))
    }

    /// Writes what fits of several slices in one call.
    ///
    /// # Errors
    /// As [`Stream::try_write`].
    pub fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, inner => inner.try_write_vectored(slices))
    }

    /// Closes the connection by a reset where it is TCP, so the peer learns
    /// that something is wrong.
    pub fn reset(self) {
        if let Self::Tcp(stream) = &self {
            // Then it is closed in the usual way.
            stream.set_zero_linger().unwrap_or_default();
        }
    }

    /// Waits until there may be something to read. Cancel-safe.
    ///
    /// # Errors
    /// The kernel's answer.
    pub async fn readable(&self) -> io::Result<()> {
        either!(self, inner => inner.readable().await)
    }

    /// Waits until there may be room to write. Cancel-safe.
    ///
    /// # Errors
    /// The kernel's answer.
    pub async fn writable(&self) -> io::Result<()> {
        either!(self, inner => inner.writable().await)
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
