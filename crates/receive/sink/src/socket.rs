//! The address of a sink, and a bound socket there.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;

use stillwell_wire::server::StreamListener;
use stillwell_wire::{ListenError, SocketFile, listen};

/// The address of a sink.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    UnixStream(PathBuf),
    Udp(SocketAddr),
    UnixDatagram(PathBuf),
    /// It does not listen.
    Nowhere,
}

/// A bound socket of one worker.
#[derive(Debug)]
pub(crate) enum SinkSocket {
    Stream(StreamListener),
    Datagram(DatagramSocket, Option<Arc<SocketFile>>),
}

/// A bound socket that takes datagrams.
#[derive(Debug)]
pub(crate) enum DatagramSocket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl DatagramSocket {
    pub(crate) fn share(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Udp(socket) => Self::Udp(socket.try_clone()?),
            Self::Unix(socket) => Self::Unix(socket.try_clone()?),
        })
    }
}

impl Place {
    pub(crate) fn listen(&self) -> Result<Option<SinkSocket>, ListenError> {
        Ok(Some(match self {
            Self::Tcp(address) => SinkSocket::Stream(StreamListener::tcp(*address)?),
            Self::UnixStream(path) => SinkSocket::Stream(StreamListener::unix(path)?),
            Self::Udp(address) => {
                SinkSocket::Datagram(DatagramSocket::Udp(listen::udp(*address)?), None)
            }
            Self::UnixDatagram(path) => {
                let socket = DatagramSocket::Unix(listen::unix_datagram(path)?);
                SinkSocket::Datagram(socket, SocketFile::at(path).map(Arc::new))
            }
            Self::Nowhere => return Ok(None),
        }))
    }
}

impl SinkSocket {
    pub(crate) fn share(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Stream(listener) => Self::Stream(listener.share()?),
            Self::Datagram(socket, file) => Self::Datagram(socket.share()?, file.clone()),
        })
    }
}
