//! The client of the control plane: one request at a time, each over a connection of its own.
//!
//! Scrapes, container engines, exporters, object stores and Kubernetes all use this module:
//!
//! * [`Endpoint`] is an address and the way to it: TCP, TLS over TCP, or a Unix socket.
//! * [`Endpoint::request`] sends one [`Request`] and returns its [`Response`], whose body has
//!   a size limit; [`Endpoint::request_within`] has a deadline, too, and
//!   [`Endpoint::request_unless_stalled`] one for each step.
//! * [`GrpcCall`] is one call of gRPC; [`unary`] makes a call with one message each way.
//! * [`docker`] is the API of a container engine.
//!
//! Dropping a future of this module closes the connection, so a caller that has a
//! [`Token`](stillwell_scope::Token) waits under `token.run_until_cancelled(…)`.
//!
//! It is not for generated load: every request allocates and opens a connection. Callers
//! see no parser and no framing, so a library could replace both in this module alone.

pub mod docker;
mod grpc;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use stillwell_http::{HeadError, OneShot, OneShotError, RequestTemplate, Scheme, Target};
use stillwell_metric::Outcome;
use stillwell_plan::tls::{ClientTlsPlan, Verification};
use stillwell_units::{ByteSize, Nanos};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::tls::{ClientTls, HandshakeError, TlsError};
use crate::{Connection, DialError, Stream, dial, stream_outcome};

pub use grpc::{GrpcCall, GrpcEnd, GrpcError, GrpcMessage, GrpcRequest, unary};
pub use stillwell_http::Response;

/// One read.
const BUFFER_BYTES: usize = 64 << 10;

/// An address, and the way to it.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// Over TCP.
    Tcp {
        /// `host:port`.
        address: String,
    },
    /// Over TLS and TCP.
    Tls {
        /// `host:port`.
        address: String,
        /// The configuration of TLS.
        tls: ClientTls,
        /// The name that the certificate must be valid for.
        host: String,
    },
    /// Over a Unix socket.
    Unix {
        /// The file of the socket.
        path: PathBuf,
    },
}

/// One request of HTTP/1.1. Headers are sent as given, in order; `host` and
/// `content-length` are added.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// Such as `GET`.
    pub method: &'r str,
    /// Path and query.
    pub path: &'r str,
    /// The value of `host`.
    pub authority: &'r str,
    /// Names and values. One of them should be `connection: close`.
    pub headers: &'r [(&'r str, &'r str)],
    /// The body; may be empty.
    pub body: &'r [u8],
}

/// No connection to an [`Endpoint`]. Displays the cause alone.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No connection.
    #[error(transparent)]
    Dial(DialError),
    /// The host is not a name that TLS can verify.
    #[error(transparent)]
    ServerName(Box<TlsError>),
    /// A connection, and no TLS over it.
    #[error(transparent)]
    Handshake(HandshakeError),
}

/// No response to a request. Displays the cause alone.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request cannot be written.
    #[error(transparent)]
    Head(HeadError),
    /// No connection.
    #[error(transparent)]
    Connect(ConnectError),
    /// The connection broke.
    #[error(transparent)]
    Exchange(io::Error),
    /// The bytes received are not a response, not all of it, or too many.
    #[error(transparent)]
    Response(OneShotError),
    /// The deadline came first.
    #[error("no response within {after}")]
    TimedOut {
        /// The deadline.
        after: Nanos,
        /// True if there was a connection by then.
        is_connected: bool,
    },
}

impl Endpoint {
    /// A TCP endpoint at `address`, which is `host:port`.
    #[must_use]
    pub fn tcp(address: impl Into<String>) -> Self {
        let address = address.into();
        Self::Tcp { address }
    }

    /// A Unix socket at `path`.
    #[must_use]
    pub fn unix(path: &Path) -> Self {
        Self::Unix {
            path: path.to_owned(),
        }
    }

