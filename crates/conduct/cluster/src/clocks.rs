//! Offsets of the clocks of generators, with a bound on their error.
//!
//! The controller writes a ping with its time, and each generator that reads it answers with
//! its own. The answer lies between the ping and the moment at which the controller
//! reads it, so the offset is known up to half of the time that was spent on the way.

use serde::{Deserialize, Serialize};
use stillwell_run::Interrupt;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

use crate::job::of_task;
use crate::pause::pause;
use crate::store::{JobStore, StoreError};

/// Number of pings. The first one meets generators that look rarely.
const ROUNDS: u32 = 5;
/// Time in which all answer a ping.
const ROUND_MAX: Nanos = Nanos::from_secs(3);
/// Time between two looks while pings are exchanged.
const LOOK_EVERY: Nanos = Nanos::from_millis(2);
/// Time after a ping in which the next one is expected.
const NEXT_MAX: Nanos = Nanos::from_secs(1);

/// Lead of a clock over that of the controller.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClockOffset {
    /// Nanoseconds; negative for a clock that is behind.
    pub nanos: i64,
    /// Bound on the error.
    pub error: Nanos,
}

impl ClockOffset {
    /// Returns the offset of a clock that showed `seen` and then `answered` between the moments
    /// `sent` and `received` of this one. `None` for times that contradict each other.
    #[must_use]
    pub fn of_exchange(sent: Nanos, seen: Nanos, answered: Nanos, received: Nanos) -> Option<Self> {
        let nanos = |time: Nanos| i128::from(time.as_u64());
        let ahead = nanos(seen) - nanos(sent);
        let behind = nanos(answered) - nanos(received);
        // The offset is at most `ahead`, and at least `behind`.
        let width = u64::try_from(ahead - behind).ok()?;
        Some(Self {
            nanos: i64::try_from((ahead + behind) / 2).ok()?,
            error: Nanos::new(width / 2 + 1),
        })
    }

    /// Returns true if the clocks certainly differ.
    #[must_use]
    pub const fn is_certain(self) -> bool {
        self.nanos.unsigned_abs() > self.error.as_u64()
    }

    /// Returns the largest difference that is possible.
    #[must_use]
    pub fn at_most(self) -> Nanos {
        Nanos::new(self.nanos.unsigned_abs()) + self.error
    }

    /// Returns the time of the other clock when this one shows `time`. A difference that may be
    /// only the error of its measurement is not applied.
    #[must_use]
    pub fn apply(self, time: Nanos) -> Nanos {
        let nanos = if self.is_certain() { self.nanos } else { 0 };
        Nanos::new(time.as_u64().saturating_add_signed(nanos))
    }

