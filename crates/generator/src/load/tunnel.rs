//! A way to endpoints through a proxy, which is asked for it by `CONNECT`.
//!
//! Each connection of the load has one of its own with the proxy: the account of
//! both is the same, and what becomes of one touches no other. Over HTTP/2 it has
//! one stream.

mod http2;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use stillwell_http::h2::{self, RequestBlock};
use stillwell_http::{HeadError, ParseError, ResponseEvent, ResponseParser, connect_head};
use stillwell_metric::{Outcome, Trouble};
use stillwell_plan::{Alpn, ClientTlsPlan, TunnelPlan, TunnelProtocol};
use stillwell_scope::explain;
use stillwell_wire::tls::{ClientTls, HandshakeError, TlsError};
use stillwell_wire::{Connection, DialError, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use http2::Framed;

/// What is read of an HTTP/1.1 proxy at once; its answer has less.
const HEAD_BYTES: usize = 4 << 10;

/// How a proxy is spoken with, ready for use.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    pub(super) address: String,
    protocol: TunnelProtocol,
    tls_host: Option<String>,
    tls: Option<ClientTls>,
}

/// What asks it for an endpoint.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Http1(Vec<u8>),
    Http2(RequestBlock),
}

impl Ask {
    /// `address` is the endpoint's, with its port.
    pub(super) fn new(plan: &TunnelPlan, address: &str) -> Result<Self, HeadError> {
        let headers = plan.headers.iter();
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Ok(match plan.protocol {
            TunnelProtocol::Http1 => Self::Http1(connect_head(address, &headers)?),
            TunnelProtocol::Http2 => Self::Http2(RequestBlock::connect(address, &headers)?),
        })
    }
}

/// Why there is no way through a proxy.
#[derive(Debug, thiserror::Error)]
pub(super) enum TunnelError {
    /// It is not there.
    #[error("reach the proxy")]
    Dial(#[from] DialError),
    /// There is no TLS with it.
    #[error("speak TLS with the proxy at {proxy}")]
    Handshake {
        proxy: String,
        source: HandshakeError,
    },
    /// It does not speak HTTP/2.
    #[error("the proxy at {proxy} does not speak HTTP/2 over TLS")]
    NoHttp2 { proxy: String },
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
    /// What it says is not HTTP.
    #[error("the proxy at {proxy} answers CONNECT {to} with what is no HTTP/1.1")]
    Garbage {
        proxy: String,
        to: String,
        source: ParseError,
    },
    /// What it says is not HTTP/2.
    #[error("the proxy at {proxy} answers CONNECT {to} with what is no HTTP/2")]
    Garbled {
        proxy: String,
        to: String,
        source: h2::ConnectionError,
    },
    /// The kernel's answer, or what TLS says.
    #[error("ask the proxy at {proxy} for {to}")]
    Broken {
        proxy: String,
        to: String,
        source: io::Error,
    },
}

const fn advice(status: u16) -> &'static str {
    match status {
        401 | 407 => ": it wants credentials, in a header proxy-authorization",
        403 => ": it does not let us there",
        405 | 501 => ": it is no proxy that connects",
        502..=504 => ": it does not get there",
        _ => "",
    }
}

impl TunnelError {
    /// What is told of it.
    pub(super) fn trouble(&self) -> Trouble {
        Trouble {
            why: explain(self),
            remedy: match self {
                Self::Handshake { source, .. } => source.remedy(true),
                _ => None,
            },
        }
    }

    /// What it counts as.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Dial(error) => error.outcome(),
            Self::Refused { .. } | Self::Closed { .. } | Self::Broken { .. } => {
                Outcome::ConnectFailed
            }
            Self::Handshake { .. }
            | Self::NoHttp2 { .. }
            | Self::Garbage { .. }
            | Self::Garbled { .. } => Outcome::HandshakeFailed,
        }
    }
}

