//! A connection, with or without TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Stream;
use crate::tls::{Handshake, TlsStream};

/// A connection with or without TLS, for loops that do not care. Costs one
/// branch an operation; only the state of TLS is boxed, once.
#[derive(Debug)]
pub enum Connection {
    /// Bytes as they are.
    Plain(Stream),
    /// Bytes over TLS.
    Tls(Box<TlsStream>),
}

macro_rules! either {
    ($connection:expr, $inner:ident => $call:expr) => {
        match $connection {
            Connection::Plain($inner) => $call,
            Connection::Tls($inner) => $call,
        }
    };
}

impl Connection {
    /// What came of the handshake, where there was one.
    #[must_use]
    pub fn handshake(&self) -> Option<Handshake> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.shaken(),
        }
    }

    /// Closes the connection by a reset; see [`Stream::reset`].
    pub fn reset(self) {
        match self {
            Self::Plain(stream) => stream.reset(),
            Self::Tls(stream) => stream.into_stream().reset(),
        }
    }
}

impl From<Stream> for Connection {
    fn from(stream: Stream) -> Self {
        Self::Plain(stream)
    }
}

impl From<TlsStream> for Connection {
    fn from(stream: TlsStream) -> Self {
        Self::Tls(Box::new(stream))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_read(context, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_shutdown(context))
    }
}
