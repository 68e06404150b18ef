//! Moments of the run's clock as the library counts them.

use std::time::Instant;

use stillwell_scope::clock;
use stillwell_units::Moment;

/// One moment by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    instant: Instant,
    moment: Moment,
}

impl Times {
    #[expect(
        clippy::disallowed_methods,
        reason = "the QUIC library needs an `Instant`; only this one is read, and all others are computed \
                  from the run's clock"
    )]
    pub(super) fn new() -> Self {
        Self {
            moment: clock::now(),
            instant: Instant::now(),
        }
    }

    /// Now.
    pub(super) fn now(&self) -> Instant {
        self.instant(clock::now())
    }

    pub(super) fn instant(&self, moment: Moment) -> Instant {
        self.instant + moment.since(self.moment).as_duration()
    }
}
