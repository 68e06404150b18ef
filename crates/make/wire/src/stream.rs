//! A connection of either kind.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, UnixStream};

use crate::either::delegate_io;

/// Keepalive that ends a connection after a minute in which nothing came from the peer: three
/// requests for a response, ten seconds each, after half a minute.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(30))
    .with_interval(Duration::from_secs(10))
    .with_retries(3);

/// A connection of either kind, for loops that do not care. Costs one branch an
/// operation; nothing is boxed.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Makes the kernel end a silent connection over TCP, by an error, a minute after its peer has
    /// gone without a close: the peer's host has failed, or the network.
    ///
    /// While data waits for the peer, the kernel's number of retransmissions decides. The option
    /// `TCP_USER_TIMEOUT` would shorten that, but ends a connection whose peer only reads nothing.
    pub fn set_keepalive(&self) {
        if let Self::Tcp(stream) = self {
            let set = SockRef::from(stream).set_tcp_keepalive(&KEEPALIVE);
            // A connection that has ended already fails when it is read from.
            set.unwrap_or_default();
        }
    }

    /// Closes the connection by a reset where it is TCP, so the peer learns
    /// that something is wrong.
    pub fn reset(self) {
        if let Self::Tcp(stream) = &self {
            // Then it is closed in the usual way.
            stream.set_zero_linger().unwrap_or_default();
        }
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

delegate_io!(Stream: Tcp, Unix);

#[cfg(test)]
mod tests {
    use tokio::join;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn keepalive_of_either_end_of_a_connection_takes_a_minute() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dialled = TcpStream::connect(listener.local_addr().unwrap());
        let (dialled, accepted) = join!(dialled, listener.accept());
        for stream in [dialled.unwrap(), accepted.unwrap().0].map(Stream::from) {
            stream.set_keepalive();
            let Stream::Tcp(stream) = &stream else {
                unreachable!("both are TCP")
            };
            let socket = SockRef::from(stream);
            assert!(socket.keepalive().unwrap());
            let idle = socket.tcp_keepalive_time().unwrap();
            let interval = socket.tcp_keepalive_interval().unwrap();
            let whole = idle + interval * socket.tcp_keepalive_retries().unwrap();
            assert_eq!(whole, Duration::from_secs(60));
        }
    }
}
