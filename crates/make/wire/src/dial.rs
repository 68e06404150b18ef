//! Opens connections.
//!
//! Everything here is to be called within a worker, and may wait as long as the
//! kernel or a name server likes: callers wait under their token.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use stillwell_metric::Outcome;

use tokio::net::{TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixStream, lookup_host};

use crate::tls::HandshakeError;

/// A connection that could not be opened, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("connect to {address}")]
pub struct DialError {
    /// `host:port` or the path of a socket.
    pub address: String,
    /// The kernel's answer, or the resolver's; of several addresses that of the
    /// last one.
    pub source: io::Error,
}

impl DialError {
    /// There is a connection to `address`, and no TLS over it.
    #[must_use]
    pub fn handshake(address: &str, error: HandshakeError) -> Self {
        Self {
            address: address.to_owned(),
            source: io::Error::other(error),
        }
    }

    /// Returns the outcome that it counts as.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let inner = self.source.get_ref();
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<HandshakeError>()) {
            return error.outcome();
        }
        match self.source.kind() {
            // A Unix socket that does not exist yet has no listener.
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Outcome::ConnectRefused,
            io::ErrorKind::TimedOut => Outcome::ConnectTimedOut,
            _ => Outcome::ConnectFailed,
        }
    }

    fn at(address: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            address: address.into(),
            source,
        }
    }
}

/// A TCP connection to `host:port`, without delay for small writes. Where a
/// name has several addresses they are tried in the resolver's order.
///
/// # Errors
/// [`DialError`] where none of them answers, or the name has none.
pub async fn tcp(address: &str) -> Result<TcpStream, DialError> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(DialError::at(address))?;
    stream.set_nodelay(true).map_err(DialError::at(address))?;
    Ok(stream)
}

/// As [`tcp`], from the local address `source`; of the addresses of a name the
/// first one of the same family is tried.
///
/// # Errors
/// [`DialError`] where `source` is not available, there is no address of its family, or no
/// program answers there.
pub async fn tcp_from(source: SocketAddr, address: &str) -> Result<TcpStream, DialError> {
    let failed = |error| DialError::at(address)(error);
    let mut all = lookup_host(address).await.map_err(failed)?;
    let peer = all.find(|peer| peer.is_ipv4() == source.is_ipv4());
    let peer = peer.ok_or_else(|| {
        let message = format!("it has no address of the same family (IPv4 or IPv6) as {source}");
        failed(io::Error::new(io::ErrorKind::AddrNotAvailable, message))
    })?;
    let socket = if source.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    };
    let socket = socket.map_err(failed)?;
    socket.bind(source).map_err(failed)?;
    let stream = socket.connect(peer).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}

/// A UDP socket on the local `host:port` in `bind` that sends to `host:port` in `to`.
/// Succeeds even without a receiver. `0.0.0.0` and `[::]` in `bind` are any local address:
/// addresses of the other family are tried after those of the same one.
///
/// # Errors
/// [`DialError`] where `bind` is not available or `to` cannot be reached from it.
pub async fn udp(bind: &str, to: &str) -> Result<UdpSocket, DialError> {
    let any = bind.parse::<SocketAddr>().ok();
    let Some(any) = any.filter(|any| any.ip().is_unspecified()) else {
        let socket = UdpSocket::bind(bind).await.map_err(DialError::at(bind))?;
        socket.connect(to).await.map_err(DialError::at(to))?;
        return Ok(socket);
    };
    let peers = lookup_host(to).await.map_err(DialError::at(to))?;
    let mut peers: Vec<SocketAddr> = peers.collect();
    peers.sort_by_key(|peer| peer.is_ipv4() != any.is_ipv4());
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "it has no address");
    for peer in peers {
        match udp_from_any(any.port(), peer).await {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(DialError::at(to)(failed))
}

async fn udp_from_any(port: u16, peer: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, port)).await?;
    socket.connect(peer).await?;
    Ok(socket)
}

/// A stream connection to the Unix socket at `path`.
///
/// # Errors
/// [`DialError`] where no program listens there.
pub async fn unix_stream(path: &Path) -> Result<UnixStream, DialError> {
    UnixStream::connect(path)
        .await
        .map_err(DialError::at(path.to_string_lossy()))
}

/// A nameless Unix datagram socket that sends to the one at `path`.
///
/// # Errors
/// [`DialError`] where no program has bound it.
#[expect(
    clippy::unused_async,
    reason = "all dialers have the same signature; this one does not wait"
)]
pub async fn unix_datagram(path: &Path) -> Result<UnixDatagram, DialError> {
    let failed = |source| DialError::at(path.to_string_lossy())(source);
    let socket = UnixDatagram::unbound().map_err(failed)?;
    socket.connect(path).map_err(failed)?;
    Ok(socket)
}
