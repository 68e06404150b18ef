//! Tunnels to endpoints through a proxy, by `CONNECT`.
//!
//! Each connection of the load has its own connection to the proxy: both count together,
//! and the end of one touches no other. Over HTTP/2 and HTTP/3 it has one stream. HTTP/3
//! itself is led through as datagrams, over HTTP/2.

mod datagrams;
mod http2;
mod http3;

use std::cell::OnceCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use stillwell_http::{
    H1ResponseEvent, HeadError, ParseError, ResponseParser, Scheme, connect_head, h2, h3,
};
use stillwell_metric::{Outcome, Trouble};
use stillwell_plan::load::{TunnelPlan, TunnelProtocol};
use stillwell_plan::tls::{Alpn, ClientTlsPlan};
use stillwell_scope::explain;
use stillwell_wire::quic::{QuicClient, QuicConnection, QuicRefused};
use stillwell_wire::tls::{ClientTls, HandshakeError, TlsError};
use stillwell_wire::{Connection, DialError, Stream, dial};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use datagrams::Datagrams;
use http2::Http2Tunnel;
use http3::Http3Tunnel;

/// Bytes that are read from an HTTP/1.1 proxy at once; its answer has fewer.
const HEAD_BYTES: usize = 4 << 10;

/// Maximum number of bytes that arrive without a reader before reading stops.
const EARLY_BYTES_MAX: usize = 1 << 20;

/// Prepared settings of a proxy.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    pub(super) address: String,
    protocol: TunnelProtocol,
    tls_host: Option<String>,
    tls: Option<ClientTls>,
}

/// The request for an endpoint.
#[derive(Clone, Debug)]
pub(super) enum ProxyRequest {
    Http1(Vec<u8>),
    Http2(h2::H2RequestBlock),
    Http3(h3::H3RequestBlock),
    /// For datagrams, over HTTP/2.
    Datagrams(h2::H2RequestBlock),
}

impl ProxyRequest {
    /// `address` is the endpoint's, with its port; datagrams are for what is spoken
    /// with it over QUIC.
    pub(super) fn new(
        plan: &TunnelPlan,
        address: &str,
        is_for_datagrams: bool,
    ) -> Result<Self, HeadError> {
        let headers = plan.headers.iter();
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        if is_for_datagrams {
            let scheme = match plan.tls_host {
                Some(_) => Scheme::Https,
                None => Scheme::Http,
            };
            let (host, port) = host_and_port(address);
            let endpoint = (host, port.parse().unwrap_or(0));
            let block =
                h2::H2RequestBlock::connect_udp(scheme, &plan.authority(), endpoint, &headers)?;
            return Ok(Self::Datagrams(block));
        }
        Ok(match plan.protocol {
            TunnelProtocol::Http1 => Self::Http1(connect_head(address, &headers)?),
            TunnelProtocol::Http2 => Self::Http2(h2::H2RequestBlock::connect(address, &headers)?),
            TunnelProtocol::Http3 => Self::Http3(h3::H3RequestBlock::connect(address, &headers)?),
        })
    }
}

/// The parts of `host:port`, without the brackets of an address of IPv6.
fn host_and_port(address: &str) -> (&str, &str) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let bare = host
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'));
    (bare.unwrap_or(host), port)
}

