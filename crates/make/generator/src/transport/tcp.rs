//! A TCP stream of blocks, nothing between them.

use std::io;

use rustix::io::ioctl_fionread;
use stillwell_wire::{DialError, dial};
use tokio::net::TcpStream;

use super::end_stream;
use crate::contract::Transport;

#[derive(Clone, Debug)]
pub(crate) struct Tcp {
    address: String,
}

impl Tcp {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
        }
    }
}

impl Transport for Tcp {
    type Connection = TcpStream;

    const IS_MESSAGES: bool = false;

    async fn connect(&self) -> Result<TcpStream, DialError> {
        dial::tcp(&self.address).await
    }

    fn try_send(connection: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        connection.try_write(bytes)
    }

    async fn writable(connection: &TcpStream) -> io::Result<()> {
        connection.writable().await
    }

    /// Waits for the peer only if it has ever written something: nothing is read before. If not,
    /// the kernel delivers all after the close.
    async fn finish(connection: TcpStream) {
        if ioctl_fionread(&connection).is_ok_and(|unread| unread > 0) {
            end_stream(connection).await;
        }
    }
}
