//! A worker that is slow on purpose.

use std::cell::Cell;

use stillwell_scope::{Token, clock};
use stillwell_units::{ByteRate, Moment, Nanos, as_usize};

/// A read is no longer than what may be read in this time, so a slow receiver
/// is slow all the time and not in turns.
const READ: Nanos = Nanos::from_millis(20);
/// Shortest longest read, in bytes: a call for less is mostly overhead.
const READ_BYTES_MIN: u64 = 512;

/// Holds all streams of a worker back to one rate.
#[derive(Debug)]
pub(crate) struct Throttle {
    bytes_per_second: u64,
    /// When the next read may be.
    free: Cell<Moment>,
}

impl Throttle {
    /// The share of one of `workers` in `limit`.
    pub(crate) fn share(limit: ByteRate, workers: usize) -> Self {
        let workers = (workers as u64).max(1);
        Self {
            bytes_per_second: (limit.bytes_per_second() / workers).max(1),
            free: Cell::new(Moment::default()),
        }
    }

    /// Waits until the next read may be, or until `token` says that it is over.
    pub(crate) async fn wait(&self, token: &Token) {
        loop {
            let wait = self.free.get().since(clock::now());
            if wait == Nanos::ZERO || token.is_cancelled() {
                return;
            }
            // Both arms are cancel-safe.
            tokio::select! {
                () = tokio::time::sleep(wait.as_duration()) => {}
                () = token.cancelled() => {}
            }
        }
    }

    /// The longest read.
    pub(crate) fn read_max(&self) -> usize {
        let bytes = u128::from(self.bytes_per_second) * u128::from(READ.as_u64()) / 1_000_000_000;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).max(READ_BYTES_MIN);
        as_usize(bytes)
    }

    /// So many bytes were read. Time in which there was nothing to read is not made
    /// up for.
    pub(crate) fn took(&self, length: usize) {
        let nanos = (length as u128) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let nanos = Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX));
        let from = self.free.get().max(clock::now());
        self.free.set(from + nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_paid_for_with_time() {
        let rate = |bytes| ByteRate::try_new(bytes).unwrap();
        let throttle = Throttle::share(rate(2000), 2);
        throttle.took(100_000);
        let first = throttle.free.get();
        throttle.took(500);
        assert_eq!(throttle.free.get().since(first), Nanos::from_millis(500));
        assert_eq!(throttle.read_max(), 512);
        assert_eq!(Throttle::share(rate(5_000_000), 1).read_max(), 100_000);
    }
}
