//! A stream of bytes over TLS.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::{CommonState, HandshakeKind, ProtocolVersion, SignatureScheme};
use stillwell_plan::tls::Alpn;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::HandshakeError;
use super::suites::{name_of, name_of_signature};
use crate::Stream;
use crate::quic::noted::Noted;

/// A connection over TLS after its handshake, of either side, over a socket or any other
/// stream of bytes.
///
/// A write may leave encrypted bytes behind, so flush before you wait for an answer.
#[derive(Debug)]
pub struct TlsStream<S = Stream> {
    inner: tokio_rustls::TlsStream<S>,
    handshake: Handshake,
}

/// The result of a handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Handshake {
    /// When it began.
    pub begun: Moment,
    /// When it had ended.
    pub ended: Moment,
    /// True if an earlier session was resumed.
    pub resumed: bool,
    /// The application protocol that was agreed on.
    pub alpn: Option<Alpn>,
    /// The version, as `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, by OpenSSL's name.
    pub suite: &'static str,
    /// The group of the key exchange, as `X25519MLKEM768`; none where there was none.
    pub group: Option<&'static str>,
    /// The scheme of the server's signature, as `rsa_pss_rsae_sha256`; for clients, and none
    /// where a session was resumed.
    pub signature: Option<&'static str>,
}

impl Handshake {
    /// The result of a handshake that has ended now.
    fn of(connection: &CommonState, begun: Moment, signature: Option<SignatureScheme>) -> Self {
        let suite = connection.negotiated_cipher_suite();
        let group = connection.negotiated_key_exchange_group();
        Self {
            begun,
            ended: clock::now(),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            alpn: connection.alpn_protocol().and_then(Alpn::of_name),
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
                _ => "unknown",
            },
            suite: suite.map_or("unknown", |suite| name_of(suite.suite())),
            group: group.and_then(|group| group.name().as_str()),
            signature: signature.and_then(name_of_signature),
        }
    }

    /// Length of the handshake.
    #[must_use]
    pub const fn length(&self) -> Nanos {
        self.ended.since(self.begun)
    }
}

impl<S> TlsStream<S> {
    /// Completes a handshake with `peer`, and measures it.
    pub(super) async fn shake<C>(
        mut handshaking: impl Future<Output = io::Result<C>> + Unpin,
        peer: &str,
        is_client: bool,
    ) -> Result<Self, HandshakeError>
    where
        tokio_rustls::TlsStream<S>: From<C>,
    {
        let begun = clock::now();
        let mut signature = None;
        let shaken = poll_fn(|context| {
            drop(Noted::take());
            let polled = Pin::new(&mut handshaking).poll(context);
            signature = Noted::take().signature.or(signature);
            polled
        });
        let shaken = shaken.await;
        let connection = shaken.map_err(|error| HandshakeError::new(peer, is_client, error))?;
        let inner = tokio_rustls::TlsStream::from(connection);
        let handshake = Handshake::of(inner.get_ref().1, begun, signature);
        Ok(Self { inner, handshake })
    }

    /// Returns the result of the handshake.
    #[must_use]
    pub const fn handshake(&self) -> Handshake {
        self.handshake
    }

    /// Returns the stream below.
    pub(crate) fn stream(&self) -> &S {
        self.inner.get_ref().0
    }

    /// Gives TLS up, and the stream below back.
    #[must_use]
    pub fn into_stream(self) -> S {
        match self.inner {
            tokio_rustls::TlsStream::Client(stream) => stream.into_inner().0,
            tokio_rustls::TlsStream::Server(stream) => stream.into_inner().0,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.get_mut().inner).poll_read(context, buffer);
        polled.map_err(read_error)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    /// Sends the close of TLS, then closes this side of the stream below.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

/// An alert means that the peer has ended the connection; anything else is malformed data.
#[cold]
fn read_error(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    match cause {
        Some(rustls::Error::AlertReceived(alert)) => {
            let alert = rustls::Error::AlertReceived(*alert);
            io::Error::new(io::ErrorKind::ConnectionAborted, alert)
        }
        _ => error,
    }
}
