//! One UDP datagram a block.

use std::io::{self, ErrorKind};

use stillwell_metric::Outcome;
use stillwell_wire::{DialError, dial};
use tokio::net::UdpSocket;

use crate::contract::{Failure, Transport};

#[derive(Clone, Debug)]
pub(crate) struct Udp {
    address: String,
    bind: String,
}

impl Udp {
    pub(crate) fn new(address: &str, bind: &str) -> Self {
        Self {
            address: address.to_owned(),
            bind: bind.to_owned(),
        }
    }
}

impl Transport for Udp {
    type Connection = UdpSocket;

    const IS_MESSAGES: bool = true;

    async fn connect(&self) -> Result<UdpSocket, DialError> {
        dial::udp(&self.bind, &self.address).await
    }

    fn try_send(connection: &UdpSocket, bytes: &[u8]) -> io::Result<usize> {
        connection.try_send(bytes)
    }

    async fn writable(connection: &UdpSocket) -> io::Result<()> {
        connection.writable().await
    }

    /// A refusal is the answer to an earlier datagram, which had no receiver; this one has not
    /// been sent and can be. There is at most one for each sent.
    fn failure(error: &io::Error) -> Failure {
        match error.kind() {
            ErrorKind::ConnectionRefused => Failure {
                outcome: Outcome::ConnectRefused,
                is_good: true,
            },
            _ => Failure {
                outcome: Outcome::SendFailed,
                is_good: false,
            },
        }
    }
}