impl Proxy {
    pub(super) fn new(plan: &TunnelPlan) -> Result<Self, TlsError> {
        let alpn = match plan.protocol {
            TunnelProtocol::Http1 => Alpn::Http1,
            TunnelProtocol::Http2 => Alpn::Http2,
        };
        let tls = match &plan.tls_host {
            None => None,
            Some(host) => {
                let tls = ClientTls::new(&ClientTlsPlan {
                    alpn: vec![alpn],
                    ..plan.tls.clone()
                })?;
                tls.server_name(host)?;
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

    /// Asks over `stream`, which leads to the proxy, for a way to the endpoint `to`.
    pub(super) async fn lead(
        &self,
        stream: Stream,
        ask: &Ask,
        to: &str,
    ) -> Result<Tunnel, TunnelError> {
        let (proxy, to) = (|| self.address.clone(), || to.to_owned());
        let mut connection = self.secure(stream).await?;
        let broken = |source| TunnelError::Broken {
            proxy: proxy(),
            to: to(),
            source,
        };
        let answer = match ask {
            Ask::Http1(head) => {
                connection.write_all(head).await.map_err(broken)?;
                connection.flush().await.map_err(broken)?;
                answer(&mut connection).await
            }
            Ask::Http2(block) => http2::answer(&mut connection, block).await,
        };
        let error = match answer {
            Ok(Answer::Open { early, framed }) => {
                return Ok(Tunnel {
                    connection,
                    framed,
                    early,
                    told: 0,
                });
            }
            Ok(Answer::Refused(status)) => TunnelError::Refused {
                proxy: proxy(),
                to: to(),
                status,
            },
            Ok(Answer::Closed) => TunnelError::Closed {
                proxy: proxy(),
                to: to(),
            },
            Err(NoAnswer::Parse(source)) => TunnelError::Garbage {
                proxy: proxy(),
                to: to(),
                source,
            },
            Err(NoAnswer::Frames(source)) => TunnelError::Garbled {
                proxy: proxy(),
                to: to(),
                source,
            },
            Err(NoAnswer::Io(source)) => broken(source),
        };
        Err(error)
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
        let alpn = stream.shaken().and_then(|it| it.alpn);
        if self.protocol == TunnelProtocol::Http2 && alpn != Some(Alpn::Http2) {
            return Err(TunnelError::NoHttp2 { proxy: proxy() });
        }
        Ok(stream.into())
    }
}

/// What a proxy says.
enum Answer {
    /// The way is open; what came of it already, and over HTTP/2 its stream.
    Open {
        early: Vec<u8>,
        framed: Option<Box<Framed>>,
    },
    Refused(u16),
    Closed,
}

/// Why it says nothing that could be understood.
#[derive(Debug)]
enum NoAnswer {
    Parse(ParseError),
    Frames(h2::ConnectionError),
    Io(io::Error),
}

/// Reads the answer of a proxy over HTTP/1.1.
async fn answer(connection: &mut Connection) -> Result<Answer, NoAnswer> {
    let mut parser = ResponseParser::new();
    // Nothing behind its head is the proxy's.
    parser.answers_head();
    let mut buffer = [0; HEAD_BYTES];
    loop {
        let count = connection.read(&mut buffer).await;
        let count = count.map_err(NoAnswer::Io)?;
        if count == 0 {
            return Ok(Answer::Closed);
        }
        let (taken, event) = parser.advance(&buffer[..count]).map_err(NoAnswer::Parse)?;
        match event {
            Some(ResponseEvent::Head(head)) if (200..300).contains(&head.status) => {
                return Ok(Answer::Open {
                    early: buffer[taken..count].to_vec(),
                    framed: None,
                });
            }
            Some(ResponseEvent::Head(head)) => return Ok(Answer::Refused(head.status)),
            _ => {}
        }
    }
}

/// An open way to an endpoint.
#[derive(Debug)]
pub(super) struct Tunnel {
    /// With the proxy.
    connection: Connection,
    /// Over HTTP/2 what frames the bytes.
    framed: Option<Box<Framed>>,
    /// What has arrived and was not told yet, from `told` on.
    early: Vec<u8>,
    told: usize,
}

impl Tunnel {
    /// Tells what has arrived before; `false` where that is nothing.
    fn tell(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let rest = &self.early[self.told..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.told += count;
        if self.told == self.early.len() {
            self.early.clear();
            self.told = 0;
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
        let own = self.get_mut();
        if own.tell(buffer) {
            return Poll::Ready(Ok(()));
        }
        let Some(framed) = &mut own.framed else {
            return Pin::new(&mut own.connection).poll_read(context, buffer);
        };
        let read = framed.poll_read(&mut own.connection, &mut own.early, context);
        read.map_ok(|()| {
            own.tell(buffer);
        })
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        match &mut own.framed {
            None => Pin::new(&mut own.connection).poll_write(context, bytes),
            Some(framed) => framed.poll_write(&mut own.connection, &mut own.early, context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        if let Some(framed) = &mut own.framed {
            std::task::ready!(framed.poll_out(&mut own.connection, context)?);
        }
        Pin::new(&mut own.connection).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_shutdown(context)
    }
}