    /// Returns the change from `before` until now, as parts per million of `elapsed`, if it is more
    /// than both errors.
    #[must_use]
    pub fn drift(self, before: Self, elapsed: Nanos) -> Option<i64> {
        let change = i128::from(self.nanos) - i128::from(before.nanos);
        let errors = i128::from((self.error + before.error).as_u64());
        let elapsed = i128::from(elapsed.as_u64().max(1));
        let parts = change * 1_000_000 / elapsed;
        (change.abs() > errors)
            .then_some(parts)
            .and_then(|parts| i64::try_from(parts).ok())
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Ping {
    sent: Nanos,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Pong {
    seen: Nanos,
    answered: Nanos,
}

fn ping_name(round: u32) -> String {
    format!("ping-{round}.json")
}

fn pong_name(task: usize, attempt: &str, round: u32) -> String {
    of_task(task, &format!("pong-{attempt}-{round}.json"))
}

/// Measures the offsets of the clocks of these attempts, one for each task, against `wall`. An
/// attempt that does not answer has none.
pub(crate) fn measure(
    store: &JobStore,
    interrupt: &Interrupt,
    attempts: &[String],
    wall: &dyn Fn() -> Nanos,
) -> Result<Vec<Option<ClockOffset>>, StoreError> {
    let mut best: Vec<Option<ClockOffset>> = vec![None; attempts.len()];
    for round in 0..ROUNDS {
        let ping = Ping { sent: wall() };
        store.create_json(interrupt, &ping_name(round), &ping)?;
        let Some(ping) = store.get_json::<Ping>(interrupt, &ping_name(round))? else {
            continue;
        };
        let until = clock::now() + ROUND_MAX;
        let mut open: Vec<usize> = (0..attempts.len()).collect();
        while !open.is_empty() && clock::now() < until && interrupt.signal().is_none() {
            let mut rest = Vec::new();
            for task in open {
                let name = pong_name(task, &attempts[task], round);
                let Some(pong) = store.get_json::<Pong>(interrupt, &name)? else {
                    rest.push(task);
                    continue;
                };
                let offset = ClockOffset::of_exchange(ping.sent, pong.seen, pong.answered, wall());
                let is_better = |offset: &ClockOffset| {
                    best[task].is_none_or(|before| offset.error < before.error)
                };
                if let Some(offset) = offset.filter(is_better) {
                    best[task] = Some(offset);
                }
            }
            open = rest;
            if !open.is_empty() {
                pause(interrupt, LOOK_EVERY);
            }
        }
        if best.iter().all(Option::is_none) {
            break;
        }
    }
    Ok(best)
}

/// Answers pings as the attempt of a task.
#[derive(Debug)]
pub(crate) struct ClockAnswers<'a> {
    store: &'a JobStore,
    task: usize,
    attempt: &'a str,
    round: u32,
    fast_until: Option<Moment>,
}

impl<'a> ClockAnswers<'a> {
    pub(crate) const fn new(store: &'a JobStore, task: usize, attempt: &'a str) -> Self {
        Self {
            store,
            task,
            attempt,
            round: 0,
            fast_until: None,
        }
    }

    /// Answers a ping, if there is a new one, and returns the time until the next look if it is
    /// soon.
    pub(crate) fn look(
        &mut self,
        interrupt: &Interrupt,
        wall: &dyn Fn() -> Nanos,
    ) -> Result<Option<Nanos>, StoreError> {
        if self.round < ROUNDS
            && let Some(_) = self.store.get(interrupt, &ping_name(self.round))?
        {
            let seen = wall();
            let pong = Pong {
                seen,
                answered: seen,
            };
            let name = pong_name(self.task, self.attempt, self.round);
            self.store.create_json(interrupt, &name, &pong)?;
            self.round += 1;
            self.fast_until = Some(clock::now() + NEXT_MAX);
        }
        let is_fast =
            self.round < ROUNDS && self.fast_until.is_some_and(|until| clock::now() < until);
        Ok(is_fast.then_some(LOOK_EVERY))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::{RetryBounds, Store};

    /// The offsets of a clock that is wrong as `wrong` says, measured through a store.
    fn measured(job: &JobStore, wrong: impl Fn(Nanos) -> Nanos + Sync) -> ClockOffset {
        let attempts = ["a".to_owned()];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let quiet = Interrupt::new();
                let mut answers = ClockAnswers::new(job, 0, "a");
                while answers.round < ROUNDS {
                    answers.look(&quiet, &|| wrong(clock::wall())).unwrap();
                    pause(&quiet, LOOK_EVERY);
                }
            });
            let offsets = measure(job, &Interrupt::new(), &attempts, &clock::wall).unwrap();
            offsets[0].unwrap()
        })
    }

    #[test]
    fn a_planted_offset_and_drift_are_found_within_their_bounds() {
        const AHEAD: u64 = 5_000_000;
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        let job = |name: &str| JobStore::new(store.clone(), name, RetryBounds::default()).unwrap();
        let first = measured(&job("one"), |wall| wall + Nanos::new(AHEAD));
        let miss = first.nanos.abs_diff(AHEAD.cast_signed());
        assert!(miss <= first.error.as_u64(), "{first:?}");
        let start = Nanos::from_secs(1_000);
        let unknown = ClockOffset {
            nanos: 5,
            error: Nanos::new(5),
        };
        assert_eq!(unknown.apply(start), start);
        let known = ClockOffset {
            nanos: -5,
            error: Nanos::new(4),
        };
        assert_eq!(known.apply(start) + Nanos::new(5), start);
        // Ten seconds later, at 100,000 parts per million.
        let second = measured(&job("two"), |wall| wall + Nanos::new(AHEAD + 1_000_000_000));
        let drift = second.drift(first, Nanos::from_secs(10)).unwrap();
        let error = (first.error + second.error).as_u64() / 10_000 + 1;
        assert!(
            drift.abs_diff(100_000) <= error,
            "{drift} parts per million"
        );
        assert_eq!(first.drift(first, Nanos::from_secs(10)), None);
    }

    #[test]
    fn an_attempt_that_does_not_answer_has_no_offset() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        let job = JobStore::new(store, "a", RetryBounds::default()).unwrap();
        let interrupt = Interrupt::new();
        interrupt.raise(15);
        let offsets = measure(&job, &interrupt, &["a".to_owned()], &clock::wall).unwrap();
        assert_eq!(offsets, [None]);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound(
            sent in 1_u64 << 50..1 << 51,
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            there in 0_u64..10_000_000_000,
            between in 0_u64..1_000_000,
            back in 0_u64..10_000_000_000,
        ) {
            let shifted = |time: u64| Nanos::new(time.saturating_add_signed(offset));
            let (seen, answered) = (sent + there, sent + there + between);
            let received = Nanos::new(answered + back);
            let measured_offset = ClockOffset::of_exchange(Nanos::new(sent), shifted(seen), shifted(answered), received);
            let measured_offset = measured_offset.unwrap();
            prop_assert!(measured_offset.nanos.abs_diff(offset) <= measured_offset.error.as_u64());
            prop_assert!(measured_offset.error.as_u64() <= (there + back) / 2 + 1);
        }
    }
}
