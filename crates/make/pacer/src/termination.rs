//! When sending ends, and how late a send was.

use stillwell_units::{Moment, Nanos};

/// End of a worker: at a moment or after a number of units, the earlier of both
/// if both are given; never if neither is given.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Termination {
    /// Stop at this moment.
    pub at: Option<Moment>,
    /// Stop once this many units were sent.
    pub units: Option<u64>,
}

impl Termination {
    /// Returns true if a worker that has sent `sent` units must stop at `now`.
    #[must_use]
    pub fn reached(&self, now: Moment, sent: u64) -> bool {
        self.at.is_some_and(|at| now >= at) || self.units.is_some_and(|units| sent >= units)
    }

    /// Number of units that may be sent after `sent`; `u64::MAX` without a limit.
    #[must_use]
    pub fn units_left(&self, sent: u64) -> u64 {
        self.units
            .map_or(u64::MAX, |units| units.saturating_sub(sent))
    }
}

/// Time from the intended to the sent moment; zero when early.
#[must_use]
pub const fn lateness(intended: Moment, sent: Moment) -> Nanos {
    sent.since(intended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_limit_that_is_reached_ends_it() {
        let at = Some(Moment::new(10));
        for (at, units, now, sent, reached) in [
            (None, None, u64::MAX, u64::MAX, false),
            (at, None, 9, u64::MAX, false),
            (at, None, 10, 0, true),
            (None, Some(5), u64::MAX, 4, false),
            (None, Some(5), 0, 5, true),
            (at, Some(5), 10, 0, true),
            (at, Some(5), 0, 6, true),
            (at, Some(5), 9, 4, false),
        ] {
            let termination = Termination { at, units };
            assert_eq!(termination.reached(Moment::new(now), sent), reached);
        }
        let limit = Termination { at, units: Some(5) };
        assert_eq!((limit.units_left(2), limit.units_left(9)), (3, 0));
    }

    #[test]
    fn an_early_send_is_not_late() {
        let lateness_ns = |intended, sent| lateness(Moment::new(intended), Moment::new(sent));
        assert_eq!(lateness_ns(5, 9), Nanos::new(4));
        assert_eq!(lateness_ns(9, 5), Nanos::ZERO);
    }
}
