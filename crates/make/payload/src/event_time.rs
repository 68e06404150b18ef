//! Times inside binary events. They follow from the seed and have nothing to do
//! with when a run takes place.

use stillwell_units::Nanos;

use crate::contract::Recipe;
use crate::random::Random;

/// 2021-01-01T00:00:00Z, in seconds since 1970.
const EARLIEST_SECONDS: u64 = 1_609_459_200;

/// Four years: what all workers begin at has passed, since stores take next to nothing
/// from the future.
const PAST_SECONDS: u64 = 4 * 365 * 86_400;

/// Eight years.
const SPREAD_SECONDS: u64 = 8 * 365 * 86_400;

/// A time that moves on by up to four milliseconds from event to event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventTime {
    /// Since 1970.
    pub(crate) nanos: u64,
}

/// When the first event of a worker takes place whose series a store takes in the order
/// of their times: when those of all other workers do, or after its own set before.
pub(crate) fn in_order(recipe: &Recipe<'_>) -> Nanos {
    recipe.after.unwrap_or_else(|| {
        let mut random = Random::new(recipe.common.derive("time", 0));
        Nanos::from_secs(EARLIEST_SECONDS + random.between(0, PAST_SECONDS))
    })
}

impl EventTime {
    /// As [`in_order`] says.
    pub(crate) fn in_order(recipe: &Recipe<'_>) -> Self {
        Self {
            nanos: in_order(recipe).as_u64(),
        }
    }

    /// A time drawn from eight years.
    pub(crate) fn new(random: &mut Random) -> Self {
        let seconds = EARLIEST_SECONDS + random.between(0, SPREAD_SECONDS);
        Self {
            nanos: seconds * 1_000_000_000,
        }
    }

    /// The next event's.
    #[inline(always)]
    pub(crate) fn advance(&mut self, random: &mut Random) -> u64 {
        self.nanos += u64::from(random.bits(16)) << 6;
        self.nanos
    }

    /// The next event's, which is later by a millisecond at least.
    pub(crate) fn advance_milliseconds(&mut self, random: &mut Random) -> u64 {
        self.nanos += 1_000_000;
        self.advance(random);
        self.milliseconds()
    }

    /// Milliseconds since 1970.
    pub(crate) const fn milliseconds(self) -> u64 {
        self.nanos / 1_000_000
    }

    /// Seconds since 1970, as far as 32 bits hold them.
    pub(crate) fn seconds(self) -> u32 {
        u32::try_from(self.nanos / 1_000_000_000).unwrap_or(u32::MAX)
    }
}
