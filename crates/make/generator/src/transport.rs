//! Push transports: sockets and files that take bytes and say nothing back.

mod files;
mod passthru_file;
mod tail;
mod tcp;
mod tls;
mod udp;
mod unix_datagram;
mod unix_stream;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

pub(crate) use files::Files;
pub(crate) use passthru_file::PassthruFile;
pub(crate) use tcp::Tcp;
pub(crate) use tls::Tls;
pub(crate) use udp::Udp;
pub(crate) use unix_datagram::UnixDatagram;
pub(crate) use unix_stream::UnixStream;

/// Ends the stream and reads until the peer ends its own. A connection that is closed while bytes
/// of the peer are unread is reset, and the peer loses what is on the way.
async fn end_stream(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut room = [0; 1024];
    while let Ok(1..) = stream.read(&mut room).await {}
}