    /// The endpoint of a URL; over TLS where `tls` is given.
    #[must_use]
    pub fn of_target(target: &Target, tls: Option<ClientTls>) -> Self {
        let address = target.dial_address();
        match tls {
            None => Self::Tcp { address },
            Some(tls) => Self::Tls {
                address,
                tls,
                host: target.host().to_owned(),
            },
        }
    }

    /// The endpoint of a URL; `https` accepts any certificate. For requests to a target, which
    /// often has a self-signed certificate, that transfer no secret.
    ///
    /// # Errors
    /// [`TlsError`] if TLS cannot be configured.
    pub fn unverified(target: &Target) -> Result<Self, TlsError> {
        let plan = ClientTlsPlan {
            verification: Verification::None,
            ..ClientTlsPlan::default()
        };
        let tls = match target.scheme() {
            Scheme::Https => Some(ClientTls::new(&plan)?),
            _ => None,
        };
        Ok(Self::of_target(target, tls))
    }

    /// The same endpoint for one worker, with TLS sessions that only it resumes.
    #[must_use]
    pub fn for_worker(self) -> Self {
        match self {
            Self::Tls { address, tls, host } => Self::Tls {
                address,
                tls: tls.for_worker(),
                host,
            },
            endpoint => endpoint,
        }
    }

    /// Returns true for connections over TLS.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls { .. })
    }

    /// Opens a connection. Cancel-safe.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        match self {
            Self::Unix { path } => {
                let stream = dial::unix_stream(path).await;
                let stream = stream.map_err(ConnectError::Dial)?;
                Ok(Connection::from(Stream::from(stream)))
            }
            Self::Tcp { address } => {
                let stream = dial::tcp(address).await.map_err(ConnectError::Dial)?;
                Ok(Connection::from(Stream::from(stream)))
            }
            Self::Tls { address, tls, host } => {
                let stream = dial::tcp(address).await.map_err(ConnectError::Dial)?;
                let name = tls.server_name(host);
                let name = name.map_err(|error| ConnectError::ServerName(Box::new(error)))?;
                // Boxed, so the state of a handshake does not enlarge every caller.
                let stream = Box::pin(tls.connect(Stream::from(stream), &name)).await;
                Ok(stream.map_err(ConnectError::Handshake)?.into())
            }
        }
    }

    /// Sends `request` and waits for the whole response, whose body has at most `body_max`.
    /// Cancel-safe: a request that is given up is a closed connection.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn request(
        &self,
        request: &Request<'_>,
        body_max: ByteSize,
    ) -> Result<Response, RequestError> {
        let bytes = request.bytes()?;
        let connection = self.connect().await.map_err(RequestError::Connect)?;
        exchange(connection, &bytes, body_max, None).await
    }

    /// Fetches `target` uncompressed; `headers` are added, such as `accept`. Cancel-safe.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn get(
        &self,
        target: &Target,
        headers: &[(&str, &str)],
        body_max: ByteSize,
    ) -> Result<Response, RequestError> {
        let bytes = OneShot::request(target, headers).map_err(RequestError::Head)?;
        let connection = self.connect().await.map_err(RequestError::Connect)?;
        exchange(connection, &bytes, body_max, None).await
    }

    /// Sends `request` as [`Endpoint::request`] does, with a deadline that includes
    /// connecting.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn request_within(
        &self,
        deadline: Nanos,
        request: &Request<'_>,
        body_max: ByteSize,
    ) -> Result<Response, RequestError> {
        let bytes = request.bytes()?;
        let mut is_connected = false;
        let response = timeout(deadline.as_duration(), async {
            let connection = self.connect().await.map_err(RequestError::Connect)?;
            is_connected = true;
            exchange(connection, &bytes, body_max, None).await
        });
        match response.await {
            Ok(response) => response,
            Err(_) => Err(RequestError::TimedOut {
                after: deadline,
                is_connected,
            }),
        }
    }

    /// Sends `request` as [`Endpoint::request`] does, and fails if it stalls: connecting, each part
    /// of 64 KiB that is sent, and each wait for more of the response take at most `stall`.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn request_unless_stalled(
        &self,
        stall: Nanos,
        request: &Request<'_>,
        body_max: ByteSize,
    ) -> Result<Response, RequestError> {
        let bytes = request.bytes()?;
        let connection = within(Some(stall), false, self.connect()).await?;
        let connection = connection.map_err(RequestError::Connect)?;
        exchange(connection, &bytes, body_max, Some(stall)).await
    }
}

