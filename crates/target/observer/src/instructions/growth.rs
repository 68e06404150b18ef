//! Arithmetic of readings of counters.
//!
//! A CPU has few counters. If programs want more than there are, the kernel gives each a part of the time, and
//! a reading shows it: `running` is less than `enabled`. A growth is scaled as if the counter had run all the
//! time. That assumes the same rate in the time that it missed, so both times are recorded too.

/// A reading of one counter. All of it only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Reading {
    /// Counted events.
    pub(super) count: u64,
    /// Time in which it was to count, in nanoseconds.
    pub(super) enabled: u64,
    /// Time in which it counted, in nanoseconds.
    pub(super) running: u64,
}

/// Sums over counters, from their first reading on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct CounterTotals {
    /// Counted events, scaled.
    pub(super) count: u64,
    /// Time in which counters were to count, in nanoseconds.
    pub(super) enabled: u64,
    /// Time in which they counted, in nanoseconds.
    pub(super) running: u64,
}

impl Reading {
    /// Growth since `before`; a value that fell did not grow.
    const fn since(self, before: Self) -> Self {
        Self {
            count: self.count.saturating_sub(before.count),
            enabled: self.enabled.saturating_sub(before.enabled),
            running: self.running.saturating_sub(before.running),
        }
    }

    /// The count as if it had run all the time; as it is where it never ran.
    fn scaled(self) -> u64 {
        if self.running == 0 || self.running >= self.enabled {
            return self.count;
        }
        let scaled = u128::from(self.count) * u128::from(self.enabled) / u128::from(self.running);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

impl CounterTotals {
    /// Adds the growth of one counter from `before` to `now`.
    pub(super) fn add(&mut self, before: Reading, now: Reading) {
        let growth = now.since(before);
        self.count = self.count.saturating_add(growth.scaled());
        self.enabled = self.enabled.saturating_add(growth.enabled);
        self.running = self.running.saturating_add(growth.running);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn reading(count: u64, enabled: u64, running: u64) -> Reading {
        Reading {
            count,
            enabled,
            running,
        }
    }

    #[test]
    fn growth_is_scaled_by_the_share_of_time() {
        for (before, now, expected) in [
            // It ran all the time.
            (reading(0, 0, 0), reading(1000, 50, 50), 1000),
            (reading(1000, 50, 50), reading(1600, 80, 80), 600),
            // It ran for half of the time, then for all of it.
            (reading(0, 0, 0), reading(1000, 100, 50), 2000),
            (reading(1000, 100, 50), reading(1500, 150, 100), 500),
            // It never ran, and nothing is known.
            (reading(7, 10, 10), reading(7, 60, 10), 0),
            // Nothing happened.
            (reading(7, 10, 10), reading(7, 10, 10), 0),
            // The times were read at slightly different moments.
            (reading(0, 0, 0), reading(1000, 50, 51), 1000),
            // A value never falls, but a total must not either.
            (reading(9, 9, 9), reading(8, 8, 8), 0),
            (reading(0, 0, 0), reading(u64::MAX, 3, 1), u64::MAX),
            (
                reading(0, 0, 0),
                reading(1 << 60, 1 << 40, (1 << 40) - 1),
                (1 << 60) + (1 << 20),
            ),
        ] {
            let mut totals = CounterTotals::default();
            totals.add(before, now);
            assert_eq!(totals.count, expected, "{before:?} {now:?}");
        }
    }

    #[test]
    fn totals_are_sums_over_counters() {
        let mut totals = CounterTotals::default();
        totals.add(reading(10, 10, 10), reading(30, 20, 20));
        totals.add(reading(0, 0, 0), reading(5, 40, 20));
        let expected = CounterTotals {
            count: 30,
            enabled: 50,
            running: 30,
        };
        assert_eq!(totals, expected);
    }

    proptest! {
        #[test]
        fn for_all_readings_totals_never_fall(
            readings in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..20)
        ) {
            let (mut totals, mut before) = (CounterTotals::default(), Reading::default());
            for (count, enabled, running) in readings {
                let last = totals;
                let now = reading(count, enabled, running);
                totals.add(before, now);
                before = now;
                prop_assert!(totals.count >= last.count && totals.enabled >= last.enabled);
                prop_assert!(totals.running >= last.running);
            }
        }

        #[test]
        fn for_all_growths_scaling_never_lowers_a_count(
            count in 0_u64..1 << 40, enabled in 1_u64..1 << 40, running in 0_u64..1 << 40,
        ) {
            let mut totals = CounterTotals::default();
            totals.add(Reading::default(), reading(count, enabled, running));
            prop_assert!(totals.count >= count);
        }
    }
}
