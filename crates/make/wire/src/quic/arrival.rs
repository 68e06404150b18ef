//! When datagrams came, by the kernel's word.
//!
//! A task that reads late, because it paused or had no CPU, still gets the time at which
//! there was something to read. The kernel gives it by the wall clock, which may be set in
//! between. So no time is before the socket was last empty, nor later than now.

use stillwell_units::{Moment, Nanos};

/// When it was looked what has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// By the wall clock, read before `now`: an interruption between the two makes arrivals
    /// later, not earlier.
    pub(super) wall: Nanos,
    pub(super) now: Moment,
    /// When nothing was there for the last time.
    pub(super) empty: Moment,
}

impl Look {
    /// When a datagram came that the kernel saw at `seen`, in wall time since 1970.
    pub(super) fn arrival(&self, seen: Option<Nanos>) -> Moment {
        let waited = seen.map_or(Nanos::ZERO, |seen| self.wall.saturating_sub(seen));
        self.now - waited.min(self.now.since(self.empty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Nanos = Nanos::from_secs(3600);

    #[test]
    fn a_datagram_came_when_the_kernel_saw_it_as_far_as_that_can_be() {
        let look = Look {
            wall: Nanos::from_secs(1_700_000_000),
            now: Moment::new(5_000),
            empty: Moment::new(4_000),
        };
        let seen = |waited: u64| Some(look.wall.saturating_sub(Nanos::new(waited)));
        let cases = [
            ("as it says", seen(300), 4_700),
            ("just now", seen(0), 5_000),
            ("not before there was nothing", seen(1_000), 4_000),
            ("the clock was set forward", seen(HOUR.as_u64()), 4_000),
            ("it was set back", Some(look.wall + HOUR), 5_000),
            ("the kernel says nothing", None, 5_000),
        ];
        for (what, seen, expected) in cases {
            assert_eq!(look.arrival(seen), Moment::new(expected), "{what}");
        }
    }
}
