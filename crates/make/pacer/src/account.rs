//! Breakdown of a worker's time.

use stillwell_metric::TimeState;
use stillwell_units::{Moment, Nanos};

/// A worker's time by [`TimeState`]. All of it is accounted: the totals sum to the
/// time since the account was opened, at any switches.
#[derive(Clone, Debug)]
pub struct TimeAccount {
    state: TimeState,
    since: Moment,
    totals: [Nanos; 4],
}

impl TimeAccount {
    /// Opened at `now`, in [`TimeState::Running`].
    #[must_use]
    pub const fn new(now: Moment) -> Self {
        Self {
            state: TimeState::Running,
            since: now,
            totals: [Nanos::ZERO; 4],
        }
    }

    /// The present state of the worker.
    #[must_use]
    pub const fn state(&self) -> TimeState {
        self.state
    }

    /// From `now` on the worker is in `state`. A `now` before the last one
    /// counts as the last one.
    pub fn switch(&mut self, now: Moment, state: TimeState) {
        self.book(now);
        self.state = state;
    }

    /// Ends a wait for the schedule: until `due` the worker was idle, from
    /// there to `now` it overslept; it runs from `now` on.
    pub fn wake(&mut self, due: Moment, now: Moment) {
        self.switch(due.min(now), TimeState::Late);
        self.switch(now, TimeState::Running);
    }

    /// The time spent in each state until `now`, in the order of [`TimeState::ALL`].
    #[must_use]
    pub fn totals(&self, now: Moment) -> [Nanos; 4] {
        let mut account = self.clone();
        account.book(now);
        account.totals
    }

    fn book(&mut self, now: Moment) {
        self.totals[self.state.index()] += now.since(self.since);
        self.since = self.since.max(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn oversleeping_is_late_and_waking_early_is_not() {
        let mut account = TimeAccount::new(Moment::new(0));
        account.switch(Moment::new(10), TimeState::Idle);
        account.wake(Moment::new(50), Moment::new(57));
        account.switch(Moment::new(60), TimeState::Idle);
        account.wake(Moment::new(99), Moment::new(80));
        account.switch(Moment::new(81), TimeState::Blocked);
        let totals = account.totals(Moment::new(100));
        assert_eq!(totals.map(Nanos::as_u64), [60, 19, 14, 7]);
        assert_eq!(account.state(), TimeState::Blocked);
    }

    proptest! {
        #[test]
        fn for_all_sequences_the_totals_sum_to_the_time_that_passed(
            start in 0_u64..1 << 60,
            switches in prop::collection::vec((0_u64..1 << 60, 0_usize..4), 0..50),
            end in 0_u64..1 << 60,
        ) {
            let mut account = TimeAccount::new(Moment::new(start));
            for &(now, state) in &switches {
                account.switch(Moment::new(now), TimeState::ALL[state]);
            }
            let last = switches.iter().map(|&(now, _)| now).chain([start, end]).max();
            let sum: u64 = account
                .totals(Moment::new(end))
                .into_iter()
                .map(Nanos::as_u64)
                .sum();
            prop_assert_eq!(Some(sum), last.map(|last| last - start));
        }

        #[test]
        fn for_all_sequences_each_state_gets_the_time_between_its_switches(
            steps in prop::collection::vec((0_u64..1_000_000, 0_usize..4), 0..50),
        ) {
            let mut account = TimeAccount::new(Moment::new(0));
            let mut expected = [0; 4];
            let (mut now, mut state) = (0, TimeState::Running.index());
            for &(length, next) in &steps {
                expected[state] += length;
                now += length;
                state = next;
                account.switch(Moment::new(now), TimeState::ALL[next]);
            }
            prop_assert_eq!(account.totals(Moment::new(now)).map(Nanos::as_u64), expected);
        }
    }
}
