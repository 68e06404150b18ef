//! Where a worker's time went.

use stillwell_units::{Moment, Nanos};

/// What a worker is doing. Who was the limit of a run is read from these, not
/// from CPU percent: a spinning worker always uses all of its core.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum State {
    /// Nothing is due: it waits for the schedule.
    Ahead,
    /// It would go on, but the peer does not take or give bytes.
    Blocked,
    /// It works.
    Running,
    /// Something was due, and it was neither running nor blocked: overslept.
    Late,
}

impl State {
    /// Every state, in the order of [`TimeAccount::totals`].
    pub const ALL: [Self; 4] = [Self::Ahead, Self::Blocked, Self::Running, Self::Late];

    /// Where this state stands in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Ahead => 0,
            Self::Blocked => 1,
            Self::Running => 2,
            Self::Late => 3,
        }
    }
}

/// A worker's time by [`State`]. All of it is accounted: the totals sum to the
/// time since the account was opened, whatever was switched when.
#[derive(Clone, Debug)]
pub struct TimeAccount {
    state: State,
    since: Moment,
    totals: [Nanos; 4],
}

impl TimeAccount {
    /// Opened at `now`, in [`State::Running`].
    #[must_use]
    pub const fn new(now: Moment) -> Self {
        Self {
            state: State::Running,
            since: now,
            totals: [Nanos::ZERO; 4],
        }
    }

    /// What the worker is doing.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// From `now` on the worker is in `state`. A `now` before the last one
    /// counts as the last one.
    pub fn switch(&mut self, now: Moment, state: State) {
        self.book(now);
        self.state = state;
    }

    /// Ends a wait for the schedule: until `due` the worker was ahead, from
    /// there to `now` it overslept; it runs from `now` on.
    pub fn wake(&mut self, due: Moment, now: Moment) {
        self.switch(due.min(now), State::Late);
        self.switch(now, State::Running);
    }

    /// The time spent in each state until `now`, in the order of [`State::ALL`].
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
        account.switch(Moment::new(10), State::Ahead);
        account.wake(Moment::new(50), Moment::new(57));
        account.switch(Moment::new(60), State::Ahead);
        account.wake(Moment::new(99), Moment::new(80));
        account.switch(Moment::new(81), State::Blocked);
        let totals = account.totals(Moment::new(100));
        assert_eq!(totals.map(Nanos::as_u64), [60, 19, 14, 7]);
        assert_eq!(account.state(), State::Blocked);
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
                account.switch(Moment::new(now), State::ALL[state]);
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
            let (mut now, mut state) = (0, State::Running.index());
            for &(length, next) in &steps {
                expected[state] += length;
                now += length;
                state = next;
                account.switch(Moment::new(now), State::ALL[next]);
            }
            prop_assert_eq!(account.totals(Moment::new(now)).map(Nanos::as_u64), expected);
        }
    }
}
