//! Sockets that are bound and not served yet.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::PathBuf;

use stillwell_wire::{SocketFile, listen};

use crate::endpoint::Endpoint;
use crate::run::RelayError;

/// An input whose socket is bound.
#[derive(Debug)]
pub(crate) struct BoundInput {
    pub(crate) socket: InputSocket,
    pub(crate) file: Option<SocketFile>,
}

#[derive(Debug)]
pub(crate) enum InputSocket {
    Tcp(TcpListener),
    Udp(UdpSocket),
    UnixStream(UnixListener),
    UnixDatagram(UnixDatagram),
    Http(TcpListener),
    SplunkHec(TcpListener),
    Grpc(TcpListener),
    /// No socket: a folder.
    Tail(PathBuf),
}

impl BoundInput {
    pub(crate) fn bind(endpoint: &Endpoint) -> Result<Self, RelayError> {
        let refused = |source| RelayError::Listen {
            endpoint: endpoint.to_string(),
            source,
        };
        let resolved = |address: &str| {
            resolve(address).map_err(|source| RelayError::Resolve {
                endpoint: endpoint.to_string(),
                source,
            })
        };
        let (socket, path) = match endpoint {
            Endpoint::Discard | Endpoint::File(_) => return Err(RelayError::InputDiscard),
            Endpoint::Tcp(address) => {
                let socket = listen::tcp(resolved(address)?).map_err(refused)?;
                (InputSocket::Tcp(socket), None)
            }
            Endpoint::Grpc(address) => {
                let socket = listen::tcp(resolved(address)?).map_err(refused)?;
                (InputSocket::Grpc(socket), None)
            }
            Endpoint::Tail(folder) => (InputSocket::Tail(folder.clone()), None),
            Endpoint::Udp(address) => {
                let socket = listen::udp(resolved(address)?).map_err(refused)?;
                (InputSocket::Udp(socket), None)
            }
            Endpoint::Http(target) => {
                let address = resolved(&target.dial_address())?;
                (
                    InputSocket::Http(listen::tcp(address).map_err(refused)?),
                    None,
                )
            }
            Endpoint::SplunkHec(target) => {
                let address = resolved(&target.dial_address())?;
                (
                    InputSocket::SplunkHec(listen::tcp(address).map_err(refused)?),
                    None,
                )
            }
            Endpoint::UnixStream(path) => {
                let socket = listen::unix_stream(path).map_err(refused)?;
                (InputSocket::UnixStream(socket), Some(path))
            }
            Endpoint::UnixDatagram(path) => {
                let socket = listen::unix_datagram(path).map_err(refused)?;
                (InputSocket::UnixDatagram(socket), Some(path))
            }
        };
        let file = path.and_then(|path| SocketFile::at(path));
        Ok(Self { socket, file })
    }

    /// The address that the kernel chose; `None` for Unix sockets.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            InputSocket::Tcp(socket)
            | InputSocket::Http(socket)
            | InputSocket::SplunkHec(socket)
            | InputSocket::Grpc(socket) => socket.local_addr().ok(),
            InputSocket::Udp(socket) => socket.local_addr().ok(),
            InputSocket::UnixStream(_) | InputSocket::UnixDatagram(_) | InputSocket::Tail(_) => {
                None
            }
        }
    }
}

fn resolve(address: &str) -> io::Result<SocketAddr> {
    let mut addresses = address.to_socket_addrs()?;
    addresses
        .next()
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}
