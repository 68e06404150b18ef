//! Binds sockets to listen on.
//!
//! All of them are nonblocking and are closed when a program is started. They
//! are the standard library's, made before any worker runs; their backlog takes
//! connections from then on.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, SockAddr, Socket, Type};

/// Connections that may wait to be accepted; the kernel may allow fewer.
const BACKLOG: i32 = 1024;

/// Room for datagrams that wait to be read. Ours to fill while the worker is
/// off its CPU: at 1 GiB/s it lasts 8 ms.
const DATAGRAM_BUFFER_BYTES: usize = 8 << 20;

/// An address that cannot be listened on, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("listen on {address}{}", advice(.source.kind()))]
pub struct ListenError {
    /// `host:port` or the path of a socket.
    pub address: String,
    /// The kernel's answer.
    pub source: io::Error,
}

impl ListenError {
    /// Returns true if something else already listens there.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.source.kind() == ErrorKind::AddrInUse
    }

    fn at(address: impl ToString) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            address: address.to_string(),
            source,
        }
    }
}

const fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::AddrInUse => {
            ": it is already in use; stop that program or choose another address"
        }
        ErrorKind::AddrNotAvailable => ": this host has no such address; 127.0.0.1 always works",
        ErrorKind::AlreadyExists => {
            ": the file there is not a socket; remove it or choose another path"
        }
        ErrorKind::PermissionDenied => ": it is not permitted; choose another address",
        _ => "",
    }
}

/// Listens for TCP connections on `address`, also where connections of an
/// earlier listener still linger.
///
/// # Errors
/// [`ListenError`] with the kernel's answer.
pub fn tcp(address: SocketAddr) -> Result<std::net::TcpListener, ListenError> {
    let bound = || {
        let socket = new_socket(Domain::for_address(address), Type::STREAM)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    bound().map_err(ListenError::at(address))
}

/// Takes UDP datagrams on `address`, with as large a buffer as the kernel gives.
///
/// # Errors
/// [`ListenError`] with the kernel's answer.
pub fn udp(address: SocketAddr) -> Result<std::net::UdpSocket, ListenError> {
    let bound = || {
        let socket = new_socket(Domain::for_address(address), Type::DGRAM)?;
        enlarge(&socket);
        socket.bind(&address.into())?;
        Ok(socket.into())
    };
    bound().map_err(ListenError::at(address))
}

/// `count` sockets as [`udp`] makes them, all on `address`: the kernel gives all of one
/// sender's datagrams to one of them.
///
/// # Errors
/// [`ListenError`] with the kernel's answer.
pub fn udp_shared(
    address: SocketAddr,
    count: u16,
) -> Result<Vec<std::net::UdpSocket>, ListenError> {
    // The first one comes alone: else one that is not ours would be shared with.
    let first = udp(address)?;
    if count <= 1 {
        return Ok(vec![first]);
    }
    let bound = || {
        let address = first.local_addr()?;
        drop(first);
        let bind_next = || {
            let socket = new_socket(Domain::for_address(address), Type::DGRAM)?;
            enlarge(&socket);
            socket.set_reuse_port(true)?;
            socket.bind(&address.into())?;
            Ok(socket.into())
        };
        (0..count)
            .map(|_| bind_next())
            .collect::<io::Result<Vec<_>>>()
    };
    bound().map_err(ListenError::at(address))
}

/// Listens for connections on a Unix socket at `path`. A socket without a listener is
/// replaced; any other file stays.
///
/// # Errors
/// [`ListenError`]: taken where another program listens there.
pub fn unix_stream(path: &Path) -> Result<UnixListener, ListenError> {
    let bound = || {
        let socket = bind_unix(path, Type::STREAM)?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    bound().map_err(ListenError::at(path.display()))
}

/// Takes datagrams on a Unix socket at `path`, which is replaced as by
/// [`unix_stream`].
///
/// # Errors
/// As [`unix_stream`].
pub fn unix_datagram(path: &Path) -> Result<UnixDatagram, ListenError> {
    let bound = || {
        let socket = bind_unix(path, Type::DGRAM)?;
        enlarge(&socket);
        Ok(socket.into())
    };
    bound().map_err(ListenError::at(path.display()))
}

fn new_socket(domain: Domain, kind: Type) -> io::Result<Socket> {
    let socket = Socket::new(domain, kind, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Best effort: beyond the host's limit only the administrator may go.
fn enlarge(socket: &Socket) {
    if set_socket_recv_buffer_size_force(socket, DATAGRAM_BUFFER_BYTES).is_err() {
        socket
            .set_recv_buffer_size(DATAGRAM_BUFFER_BYTES)
            .unwrap_or_default();
    }
}

fn bind_unix(path: &Path, kind: Type) -> io::Result<Socket> {
    let address = SockAddr::unix(path)?;
    let socket = new_socket(Domain::UNIX, kind)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {}
        bound => return bound.map(|()| socket),
    }
    if !path.symlink_metadata()?.file_type().is_socket() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    // Only a refusal means that there is no listener; a full backlog does not.
    match new_socket(Domain::UNIX, kind)?.connect(&address) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
        _ => return Err(ErrorKind::AddrInUse.into()),
    }
    std::fs::remove_file(path)?;
    socket.bind(&address)?;
    Ok(socket)
}