/// A failure to open a tunnel through a proxy.
#[derive(Debug, thiserror::Error)]
pub(super) enum TunnelError {
    /// It is not there.
    #[error("reach the proxy")]
    Dial(#[from] DialError),
    /// It is not there, or there is no QUIC with it.
    #[error("reach the proxy")]
    Quic(#[from] QuicRefused),
    /// It is not to be spoken with.
    #[error("connect to the proxy at {proxy} over HTTP/3")]
    Tls { proxy: String, source: TlsError },
    /// There is no TLS with it.
    #[error("connect to the proxy at {proxy} over TLS")]
    Handshake {
        proxy: String,
        source: HandshakeError,
    },
    /// It does not speak HTTP/2.
    #[error("the proxy at {proxy} does not speak HTTP/2 over TLS")]
    NoHttp2 { proxy: String },
    /// It sends no datagrams on.
    #[error(
        "the proxy at {proxy} does not forward datagrams to {to}: it does not allow CONNECT with a protocol"
    )]
    NoDatagrams { proxy: String, to: String },
    /// It says no.
    #[error("the proxy at {proxy} answers CONNECT {to} with status {status}{}", advice(*.status))]
    Refused {
        proxy: String,
        to: String,
        status: u16,
    },
    /// It goes before it answers.
    #[error("the proxy at {proxy} closes the connection before it answers CONNECT {to}")]
    Closed { proxy: String, to: String },
    /// Its answer is not HTTP.
    #[error("the proxy at {proxy} answers CONNECT {to} with something other than HTTP/1.1")]
    Garbage {
        proxy: String,
        to: String,
        source: ParseError,
    },
    /// Its answer is not HTTP/2.
    #[error("the proxy at {proxy} answers CONNECT {to} with something other than HTTP/2")]
    Garbled {
        proxy: String,
        to: String,
        source: h2::H2ConnectionError,
    },
    /// Its answer is not HTTP/3.
    #[error("the proxy at {proxy} answers CONNECT {to} with something other than HTTP/3")]
    Unreadable {
        proxy: String,
        to: String,
        source: h3::H3MessageError,
    },
    /// The kernel's answer, or what TLS says.
    #[error("request {to} from the proxy at {proxy}")]
    Broken {
        proxy: String,
        to: String,
        source: io::Error,
    },
}

const fn advice(status: u16) -> &'static str {
    match status {
        401 | 407 => ": it requires credentials in the header proxy-authorization",
        403 => ": it refuses that address",
        405 | 501 => ": it does not support CONNECT",
        502..=504 => ": it cannot reach that address",
        _ => "",
    }
}

impl TunnelError {
    /// Its report.
    pub(super) fn trouble(&self) -> Trouble {
        Trouble {
            why: explain(self),
            remedy: match self {
                Self::Handshake { source, .. } => source.remedy(true),
                Self::Quic(error) => error.remedy(true),
                _ => None,
            },
        }
    }

    /// Its outcome.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Dial(error) => error.outcome(),
            Self::Quic(error) => error.outcome(),
            Self::NoDatagrams { .. }
            | Self::Refused { .. }
            | Self::Closed { .. }
            | Self::Broken { .. } => Outcome::ConnectFailed,
            Self::Handshake { .. }
            | Self::Tls { .. }
            | Self::NoHttp2 { .. }
            | Self::Garbage { .. }
            | Self::Garbled { .. }
            | Self::Unreadable { .. } => Outcome::HandshakeFailed,
        }
    }
}

impl Proxy {
    pub(super) fn new(plan: &TunnelPlan) -> Result<Self, TlsError> {
        let alpn = match plan.protocol {
            TunnelProtocol::Http1 => Alpn::Http1,
            TunnelProtocol::Http2 => Alpn::Http2,
            TunnelProtocol::Http3 => Alpn::Http3,
        };
        let tls = match &plan.tls_host {
            None => None,
            Some(host) => {
                let tls = ClientTls::new(&ClientTlsPlan {
                    alpn: vec![alpn],
                    ..plan.tls.clone()
                })?;
                tls.server_name(host)?;
                if plan.protocol == TunnelProtocol::Http3 {
                    // Each worker makes its own; whether it can is known now.
                    QuicClient::new(&tls)?;
                }
                Some(tls)
            }
        };
        Ok(Self {
            address: plan.address.clone(),
            protocol: plan.protocol,
            tls_host: plan.tls_host.clone(),
            tls,
        })
    }

    /// The same for one worker.
    pub(super) fn for_worker(&self) -> Self {
        Self {
            tls: self.tls.as_ref().map(ClientTls::for_worker),
            ..self.clone()
        }
    }

