//! A most of bytes a second.

use std::cell::Cell;

use stillwell_scope::clock;
use stillwell_units::{ByteRate, Moment, Nanos, float_from_u64};
use tokio::time::sleep;

/// Time for which unused rate is kept, so a timer that wakes late costs nothing of the
/// rate.
const KEPT: Nanos = Nanos::from_millis(20);

/// Lets so many bytes a second pass, in the order of their requests.
#[derive(Debug)]
pub(crate) struct Limit {
    nanos_per_byte: f64,
    /// When all that was let pass has used up its time.
    until: Cell<Moment>,
}

impl Limit {
    pub(crate) fn new(rate: ByteRate) -> Self {
        Self {
            nanos_per_byte: 1e9 / float_from_u64(rate.bytes_per_second()),
            until: Cell::new(Moment::new(0)),
        }
    }

    /// Waits until `bytes` may pass.
    pub(crate) async fn pass(&self, bytes: usize) {
        let wait = self.take(bytes, clock::now());
        if wait > Nanos::ZERO {
            sleep(wait.as_duration()).await;
        }
    }

    /// Takes the time of `bytes`, and how long until it has come.
    fn take(&self, bytes: usize, now: Moment) -> Nanos {
        let earliest = Moment::new(now.as_u64().saturating_sub(KEPT.as_u64()));
        let bytes = float_from_u64(bytes as u64);
        let until = self.until.get().max(earliest)
            + Nanos::from_secs_f64(bytes * self.nanos_per_byte / 1e9);
        self.until.set(until);
        Nanos::new(until.as_u64().saturating_sub(now.as_u64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_pass_than_the_rate_permits_and_late_timers_cost_nothing() {
        let limit = Limit::new(ByteRate::try_new(1_000_000).unwrap());
        let begin = Moment::new(1_000_000_000);
        let mut now = begin;
        for _ in 0..1000 {
            let wait = limit.take(1000, now);
            // Timers wake up late, by up to the time that is kept.
            now = now + wait + Nanos::from_millis(if wait > Nanos::ZERO { 3 } else { 0 });
        }
        let taken = now.since(begin).as_secs_f64();
        assert!((0.98..=1.004).contains(&taken), "{taken}");
        // After a pause no more is let pass at once than is kept.
        let later = now + Nanos::from_secs(10);
        assert_eq!(limit.take(20_000, later), Nanos::ZERO);
        assert_eq!(limit.take(1000, later), Nanos::from_millis(1));
    }
}
