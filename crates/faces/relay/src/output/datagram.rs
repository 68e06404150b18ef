//! One event in each datagram.

use std::io;

use bytes::Bytes;
use rustix::io::Errno;
use stillwell_wire::{DialError, dial};
use tokio::net::{UdpSocket, UnixDatagram};

use super::backoff::Backoff;
use crate::core::Core;
use crate::endpoint::Endpoint;

/// Events taken from the buffer in one go.
const TAKEN_MAX: usize = 64;

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

/// Sends events on to `endpoint`, a datagram socket, each without a line end. What UDP does
/// not take is dropped; over a Unix socket it is sent again once another process has bound
/// it.
pub(super) async fn send_on(core: &Core, endpoint: &Endpoint) {
    let mut backoff = Backoff::new();
    let mut socket = None;
    let mut taken = Vec::with_capacity(TAKEN_MAX);
    while core.buffer.wait().await {
        core.gate.pass().await;
        core.buffer.take_while(|event| {
            let wanted = taken.len() < TAKEN_MAX;
            if wanted {
                taken.push(event.clone());
            }
            wanted
        });
        for event in taken.drain(..) {
            let sent = send(&event, endpoint, &mut socket, &mut backoff).await;
            if sent {
                core.handed_over(1, event.len() as u64);
            } else {
                core.gave_up(1);
            }
        }
    }
}

/// Returns true if the kernel took `event`.
async fn send(
    event: &Bytes,
    endpoint: &Endpoint,
    socket: &mut Option<Socket>,
    backoff: &mut Backoff,
) -> bool {
    loop {
        let open = match socket {
            Some(open) => open,
            None => match open(endpoint).await {
                Ok(opened) => socket.insert(opened),
                Err(_) => {
                    backoff.wait().await;
                    continue;
                }
            },
        };
        match open.send(event).await {
            Ok(_) => {
                backoff.reset();
                return true;
            }
            Err(error) if is_hopeless(&error) => return false,
            Err(_) => match open {
                // The error is that of an earlier datagram: once more.
                Socket::Udp(open) => return open.send(event).await.is_ok(),
                Socket::Unix(_) => {
                    *socket = None;
                    backoff.wait().await;
                }
            },
        }
    }
}

impl Socket {
    async fn send(&self, event: &[u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.send(event).await,
            Self::Unix(socket) => socket.send(event).await,
        }
    }
}

/// Returns true if the event is longer than any datagram.
fn is_hopeless(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MSGSIZE)
}

async fn open(endpoint: &Endpoint) -> Result<Socket, DialError> {
    match endpoint {
        Endpoint::UnixDatagram(path) => dial::unix_datagram(path).await.map(Socket::Unix),
        Endpoint::Udp(to) => dial::udp("0.0.0.0:0", to).await.map(Socket::Udp),
        _ => unreachable!("only datagram sockets come here"),
    }
}
