//! Datagrams of lines.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr_iter;
use stillwell_scope::PartError;
use tokio::io::ReadBuf;
use tokio::net::{UdpSocket, UnixDatagram};
use tokio::select;
use tokio::time::sleep;

use crate::core::Core;
use crate::counters::add;

/// No datagram is longer, save over Unix sockets, where longer ones are cut.
const BUFFER_BYTES: usize = 256 << 10;
/// Between tries where the kernel has no memory.
const PAUSE: Duration = Duration::from_millis(10);

/// Takes in the lines of UDP datagrams.
pub(super) async fn udp(core: &Rc<Core>, socket: std::net::UdpSocket) -> Result<(), PartError> {
    let socket = UdpSocket::from_std(socket)?;
    receive(core, |context, buffer| socket.poll_recv(context, buffer)).await;
    Ok(())
}

/// Takes in the lines of datagrams over a Unix socket.
pub(super) async fn unix(
    core: &Rc<Core>,
    socket: std::os::unix::net::UnixDatagram,
) -> Result<(), PartError> {
    let socket = UnixDatagram::from_std(socket)?;
    receive(core, |context, buffer| socket.poll_recv(context, buffer)).await;
    Ok(())
}

/// Datagrams are read even when the buffer is full, and dropped then: the kernel
/// would drop them unseen.
async fn receive(
    core: &Core,
    poll: impl Fn(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut stopping = core.stopping();
    loop {
        core.gate.pass().await;
        // Cancel-safe: a datagram that was read is returned.
        let received = stopping.next(|context| {
            let mut read = ReadBuf::new(&mut buffer);
            poll(context, &mut read).map_ok(|()| Bytes::copy_from_slice(read.filled()))
        });
        match received.await {
            None => return,
            Some(Ok(datagram)) => {
                core.keep_to_limit(datagram.len()).await;
                take_in(core, &datagram);
                core.write_out().await;
            }
            Some(Err(_)) => select! {
                () = core.token.cancelled() => {}
                () = sleep(PAUSE) => {}
            },
        }
    }
}

fn take_in(core: &Core, datagram: &Bytes) {
    add(&core.counters.bytes_in, datagram.len() as u64);
    // The end of a last line may be left out.
    let whole = datagram.strip_suffix(b"\n").unwrap_or(datagram).len();
    let mut start = 0;
    for end in memchr_iter(b'\n', &datagram[..whole]).chain([whole]) {
        if core.try_reserve(1, end - start) {
            core.take_one(datagram.slice(start..end));
        } else {
            core.drop_events(1);
        }
        start = end + 1;
    }
}