impl Request<'_> {
    fn bytes(&self) -> Result<Vec<u8>, RequestError> {
        let template = RequestTemplate::new(self.method, self.path, self.authority, self.headers);
        let template = template.map_err(RequestError::Head)?;
        let mut bytes = Vec::new();
        template.write_head(self.body.len() as u64, &mut bytes);
        bytes.extend_from_slice(self.body);
        Ok(bytes)
    }
}

impl ConnectError {
    /// The outcome that this failure counts as.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Dial(error) => error.outcome(),
            Self::ServerName(_) => Outcome::ConnectFailed,
            Self::Handshake(error) => error.outcome(),
        }
    }
}

impl RequestError {
    /// Returns true if the request may have reached the server.
    #[must_use]
    pub const fn was_sent(&self) -> bool {
        match self {
            Self::Head(_) | Self::Connect(_) => false,
            Self::Exchange(_) | Self::Response(_) => true,
            Self::TimedOut { is_connected, .. } => *is_connected,
        }
    }

    /// The outcome that this failure counts as.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Head(_) => Outcome::SendFailed,
            Self::Connect(error) => error.outcome(),
            Self::Exchange(error) => stream_outcome(error),
            Self::Response(error) if error.is_end_of_connection() => Outcome::PeerClosed,
            Self::Response(_) => Outcome::Malformed,
            Self::TimedOut {
                is_connected: true, ..
            } => Outcome::TimedOut,
            Self::TimedOut { .. } => Outcome::ConnectTimedOut,
        }
    }
}

/// Waits for a step of a request, for `at_most` if that is given.
async fn within<T>(
    at_most: Option<Nanos>,
    is_connected: bool,
    step: impl Future<Output = T>,
) -> Result<T, RequestError> {
    let Some(after) = at_most else {
        return Ok(step.await);
    };
    let late = |_| RequestError::TimedOut {
        after,
        is_connected,
    };
    timeout(after.as_duration(), step).await.map_err(late)
}

/// Sends a request; each part of it takes at most `stall`. The inner error is that of the connection.
async fn send(
    connection: &mut Connection,
    request: &[u8],
    stall: Option<Nanos>,
) -> Result<io::Result<()>, RequestError> {
    for part in request.chunks(BUFFER_BYTES) {
        if let Err(error) = within(stall, true, connection.write_all(part)).await? {
            return Ok(Err(error));
        }
    }
    // Encrypted bytes may have stayed behind.
    within(stall, true, connection.flush()).await
}

/// Sends a request and receives its response; each step takes at most `stall`.
async fn exchange(
    mut connection: Connection,
    request: &[u8],
    body_max: ByteSize,
    stall: Option<Nanos>,
) -> Result<Response, RequestError> {
    // A server may respond before it has read everything, and close: the response counts.
    let sent = send(&mut connection, request, stall).await?;
    let mut response = OneShot::new(body_max);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = match within(stall, true, connection.read(&mut buffer)).await? {
            Ok(length) => length,
            Err(error) => return Err(RequestError::Exchange(sent.err().unwrap_or(error))),
        };
        if length == 0 {
            return response.finish().map_err(|error| match sent {
                Err(sent) if error == OneShotError::NoResponse => RequestError::Exchange(sent),
                _ => RequestError::Response(error),
            });
        }
        let whole = response.push(&buffer[..length]);
        if let Some(whole) = whole.map_err(RequestError::Response)? {
            return Ok(whole);
        }
    }
}