    /// Requests from the proxy, from the local address `source` where there is one, a tunnel to
    /// the endpoint `to`. `quic` is the worker's for the proxy, made when it is needed.
    pub(super) async fn lead(
        &self,
        source: Option<SocketAddr>,
        quic: &OnceCell<QuicClient>,
        request: &ProxyRequest,
        to: &str,
    ) -> Result<Tunnel, TunnelError> {
        let answer = match request {
            ProxyRequest::Http1(head) => {
                let connection = self.secure(self.dial(source).await?).await?;
                answer(connection, head).await
            }
            ProxyRequest::Http2(block) | ProxyRequest::Datagrams(block) => {
                let connection = self.secure(self.dial(source).await?).await?;
                let is_for_datagrams = matches!(request, ProxyRequest::Datagrams(_));
                http2::answer(connection, block, is_for_datagrams).await
            }
            // What QUIC keeps is too large to be moved about.
            ProxyRequest::Http3(block) => {
                let connection = Box::pin(self.shake(source, quic)).await?;
                http3::answer(connection, block).await
            }
        };
        let (proxy, to) = (self.address.clone(), to.to_owned());
        Err(match answer {
            Ok(ProxyResponse::Open { early, carrier }) => {
                return Ok(Tunnel {
                    carrier,
                    early,
                    read_end: 0,
                });
            }
            Ok(ProxyResponse::NoDatagrams) => TunnelError::NoDatagrams { proxy, to },
            Ok(ProxyResponse::Refused(status)) => TunnelError::Refused { proxy, to, status },
            Ok(ProxyResponse::Closed) => TunnelError::Closed { proxy, to },
            Err(TunnelFailure::Parse(source)) => TunnelError::Garbage { proxy, to, source },
            Err(TunnelFailure::Frames(source)) => TunnelError::Garbled { proxy, to, source },
            Err(TunnelFailure::Streams(source)) => TunnelError::Unreadable { proxy, to, source },
            Err(TunnelFailure::Io(source)) => TunnelError::Broken { proxy, to, source },
        })
    }

    async fn dial(&self, source: Option<SocketAddr>) -> Result<Stream, TunnelError> {
        let stream = match source {
            None => dial::tcp(&self.address).await,
            Some(source) => dial::tcp_from(source, &self.address).await,
        };
        Ok(Stream::from(stream?))
    }

    /// A connection of QUIC with the proxy.
    async fn shake(
        &self,
        source: Option<SocketAddr>,
        quic: &OnceCell<QuicClient>,
    ) -> Result<Box<QuicConnection>, TunnelError> {
        let failed = |source| TunnelError::Tls {
            proxy: self.address.clone(),
            source,
        };
        let (Some(host), Some(tls)) = (&self.tls_host, &self.tls) else {
            // It was looked at before the load.
            return Err(failed(TlsError::NoTls13));
        };
        let name = tls.server_name(host).map_err(failed)?;
        let client = match quic.get() {
            Some(client) => client,
            None => {
                let made = QuicClient::new(tls).map_err(failed)?;
                quic.get_or_init(|| made)
            }
        };
        let mut connection = Box::new(client.open(source, &self.address, &name).await?);
        connection.handshake().await?;
        Ok(connection)
    }

    async fn secure(&self, stream: Stream) -> Result<Connection, TunnelError> {
        let (Some(host), Some(tls)) = (&self.tls_host, &self.tls) else {
            return Ok(Connection::Plain(stream));
        };
        let proxy = || self.address.clone();
        let refused = |source| TunnelError::Handshake {
            proxy: proxy(),
            source,
        };
        // It was looked at before the load.
        let Ok(name) = tls.server_name(host) else {
            return Err(TunnelError::NoHttp2 { proxy: proxy() });
        };
        let stream = tls.connect(stream, &name).await.map_err(refused)?;
        let alpn = stream.handshake().alpn;
        if self.protocol == TunnelProtocol::Http2 && alpn != Some(Alpn::Http2) {
            return Err(TunnelError::NoHttp2 { proxy: proxy() });
        }
        Ok(stream.into())
    }
}

/// Answer of a proxy.
enum ProxyResponse {
    /// The tunnel is open; bytes that arrived already.
    Open {
        early: Vec<u8>,
        carrier: TunnelStream,
    },
    /// It does not accept requests for datagrams.
    NoDatagrams,
    Refused(u16),
    Closed,
}

/// Reason if its answer is malformed.
#[derive(Debug)]
enum TunnelFailure {
    Parse(ParseError),
    Frames(h2::H2ConnectionError),
    Streams(h3::H3MessageError),
    Io(io::Error),
}

/// End of a tunnelled connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TunnelEnd {
    Complete,
    Cut,
}

