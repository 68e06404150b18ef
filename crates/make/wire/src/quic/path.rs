//! Carriers of the datagrams of a connection.

use std::fmt::Debug;
use std::io;
use std::task::{Context, Poll};

use quinn_proto::Transmit;

use super::socket::Socket;

/// Carries the datagrams of one connection in place of a socket of its own.
///
/// Each is whole or not there at all; they may get lost, or overtake each other.
pub trait Datagrams: Debug {
    /// Takes a datagram; pending where there is no room for it yet. One that cannot be
    /// carried any more is lost: [`Self::poll_receive`] says so, behind what has come.
    fn poll_send(&mut self, context: &mut Context<'_>, datagram: &[u8]) -> Poll<()>;

    /// Shows what has come to `take`, one datagram after the other; pending where
    /// nothing has. It also goes on with what it took.
    ///
    /// # Errors
    /// It carries nothing any more.
    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>>;
}

#[derive(Debug)]
pub(super) enum Path {
    Socket(Socket),
    Led(Box<dyn Datagrams>),
}

impl Path {
    /// Maximum number of datagrams in one call.
    pub(super) fn segments_max(&self) -> usize {
        match self {
            Self::Socket(socket) => socket.segments_max(),
            Self::Led(_) => 1,
        }
    }

    /// Sends what `transmit` says of `bytes`; pending where there is no room for it.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        transmit: &Transmit,
        bytes: &[u8],
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Socket(socket) => socket.poll_send(context, transmit, bytes),
            Self::Led(datagrams) => {
                let datagram = &bytes[..transmit.size.min(bytes.len())];
                datagrams.poll_send(context, datagram).map(Ok)
            }
        }
    }
}
