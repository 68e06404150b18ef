//! The first bytes of a connection, from which a server chooses how to answer.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use rustls::server::{Accepted, Acceptor};
use tokio::io::{AsyncRead as _, ReadBuf};

use super::failure::Cause;
use super::{HandshakeError, ServerTls, TlsStream};
use crate::Stream;

/// Type of the first record of a TLS client.
const HANDSHAKE_RECORD: u8 = 22;

/// One read of first bytes.
const READ_BYTES: usize = 4 << 10;

const PEER: &str = "a client";

/// The start of a connection.
#[derive(Debug)]
pub enum Greeting {
    /// A client that speaks TLS.
    Tls(Box<TlsGreeting>),
    /// A client that does not, and the bytes that it sent.
    Plain(Vec<u8>),
}

/// The start of a client that speaks TLS.
pub struct TlsGreeting {
    accepted: Accepted,
}

impl std::fmt::Debug for TlsGreeting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsGreeting").finish_non_exhaustive()
    }
}

impl TlsGreeting {
    /// Returns the name that the client connects to, if it sends one.
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        self.accepted
            .client_hello()
            .server_name()
            .map(str::to_owned)
    }
}

/// Reads the start of `stream`.
///
/// # Errors
/// The client closed, or its TLS is malformed.
pub async fn read_greeting(stream: &mut Stream) -> Result<Greeting, HandshakeError> {
    let failed = |cause| HandshakeError::new(PEER, false, cause);
    let mut acceptor = Acceptor::default();
    let mut is_first = true;
    loop {
        let mut buffer = [0; READ_BYTES];
        let read = read_some(stream, &mut buffer).await;
        let mut bytes = read.map_err(|error| failed(error.into()))?;
        if is_first && bytes.first() != Some(&HANDSHAKE_RECORD) {
            return Ok(Greeting::Plain(bytes.to_vec()));
        }
        is_first = false;
        while !bytes.is_empty() {
            // The library limits the length of a greeting.
            let taken = acceptor.read_tls(&mut bytes);
            if taken.map_err(|error| failed(error.into()))? == 0 {
                break;
            }
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(Greeting::Tls(Box::new(TlsGreeting { accepted }))),
            Ok(None) => {}
            Err((error, _)) => return Err(failed(error.into())),
        }
    }
}

async fn read_some<'b>(stream: &mut Stream, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let mut read = ReadBuf::new(buffer);
    poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut read)).await?;
    let length = read.filled().len();
    if length == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(&buffer[..length])
}

impl ServerTls {
    /// Completes the handshake of a client whose `greeting` was read from `stream`.
    ///
    /// # Errors
    /// [`HandshakeError`] with the cause.
    pub async fn accept_greeted(
        &self,
        greeting: TlsGreeting,
        stream: Stream,
    ) -> Result<TlsStream, HandshakeError> {
        let connection = greeting.accepted.into_connection(Arc::clone(&self.config));
        let connection = connection
            .map_err(|(error, _)| HandshakeError::new(PEER, false, Cause::from(error)))?;
        let mut stream = TlsStream::new(stream, connection.into(), PEER.to_owned());
        stream.handshake().await?;
        Ok(stream)
    }
}
