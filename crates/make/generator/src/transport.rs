//! Push transports: sockets and files that take bytes and say nothing back.

mod files;
mod passthru_file;
mod tail;
mod tcp;
mod tls;
mod udp;
mod unix_datagram;
mod unix_stream;

pub(crate) use files::Files;
pub(crate) use passthru_file::PassthruFile;
pub(crate) use tcp::Tcp;
pub(crate) use tls::Tls;
pub(crate) use udp::Udp;
pub(crate) use unix_datagram::UnixDatagram;
pub(crate) use unix_stream::UnixStream;
