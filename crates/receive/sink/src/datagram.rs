//! The one loop that takes datagrams.

mod drops;
mod eager;
mod queue;

use std::io::{self, ErrorKind};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute, set_current_timer_slack};
use stillwell_metric::{SinkShard, TimeState};
use stillwell_scope::{PartError, clock};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::SocketFile;
use stillwell_wire::server::account_ticks;
use tokio::io::ReadBuf;
use tokio::net::{UdpSocket, UnixDatagram};
use tokio::select;
use tokio::time::sleep;

use crate::prefixes::Events;
use crate::socket::{DatagramSocket, SinkSocket};
use crate::worker::Worker;
use drops::Drops;
use eager::Eager;
use queue::Queue;

/// Between tries where the kernel has no memory.
const PAUSE: Duration = Duration::from_millis(10);

/// So many datagrams that wait already are taken before anything else is looked at.
const AT_ONCE_MAX: u64 = 32;

/// The same of a sink that pauses while datagrams are queued.
const COLLECTED_MAX: u64 = 512;

/// A datagram socket that its runtime watches.
#[derive(Debug)]
enum WatchedSocket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

/// Reason why a worker that takes datagrams ended.
#[derive(Debug, thiserror::Error)]
#[error("take datagrams")]
struct ReceiveError {
    source: io::Error,
}

/// Counts every datagram that the kernel gives, until the worker is to end. On the
/// corresponding instruction, closes its socket and opens another later.
pub(crate) async fn receive(
    worker: Rc<Worker>,
    socket: DatagramSocket,
    file: Option<Arc<SocketFile>>,
) -> Result<(), PartError> {
    let (mut next, mut cuts) = (Some((socket, file)), 0);
    while let Some((socket, file)) = next.take() {
        let is_over = take(&worker, socket, cuts).await?;
        drop(file);
        if is_over {
            break;
        }
        let reopened = worker.reopened().await?;
        if let Some((SinkSocket::Datagram(socket, file), seen)) = reopened {
            (next, cuts) = (Some((socket, file)), seen);
        }
    }
    Ok(())
}

/// Counts datagrams until the worker is to end, which is true, or is cut off once
/// more than `cuts` times.
async fn take(worker: &Worker, socket: DatagramSocket, cuts: u64) -> Result<bool, PartError> {
    let socket = match socket {
        DatagramSocket::Udp(socket) => WatchedSocket::Udp(UdpSocket::from_std(socket)?),
        DatagramSocket::Unix(socket) => WatchedSocket::Unix(UnixDatagram::from_std(socket)?),
    };
    let drops = socket.drops(&worker.base.shard);
    let mut stopping = worker.base.stopping();
    let mut ticks = account_ticks();
    let stamps = worker.stamps();
    let mut events = worker.events();
    let queue = (!worker.times_events()).then(|| socket.queue()).flatten();
    let mut eager = Eager::new(queue.is_some());
    loop {
        let version = worker.apply_steering();
        if worker.is_paused() && !worker.is_cut_off(cuts) {
            let is_resumed = worker.until_resumed(version).await.is_some();
            count_drops(drops.as_ref(), &worker.base.shard);
            if !is_resumed {
                return Ok(true);
            }
            continue;
        }
        let mut take = |bytes: &[u8]| {
            if let Some(queue) = &queue {
                queue.note(bytes.len());
            }
            count(bytes, &mut events, &worker.base.shard);
            stamps.whole(bytes);
        };
        let poll = |context: &mut Context<'_>| {
            let queue = queue.as_ref();
            poll_waiting(context, worker, (&socket, queue), &mut eager, &mut take)
        };
        // All arms are cancel-safe: a datagram that was taken was counted.
        let received = select! {
            biased;
            () = worker.cut(cuts) => {
                count_drops(drops.as_ref(), &worker.base.shard);
                return Ok(false);
            }
            () = worker.changed_from(version) => continue,
            received = stopping.next(poll) => received,
            _ = ticks.tick() => {
                count_drops(drops.as_ref(), &worker.base.shard);
                continue;
            }
        };
        match received {
            Some(Ok(())) => {}
            Some(Err(error)) if is_passing(&error) => {
                worker.base.shard.errors.add(1);
                select! {
                    () = worker.base.token.cancelled() => {}
                    () = sleep(PAUSE) => {}
                }
            }
            Some(Err(source)) => return Err(ReceiveError { source }.into()),
            None => {
                count_drops(drops.as_ref(), &worker.base.shard);
                return Ok(true);
            }
        }
    }
}

/// Takes the datagrams that wait, and those that come soon; pending where there are none.
fn poll_waiting(
    context: &mut Context<'_>,
    worker: &Worker,
    (socket, queue): (&WatchedSocket, Option<&Queue>),
    eager: &mut Eager,
    mut take: impl FnMut(&[u8]),
) -> Poll<io::Result<()>> {
    let mut taken = 0;
    while taken < AT_ONCE_MAX {
        let polled = worker
            .base
            .poll_datagram(|read| socket.poll_receive(context, read), &mut take);
        match polled {
            Poll::Ready(Ok(())) => taken += 1,
            Poll::Pending if taken > 0 => break,
            // What was taken before an error is counted already.
            other => return other,
        }
    }
    let cells = &worker.base.shard.account;
    let now = worker.base.account.pass(TimeState::Running, cells);
    eager.came(taken, now);
    if taken == AT_ONCE_MAX {
        return Poll::Ready(Ok(()));
    }
    match queue {
        Some(queue) if queue.has_room() => collect(worker, socket, eager, take),
        _ => poll_briefly(worker, socket, (eager, now, AT_ONCE_MAX - taken), take),
    }
}

