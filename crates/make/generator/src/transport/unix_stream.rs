//! A Unix stream of blocks, nothing between them.

use std::io;
use std::path::{Path, PathBuf};

use stillwell_wire::{DialError, dial};

use crate::contract::Transport;

#[derive(Clone, Debug)]
pub(crate) struct UnixStream {
    path: PathBuf,
}

impl UnixStream {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }
}

impl Transport for UnixStream {
    type Connection = tokio::net::UnixStream;

    const IS_MESSAGES: bool = false;

    async fn connect(&self) -> Result<tokio::net::UnixStream, DialError> {
        dial::unix_stream(&self.path).await
    }

    fn try_send(connection: &tokio::net::UnixStream, bytes: &[u8]) -> io::Result<usize> {
        connection.try_write(bytes)
    }

    async fn writable(connection: &tokio::net::UnixStream) -> io::Result<()> {
        connection.writable().await
    }
}
