//! A stream of bytes over TLS.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::{Connection, HandshakeKind, ProtocolVersion, SignatureScheme};
use stillwell_plan::tls::Alpn;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::HandshakeError;
use super::failure::Cause;
use super::suites::{name_of, name_of_signature};
use crate::Stream;
use crate::quic::noted::Noted;

/// A connection over TLS, of either side, over a socket or any other stream of bytes. Buffers
/// are the library's and are kept from one operation to the next.
///
/// A write may leave encrypted bytes behind, so flush before you wait for an answer.
#[derive(Debug)]
pub struct TlsStream<S = Stream> {
    stream: S,
    connection: Connection,
    peer: String,
    signature: Option<SignatureScheme>,
    handshake: Option<Handshake>,
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
    /// Length of the handshake.
    #[must_use]
    pub const fn length(&self) -> Nanos {
        self.ended.since(self.begun)
    }
}

impl<S> TlsStream<S> {
    pub(super) const fn new(stream: S, connection: Connection, peer: String) -> Self {
        Self {
            stream,
            connection,
            peer,
            signature: None,
            handshake: None,
        }
    }

    /// Returns the result of the handshake, once it is complete.
    #[must_use]
    pub const fn shaken(&self) -> Option<Handshake> {
        self.handshake
    }

    /// The stream below.
    #[must_use]
    pub const fn stream(&self) -> &S {
        &self.stream
    }

    /// Gives TLS up, and the stream below back.
    #[must_use]
    pub fn into_stream(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Completes the handshake, once; later calls return its result. Not cancel-safe in its
    /// times: a later call measures only its own part of a handshake that was given up.
    ///
    /// # Errors
    /// [`HandshakeError`] with what to do about it; the stream is then of no use.
    pub async fn handshake(&mut self) -> Result<Handshake, HandshakeError> {
        if let Some(handshake) = self.handshake {
            return Ok(handshake);
        }
        let begun = clock::now();
        let is_client = matches!(self.connection, Connection::Client(_));
        let shaken = poll_fn(|context| self.poll_handshake(context)).await;
        shaken.map_err(|cause| HandshakeError::new(&self.peer, is_client, cause))?;
        let handshake = self.outcome(begun);
        self.handshake = Some(handshake);
        Ok(handshake)
    }

    fn outcome(&self, begun: Moment) -> Handshake {
        let connection = &self.connection;
        let alpn = connection.alpn_protocol();
        let suite = connection.negotiated_cipher_suite();
        let group = connection.negotiated_key_exchange_group();
        Handshake {
            begun,
            ended: clock::now(),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            alpn: alpn.and_then(Alpn::of_name),
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
                _ => "unknown",
            },
            suite: suite.map_or("unknown", |suite| name_of(suite.suite())),
            group: group.and_then(|group| group.name().as_str()),
            signature: self.signature.and_then(name_of_signature),
        }
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        loop {
            ready!(self.poll_write_tls(context)?);
            ready!(Pin::new(&mut self.stream).poll_flush(context)?);
            if !self.connection.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_read_tls(context)?) == 0 {
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
            }
            drop(Noted::take());
            let processed = self.connection.process_new_packets();
            self.signature = Noted::take().signature.or(self.signature);
            if let Err(error) = processed {
                // Sends the reason to the peer, if it still listens.
                drop(self.poll_write_tls(context));
                return Poll::Ready(Err(error.into()));
            }
        }
    }

    /// Reads what the socket holds: 0 at its end.
    fn poll_read_tls(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut socket = SocketAdapter {
            stream: &mut self.stream,
            context,
        };
        pending_if_blocked(self.connection.read_tls(&mut socket))
    }

    /// Writes all that is encrypted.
    fn poll_write_tls(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.connection.wants_write() {
            let mut socket = SocketAdapter {
                stream: &mut self.stream,
                context,
            };
            if ready!(pending_if_blocked(self.connection.write_tls(&mut socket))?) == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Encrypts by `write` and sends what the socket takes.
    fn poll_encrypt(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(&mut rustls::Writer<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        // What is left of earlier writes goes first: so little is ever kept.
        ready!(self.poll_write_tls(context)?);
        let taken = write(&mut self.connection.writer())?;
        if let Poll::Ready(Err(error)) = self.poll_write_tls(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(taken))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match this.connection.reader().read(buffer.initialize_unfilled()) {
                Ok(length) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(this.poll_read_tls(context)?);
            let processed = this.connection.process_new_packets();
            if this.connection.wants_write() {
                // An alert or an update of keys; it may wait for the next write.
                drop(this.poll_write_tls(context));
            }
            if let Err(error) = processed {
                let kind = match error {
                    // The peer has ended it, and says why.
                    rustls::Error::AlertReceived(_) => io::ErrorKind::ConnectionAborted,
                    _ => io::ErrorKind::InvalidData,
                };
                return Poll::Ready(Err(io::Error::new(kind, error)));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_encrypt(context, |writer| writer.write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_encrypt(context, |writer| writer.write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_write_tls(context)?);
        // What is below may be TLS as well.
        Pin::new(&mut this.stream).poll_flush(context)
    }

    /// Says goodbye in TLS, then closes our side of the stream below.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // The library sends it once, even after several calls.
        this.connection.send_close_notify();
        ready!(this.poll_write_tls(context)?);
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

/// A socket as the library wants to see it.
struct SocketAdapter<'s, 'c, 'w, S> {
    stream: &'s mut S,
    context: &'c mut Context<'w>,
}

impl<S: AsyncRead + Unpin> io::Read for SocketAdapter<'_, '_, '_, S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(bytes);
        match Pin::new(&mut *self.stream).poll_read(self.context, &mut buffer) {
            Poll::Ready(Ok(())) => Ok(buffer.filled().len()),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl<S: AsyncWrite + Unpin> io::Write for SocketAdapter<'_, '_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        blocked_if_pending(Pin::new(&mut *self.stream).poll_write(self.context, bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        blocked_if_pending(Pin::new(&mut *self.stream).poll_write_vectored(self.context, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn blocked_if_pending<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

fn pending_if_blocked<T>(result: io::Result<T>) -> Poll<io::Result<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result),
    }
}
