//! The first bytes of a connection, from which a server chooses how to answer.

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::AsyncReadExt as _;
use tokio_rustls::{Accept, LazyConfigAcceptor, StartHandshake};

use super::HandshakeError;
use super::server::CLIENT;
use crate::Stream;

/// Type of the first record of a TLS client.
const HANDSHAKE_RECORD: u8 = 22;

/// The start of a connection.
#[derive(Debug)]
pub enum Greeting {
    /// A client that speaks TLS.
    Tls(Box<TlsGreeting>),
    /// A client that does not.
    Plain {
        /// Its first byte.
        first: u8,
        /// The connection, without that byte.
        stream: Stream,
    },
}

/// The start of a client that speaks TLS.
pub struct TlsGreeting(StartHandshake<Stream>);

impl fmt::Debug for TlsGreeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsGreeting").finish_non_exhaustive()
    }
}

impl TlsGreeting {
    /// Returns the name that the client connects to, if it sends one.
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        self.0.client_hello().server_name().map(str::to_owned)
    }

    pub(super) fn into_handshake(self, config: Arc<ServerConfig>) -> Accept<Stream> {
        self.0.into_stream(config)
    }
}

/// Reads the start of `stream`.
///
/// # Errors
/// The client closed, or its TLS is malformed.
pub async fn read_greeting(mut stream: Stream) -> Result<Greeting, HandshakeError> {
    let failed = |error| HandshakeError::new(CLIENT, false, error);
    let first = stream.read_u8().await.map_err(failed)?;
    if first != HANDSHAKE_RECORD {
        return Ok(Greeting::Plain { first, stream });
    }
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut [first].as_slice()).map_err(failed)?;
    let start = LazyConfigAcceptor::new(acceptor, stream).await;
    let start = TlsGreeting(start.map_err(failed)?);
    Ok(Greeting::Tls(Box::new(start)))
}
