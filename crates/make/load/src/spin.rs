//! CPU time that a worker spends on spinning.

use std::cell::Cell;

use stillwell_metric::LoadShard;
use stillwell_units::{Moment, Nanos};

/// Maximum length of a turn that did no work and was not interrupted.
const TURN_MAX: Nanos = Nanos::new(20_000);

/// CPU time of spinning until the next send. Several pools may spin at once; no moment
/// counts twice.
#[derive(Debug, Default)]
pub(super) struct SpinTime {
    length: Cell<Nanos>,
    until: Cell<Moment>,
}

/// The work that a worker has done so far. Equal values mean no work in between.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct WorkDone([u64; 4]);

impl WorkDone {
    pub(super) fn by(shard: &LoadShard) -> Self {
        Self([
            shard.begun_in_all(),
            shard.bytes_sent.total(),
            shard.bytes_received.total(),
            shard.connections.total(),
        ])
    }
}

impl SpinTime {
    /// Total time.
    pub(super) const fn length(&self) -> Nanos {
        self.length.get()
    }

    /// One turn went from `from` to `to`, and nothing was done in it.
    pub(super) fn add(&self, from: Moment, to: Moment) {
        if to.since(from) <= TURN_MAX {
            let new = to.since(from.max(self.until.get()));
            self.length.set(self.length.get() + new);
        }
        self.until.set(to.max(self.until.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_moment_counts_twice_and_no_interruption_at_all() {
        let spin = SpinTime::default();
        let turn = |from, to| {
            spin.add(Moment::new(from), Moment::new(to));
            spin.length().as_u64()
        };
        assert_eq!(turn(1_000, 2_000), 1_000);
        assert_eq!(turn(1_500, 2_500), 1_500, "two pools turn at once");
        assert_eq!(turn(2_500, 90_000), 1_500, "something was done for long");
        assert_eq!(turn(90_000, 90_700), 2_200);
    }
}
