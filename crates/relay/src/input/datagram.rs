//! Datagrams of lines.

use std::cell::RefCell;
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
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::core::Core;
use crate::counters::add;

/// No datagram is longer, save over Unix sockets, where longer ones are cut.
const BUFFER_BYTES: usize = 256 << 10;
/// Between tries where the kernel has no memory.
const PAUSE: Duration = Duration::from_millis(10);
/// Datagrams taken after the relay was asked to end: no socket holds more.
const DRAIN_DATAGRAMS_MAX: u32 = 100_000;

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
    let buffer = RefCell::new(vec![0; BUFFER_BYTES]);
    let next = || {
        std::future::poll_fn(|context| {
            let mut buffer = buffer.borrow_mut();
            let mut read = ReadBuf::new(&mut buffer);
            poll(context, &mut read).map_ok(|()| Bytes::copy_from_slice(read.filled()))
        })
    };
    loop {
        core.gate.pass().await;
        // Both arms are cancel-safe: a datagram that was read is returned.
        let received = select! {
            biased;
            received = next() => received,
            () = core.token.cancelled() => break,
        };
        match received {
            Ok(datagram) => take_in(core, &datagram),
            Err(_) => select! {
                () = core.token.cancelled() => {}
                () = sleep(PAUSE) => {}
            },
        }
    }
    for _ in 0..DRAIN_DATAGRAMS_MAX {
        // Lets the runtime learn what has arrived, and the output make room.
        yield_now().await;
        let received = select! {
            biased;
            received = next() => received,
            () = async {} => return,
        };
        if let Ok(datagram) = received {
            take_in(core, &datagram);
        }
    }
}

fn take_in(core: &Core, datagram: &Bytes) {
    add(&core.counters.bytes_in, datagram.len() as u64);
    // The end of a last line may be left out.
    let whole = datagram.strip_suffix(b"\n").unwrap_or(datagram).len();
    let mut start = 0;
    for end in memchr_iter(b'\n', &datagram[..whole]).chain([whole]) {
        if core.buffer.try_reserve(1) {
            core.take_one(datagram.slice(start..end));
        } else {
            core.drop_events(1);
        }
        start = end + 1;
    }
}
