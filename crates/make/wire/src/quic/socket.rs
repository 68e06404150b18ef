//! A UDP socket that sends and receives many datagrams at once.

use std::io::{self, IoSliceMut};
use std::task::{Context, Poll};

use quinn_proto::Transmit;
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Datagrams that one call sends at most, where the kernel cuts them.
const SEGMENTS_MAX: usize = 10;

#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    /// `socket` is not blocking.
    pub(super) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        Ok(Self {
            socket: UdpSocket::from_std(socket)?,
            state,
        })
    }

    /// Returns true if datagrams may be larger than every path carries.
    pub(super) fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Maximum number of datagrams in one call.
    pub(super) fn segments_max(&self) -> usize {
        self.state.max_gso_segments().clamp(1, SEGMENTS_MAX)
    }

    /// Sends what `transmit` says of `bytes`; pending where the kernel takes no more.
    pub(super) fn poll_send(
        &self,
        context: &mut Context<'_>,
        transmit: &Transmit,
        bytes: &[u8],
    ) -> Poll<io::Result<()>> {
        let transmit = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit
                .ecn
                .and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
            contents: &bytes[..transmit.size.min(bytes.len())],
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        loop {
            let sent = self.socket.try_io(Interest::WRITABLE, || {
                self.state
                    .try_send(UdpSockRef::from(&self.socket), &transmit)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::task::ready!(self.socket.poll_send_ready(context))?;
                }
                sent => return Poll::Ready(sent),
            }
        }
    }

    pub(super) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_recv_ready(context)
    }

    /// Receives into `slices`; how many were filled.
    pub(super) fn receive(
        &self,
        slices: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> io::Result<usize> {
        let mut filled = 0;
        let drained = self.socket.try_io(Interest::READABLE, || {
            let socket = UdpSockRef::from(&self.socket);
            filled = self.state.recv(socket, slices, metas)?;
            // The kernel had no more: the runtime need not get it from another call.
            match filled < slices.len() {
                true => Err(io::ErrorKind::WouldBlock.into()),
                false => Ok(()),
            }
        });
        match drained {
            Err(error) if filled == 0 => Err(error),
            _ => Ok(filled),
        }
    }
}
