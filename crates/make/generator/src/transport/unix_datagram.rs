//! One Unix datagram a block.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use stillwell_metric::Outcome;
use stillwell_wire::{DialError, dial};

use crate::contract::{Failure, Transport};

#[derive(Clone, Debug)]
pub(crate) struct UnixDatagram {
    path: PathBuf,
}

impl UnixDatagram {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }
}

impl Transport for UnixDatagram {
    type Connection = tokio::net::UnixDatagram;

    const IS_MESSAGES: bool = true;

    async fn connect(&self) -> Result<tokio::net::UnixDatagram, DialError> {
        dial::unix_datagram(&self.path).await
    }

    fn try_send(connection: &tokio::net::UnixDatagram, bytes: &[u8]) -> io::Result<usize> {
        connection.try_send(bytes)
    }

    async fn writable(connection: &tokio::net::UnixDatagram) -> io::Result<()> {
        connection.writable().await
    }

    /// The receiver that had bound the path has gone; another may have come.
    fn failure(error: &io::Error) -> Failure {
        let outcome = match error.kind() {
            ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::NotConnected
            | ErrorKind::BrokenPipe => Outcome::PeerClosed,
            _ => Outcome::SendFailed,
        };
        Failure {
            outcome,
            is_good: false,
        }
    }
}
