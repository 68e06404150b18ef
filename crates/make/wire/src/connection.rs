//! A connection, with or without TLS.

use crate::Stream;
use crate::either::delegate_io;
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

impl Connection {
    /// Returns the result of the handshake, if there was one.
    #[must_use]
    pub fn handshake(&self) -> Option<Handshake> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => Some(stream.handshake()),
        }
    }

    /// Ends the connection if its peer is gone without a close; see [`Stream::set_keepalive`].
    pub fn set_keepalive(&self) {
        match self {
            Self::Plain(stream) => stream.set_keepalive(),
            Self::Tls(stream) => stream.stream().set_keepalive(),
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

delegate_io!(Connection: Plain, Tls);