/// The result that a reader gets now of a tunnel with this end, if it has ended; `None`
/// where it has to wait. Bytes in `early` come first.
fn read_end(early: &[u8], end: Option<TunnelEnd>) -> Option<io::Result<()>> {
    match end {
        _ if !early.is_empty() => Some(Ok(())),
        Some(TunnelEnd::Complete) => Some(Ok(())),
        Some(TunnelEnd::Cut) => Some(Err(io::ErrorKind::ConnectionReset.into())),
        None => None,
    }
}

/// Sends `CONNECT` to a proxy over HTTP/1.1 and reads its answer.
async fn answer(mut connection: Connection, head: &[u8]) -> Result<ProxyResponse, TunnelFailure> {
    connection
        .write_all(head)
        .await
        .map_err(TunnelFailure::Io)?;
    connection.flush().await.map_err(TunnelFailure::Io)?;
    let mut parser = ResponseParser::new();
    // Nothing behind its head is the proxy's.
    parser.answers_head();
    let mut buffer = [0; HEAD_BYTES];
    loop {
        let count = connection.read(&mut buffer).await;
        let count = count.map_err(TunnelFailure::Io)?;
        if count == 0 {
            return Ok(ProxyResponse::Closed);
        }
        let (taken, event) = parser
            .advance(&buffer[..count])
            .map_err(TunnelFailure::Parse)?;
        match event {
            Some(H1ResponseEvent::Head(head)) if (200..300).contains(&head.status) => {
                return Ok(ProxyResponse::Open {
                    early: buffer[taken..count].to_vec(),
                    carrier: TunnelStream::Plain(connection),
                });
            }
            Some(H1ResponseEvent::Head(head)) => return Ok(ProxyResponse::Refused(head.status)),
            _ => {}
        }
    }
}

/// An open way to an endpoint.
#[derive(Debug)]
pub(super) struct Tunnel {
    carrier: TunnelStream,
    /// Bytes that arrived and were not reported yet, from `read_end` on.
    early: Vec<u8>,
    read_end: usize,
}

/// The tunnel through the proxy.
#[derive(Debug)]
enum TunnelStream {
    Plain(Connection),
    Http2(Connection, Box<Http2Tunnel>),
    Http3(Box<Http3Tunnel>),
}

impl Tunnel {
    /// The same for datagrams, if they were requested; else `None`.
    pub(super) fn datagrams(self) -> Option<Datagrams> {
        match self.carrier {
            TunnelStream::Http2(connection, framed) => {
                Some(Datagrams::new(connection, framed, self.early))
            }
            TunnelStream::Plain(_) | TunnelStream::Http3(_) => None,
        }
    }

    /// Returns bytes that arrived before; `false` if there are none.
    fn copy_early(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let rest = &self.early[self.read_end..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.read_end += count;
        if self.read_end == self.early.len() {
            self.early.clear();
            self.read_end = 0;
        }
        count > 0
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.copy_early(buffer) {
            return Poll::Ready(Ok(()));
        }
        let read = match &mut this.carrier {
            TunnelStream::Plain(connection) => {
                return Pin::new(connection).poll_read(context, buffer);
            }
            TunnelStream::Http2(connection, framed) => {
                framed.poll_read(connection, &mut this.early, context)
            }
            TunnelStream::Http3(streamed) => streamed.poll_read(&mut this.early, context),
        };
        read.map_ok(|()| {
            this.copy_early(buffer);
        })
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match &mut this.carrier {
            TunnelStream::Plain(connection) => Pin::new(connection).poll_write(context, bytes),
            TunnelStream::Http2(connection, framed) => {
                framed.poll_write(connection, &mut this.early, context, bytes)
            }
            TunnelStream::Http3(streamed) => streamed.poll_write(&mut this.early, context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let connection = match &mut self.get_mut().carrier {
            TunnelStream::Plain(connection) => connection,
            TunnelStream::Http2(connection, framed) => {
                std::task::ready!(framed.poll_out(connection, context)?);
                connection
            }
            TunnelStream::Http3(streamed) => {
                streamed.flush(context);
                return Poll::Ready(Ok(()));
            }
        };
        Pin::new(connection).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match &mut this.carrier {
            TunnelStream::Plain(connection) | TunnelStream::Http2(connection, _) => {
                Pin::new(connection).poll_shutdown(context)
            }
            TunnelStream::Http3(streamed) => streamed.poll_finish(&mut this.early, context),
        }
    }
}
