//! Receive buffers for datagrams.

use std::io::{self, IoSliceMut};

use bytes::BytesMut;
use quinn_udp::RecvMeta;

use super::socket::Socket;

/// Buffers that one call fills.
const BATCH: usize = 16;

/// The longest datagram; several short ones of one sender may come in one buffer.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;

/// Datagrams that are shorter than this together share one piece of memory, which is
/// there for as long as any part of it waits to be read.
const SHARED_BYTES_MAX: usize = 16 << 10;

/// The result of one call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Received {
    /// All that was there.
    All,
    /// As much as there was room for.
    Some,
}

/// The receive buffers of one worker.
#[derive(Debug)]
pub(super) struct Buffers {
    bytes: Vec<u8>,
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; BATCH * DATAGRAM_BYTES_MAX],
        }
    }

    /// Receives once, and shows every datagram to `take`.
    pub(super) fn receive(
        &mut self,
        socket: &Socket,
        mut take: impl FnMut(&RecvMeta, BytesMut),
    ) -> io::Result<Received> {
        let mut metas = [RecvMeta::default(); BATCH];
        let mut parts = self.bytes.chunks_mut(DATAGRAM_BYTES_MAX);
        let mut slices: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
        let filled = socket.receive(&mut slices, &mut metas)?;
        let in_all = metas[..filled].iter().map(|meta| meta.len).sum();
        let mut whole = BytesMut::with_capacity(match in_all {
            ..=SHARED_BYTES_MAX => in_all,
            _ => 0,
        });
        for (meta, slice) in metas.iter().zip(&slices).take(filled) {
            whole.extend_from_slice(&slice[..meta.len]);
            let mut rest = whole.split();
            while !rest.is_empty() {
                let length = meta.stride.clamp(1, rest.len());
                take(meta, rest.split_to(length));
            }
        }
        Ok(match filled < BATCH {
            true => Received::All,
            false => Received::Some,
        })
    }
}
