//! Forwards packets between two tunnel devices with a configurable delay.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use stillwell_scope::{PartError, Place, Scope, Token, clock};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Timer;
use tokio::io::unix::AsyncFd;

use crate::kernel;

/// The longest packet of such a device.
const PACKET_BYTES_MAX: usize = 65_535;
/// Buffer of one direction; packets beyond it are lost.
const HELD_BYTES_MAX: usize = 64 << 20;
/// Packets read before those that are due are written.
const READ_MAX: usize = 64;

/// Carries packets in both directions.
#[derive(Debug)]
pub(super) struct Carrier {
    ends: [Arc<OwnedFd>; 2],
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    delay_ns: AtomicU64,
    overflowed: AtomicU64,
}

impl Carrier {
    pub(super) fn new(first: OwnedFd, second: OwnedFd) -> Self {
        Self {
            ends: [Arc::new(first), Arc::new(second)],
            shared: Arc::default(),
        }
    }

    /// Sets the delay of packets that are read from now on.
    pub(super) fn delay(&self, delay: Nanos) {
        self.shared
            .delay_ns
            .store(delay.as_u64(), Ordering::Relaxed);
    }

    /// Number of packets that were lost because the buffer was full.
    pub(super) fn overflowed(&self) -> u64 {
        self.shared.overflowed.load(Ordering::Relaxed)
    }

    /// Starts a worker for each direction of the link called `name`.
    pub(super) fn start(&self, name: &str, scope: &mut Scope, place: &Place) -> io::Result<()> {
        for (direction, from) in self.ends.iter().enumerate() {
            let source = from.try_clone()?;
            let target = Arc::clone(&self.ends[1 - direction]);
            let shared = Arc::clone(&self.shared);
            let name = format!("link-{name}-{direction}");
            scope.worker(place.clone(), &name, move |token| async move {
                carry(source, &target, &shared, &token).await
            })?;
        }
        Ok(())
    }
}

/// Packets in flight in one direction.
#[derive(Debug, Default)]
struct Held {
    packets: VecDeque<(Moment, Vec<u8>)>,
    bytes: usize,
    /// Buffers of packets that have arrived.
    spare: Vec<Vec<u8>>,
    /// Time of the last packet: packets do not overtake each other.
    last: Moment,
}

async fn carry(
    source: OwnedFd,
    target: &OwnedFd,
    shared: &Shared,
    token: &Token,
) -> Result<(), PartError> {
    let source = kernel::watched(source)?;
    let mut timer = Timer::new()?;
    let mut held = Held::default();
    let mut buffer = vec![0; PACKET_BYTES_MAX];
    loop {
        let due = held.packets.front().map(|(due, _)| *due);
        // All branches are cancel-safe: they only wait.
        tokio::select! {
            () = token.cancelled() => return Ok(()),
            () = timer.until(due.unwrap_or_default()), if due.is_some() => {}
            read = read_some(&source, &mut buffer, &mut held, shared) => read?,
        }
        held.deliver(clock::now(), target);
    }
}

/// Waits for packets and reads a limited number of them.
async fn read_some(
    source: &AsyncFd<OwnedFd>,
    buffer: &mut [u8],
    held: &mut Held,
    shared: &Shared,
) -> io::Result<()> {
    let mut ready = source.readable().await?;
    let delay = Nanos::new(shared.delay_ns.load(Ordering::Relaxed));
    for _ in 0..READ_MAX {
        match rustix::io::read(source.get_ref(), &mut *buffer) {
            Ok(length) => {
                if !held.take(&buffer[..length], clock::now() + delay) {
                    shared.overflowed.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(Errno::INTR) => {}
            // No packet, or the device is down; it becomes readable when it is up.
            Err(_) => {
                ready.clear_ready();
                break;
            }
        }
    }
    Ok(())
}

impl Held {
    /// Queues a packet for `due`. Returns false if the buffer is full.
    fn take(&mut self, packet: &[u8], due: Moment) -> bool {
        if self.bytes + packet.len() > HELD_BYTES_MAX {
            return false;
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(packet);
        self.bytes += packet.len();
        self.last = self.last.max(due);
        self.packets.push_back((self.last, copy));
        true
    }

    /// Writes due packets; a packet that the device refuses is lost.
    fn deliver(&mut self, now: Moment, target: &OwnedFd) {
        while let Some((due, packet)) = self.packets.pop_front() {
            if due > now {
                self.packets.push_front((due, packet));
                return;
            }
            rustix::io::write(target.as_fd(), &packet).unwrap_or_default();
            self.bytes -= packet.len();
            if self.spare.len() < READ_MAX {
                self.spare.push(packet);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_do_not_overtake_each_other_and_what_is_too_much_is_lost() {
        let mut held = Held::default();
        assert!(held.take(b"slow", Moment::new(50)));
        assert!(held.take(b"fast", Moment::new(10)));
        let due: Vec<u64> = held.packets.iter().map(|(due, _)| due.as_u64()).collect();
        assert_eq!(due, [50, 50]);
        let large = vec![0; HELD_BYTES_MAX - 8];
        assert!(held.take(&large, Moment::new(60)));
        assert!(!held.take(b"!", Moment::new(60)));
    }
}