/// Nothing waits any more, `now`: polls for at most `most` further datagrams, each for as
/// long as that costs less than to wait for it. Polling without a result is no work: the worker is
/// ahead of the sender.
fn poll_briefly(
    worker: &Worker,
    socket: &WatchedSocket,
    (eager, mut now, most): (&mut Eager, Moment, u64),
    mut take: impl FnMut(&[u8]),
) -> Poll<io::Result<()>> {
    let cells = &worker.base.shard.account;
    let length = if most > 0 {
        eager.length()
    } else {
        Nanos::ZERO
    };
    if length == Nanos::ZERO {
        return Poll::Ready(Ok(()));
    }
    let mut until = now + length;
    let mut taken = 0;
    while now < until && taken < most {
        match worker
            .base
            .poll_datagram(|read| socket.try_receive(read), &mut take)
        {
            Poll::Ready(Ok(())) => {
                taken += 1;
                now = worker.base.account.pass(TimeState::Running, cells);
                eager.came(1, now);
                until = now + eager.length();
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => now = worker.base.account.pass(TimeState::Idle, cells),
        }
    }
    eager.brought(taken);
    Poll::Ready(Ok(()))
}

/// Nothing waits any more: pauses while datagrams are queued and takes them, for as long as they come fast. The pauses
/// block the thread, which has nothing else to do, as the runtime's timer counts milliseconds.
fn collect(
    worker: &Worker,
    socket: &WatchedSocket,
    eager: &mut Eager,
    mut take: impl FnMut(&[u8]),
) -> Poll<io::Result<()>> {
    // If the kernel refuses, pauses are longer and queue more.
    set_current_timer_slack(Some(NonZeroU64::MIN)).unwrap_or_default();
    let cells = &worker.base.shard.account;
    let mut collected = 0;
    while collected < COLLECTED_MAX {
        let pause = eager.pause();
        if pause == Nanos::ZERO {
            break;
        }
        let until = clock::now() + pause;
        let at = Timespec {
            tv_sec: (until.as_u64() / Nanos::SECOND.as_u64()).cast_signed(),
            tv_nsec: (until.as_u64() % Nanos::SECOND.as_u64()).cast_signed(),
        };
        // A pause that a signal cuts short was short.
        clock_nanosleep_absolute(ClockId::Monotonic, &at).unwrap_or_default();
        worker.base.account.pass(TimeState::Idle, cells);
        let taken = match take_queued(worker, socket, &mut take) {
            Ok(0) => break,
            Ok(taken) => taken,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let now = worker.base.account.pass(TimeState::Running, cells);
        eager.came(taken, now);
        collected += taken;
        if taken == COLLECTED_MAX {
            break;
        }
    }
    Poll::Ready(Ok(()))
}

/// Takes what is queued, up to [`COLLECTED_MAX`] datagrams; returns their number.
fn take_queued(
    worker: &Worker,
    socket: &WatchedSocket,
    mut take: impl FnMut(&[u8]),
) -> io::Result<u64> {
    let mut taken = 0;
    while taken < COLLECTED_MAX {
        let polled = worker
            .base
            .poll_datagram(|read| socket.try_receive(read), &mut take);
        match polled {
            Poll::Ready(Ok(())) => taken += 1,
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending => break,
        }
    }
    Ok(taken)
}

/// Datagrams that the kernel dropped are counted as well as received ones.
fn count_drops(drops: Option<&Drops>, shard: &SinkShard) {
    if let Some(count) = drops.and_then(Drops::count) {
        shard.dropped.set(count);
    }
}

impl WatchedSocket {
    /// The kernel's count of dropped datagrams, for the worker that reports it where several
    /// share the socket. A Unix socket drops nothing: its senders wait.
    fn drops(&self, shard: &SinkShard) -> Option<Drops> {
        match self {
            Self::Udp(socket) if shard.is_first() => Drops::of(socket, shard.dropped.total()),
            Self::Udp(_) | Self::Unix(_) => None,
        }
    }

    /// The kernel's queue, if it can hold datagrams during a pause. That of a Unix socket has ten places, so its
    /// senders would be blocked.
    fn queue(&self) -> Option<Queue> {
        match self {
            Self::Udp(socket) => Queue::of(socket),
            Self::Unix(_) => None,
        }
    }

    /// One datagram, if one waits. The runtime is not involved.
    fn try_receive(&self, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let descriptor = match self {
            Self::Udp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        };
        match recv(
            descriptor,
            buffer.initialize_unfilled(),
            RecvFlags::DONTWAIT,
        ) {
            Ok((length, _)) => {
                buffer.advance(length);
                Poll::Ready(Ok(()))
            }
            Err(Errno::WOULDBLOCK) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    fn poll_receive(
        &self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Udp(socket) => socket.poll_recv(context, buffer),
            Self::Unix(socket) => socket.poll_recv(context, buffer),
        }
    }
}

fn count(datagram: &[u8], events: &mut Events, shard: &SinkShard) {
    let events = events.take(datagram) + events.finish();
    shard.messages.add(1);
    shard.bytes.add(datagram.len() as u64);
    shard.events.add(events.max(1));
}

/// Returns true if the socket can go on after `error`.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::Interrupted
            | ErrorKind::OutOfMemory
    )
}

#[cfg(test)]
mod tests;
