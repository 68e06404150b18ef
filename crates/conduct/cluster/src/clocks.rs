//! Offsets of the clocks of generators, with a bound on their error.
//!
//! The controller writes a ping with its time, and each generator that reads it answers with
//! its own. The answer lies between the ping and the moment at which the controller
//! reads it, so the offset is known up to half of the time that was spent on the way.
//!
//! Wall clocks are compared, by which generators start, and monotonic clocks, by which they send
//! and measure. The latter are compared again after the load: the change is the drift.

use serde::{Deserialize, Serialize};
use stillwell_metric::ClockDrift;
use stillwell_run::Interrupt;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

use crate::job::of_task;
use crate::pause::pause;
use crate::store::{JobStore, StoreError};

/// Number of pings of a stage. The first one meets generators that look rarely.
const ROUNDS: u32 = 5;
/// Time in which all answer a ping. A slow store takes longer to show the answers of many.
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

    /// Returns the change from `before` until now, which was `elapsed` later. `None` for one that
    /// is out of range.
    #[must_use]
    pub fn drift(self, before: Self, elapsed: Nanos) -> Option<ClockDrift> {
        let change = i128::from(self.nanos) - i128::from(before.nanos);
        let errors = i128::from((self.error + before.error).as_u64());
        let elapsed = i128::from(elapsed.as_u64().max(1));
        Some(ClockDrift {
            ppm: i64::try_from(change * 1_000_000 / elapsed).ok()?,
            error: u64::try_from(errors * 1_000_000 / elapsed).ok()? + 1,
        })
    }
}

/// The clocks of a process at one moment.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ClockReading {
    /// Since 1970.
    pub(crate) wall: Nanos,
    /// Since the boot. It is never stepped.
    pub(crate) monotonic: Nanos,
}

impl ClockReading {
    /// Reads the clocks of this process.
    pub(crate) fn now() -> Self {
        Self {
            wall: clock::wall(),
            monotonic: Nanos::new(clock::now().as_u64()),
        }
    }
}

/// A planted error of the clocks of a generator, for tests of the engine `local`. The clocks that
/// it sends and measures with are not shifted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ClockShift {
    /// Nanoseconds ahead at first.
    ahead: i64,
    /// Drift in parts per million.
    ppm: i64,
    /// Monotonic time from which it drifts.
    since: Nanos,
}

impl ClockShift {
    /// Reads the error of `task` from text such as `1:5000000:20000`: the task, nanoseconds ahead,
    /// and parts per million.
    pub(crate) fn of_task(task: u16, text: &str) -> Self {
        let mut fields = text.split(':').map(|field| field.parse::<i64>().ok());
        let mut field = || fields.next().flatten();
        if field() != Some(task.into()) {
            return Self::default();
        }
        Self {
            ahead: field().unwrap_or(0),
            ppm: field().unwrap_or(0),
            since: ClockReading::now().monotonic,
        }
    }

    /// Returns the error of the monotonic clock now, in nanoseconds.
    pub(crate) fn now(self) -> i64 {
        let reading = ClockReading::now();
        let shown = self.apply(reading).monotonic;
        shown.as_u64().cast_signed() - reading.monotonic.as_u64().cast_signed()
    }

    pub(crate) fn apply(self, reading: ClockReading) -> ClockReading {
        let elapsed = reading.monotonic.saturating_sub(self.since).as_u64();
        let drift = i128::from(elapsed) * i128::from(self.ppm) / 1_000_000;
        let ahead = self.ahead + i64::try_from(drift).unwrap_or(0);
        let shifted = |time: Nanos| Nanos::new(time.as_u64().saturating_add_signed(ahead));
        ClockReading {
            wall: shifted(reading.wall),
            monotonic: shifted(reading.monotonic),
        }
    }
}

/// Offsets of both clocks of a generator.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ClockOffsets {
    pub(crate) wall: ClockOffset,
    pub(crate) monotonic: ClockOffset,
}

/// The time of an exchange in a load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ClockStage {
    BeforeStart,
    AfterEnd,
}

impl ClockStage {
    /// Returns the numbers of its pings.
    const fn rounds(self) -> std::ops::Range<u32> {
        match self {
            Self::BeforeStart => 0..ROUNDS,
            Self::AfterEnd => ROUNDS..2 * ROUNDS,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Ping {
    sent: ClockReading,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Pong {
    seen: ClockReading,
}

/// A ping, and the end of the time in which all answer it.
#[derive(Clone, Copy, Debug)]
struct PingRound {
    number: u32,
    ping: Ping,
    until: Moment,
}

fn ping_name(round: u32) -> String {
    format!("ping-{round}.json")
}

fn pong_name(task: usize, attempt: &str, round: u32) -> String {
    of_task(task, &format!("pong-{attempt}-{round}.json"))
}

/// Measures the offsets of the clocks of these attempts, one for each task, against `read`. An
/// attempt that does not answer has none, and is not waited for again.
pub(crate) fn measure(
    store: &JobStore,
    interrupt: &Interrupt,
    stage: ClockStage,
    attempts: &[String],
    read: &dyn Fn() -> ClockReading,
) -> Result<Vec<Option<ClockOffsets>>, StoreError> {
    let mut best: Vec<Option<ClockOffsets>> = vec![None; attempts.len()];
    let mut there: Vec<usize> = (0..attempts.len()).collect();
    for number in stage.rounds() {
        let ping = Ping { sent: read() };
        store.create_json(interrupt, &ping_name(number), &ping)?;
        let Some(ping) = store.get_json::<Ping>(interrupt, &ping_name(number))? else {
            continue;
        };
        let until = clock::now() + ROUND_MAX;
        let round = PingRound {
            number,
            ping,
            until,
        };
        let answers = read_answers(store, interrupt, round, attempts, there, read)?;
        there = answers.iter().map(|(task, _)| *task).collect();
        for (task, offsets) in answers {
            let is_better = |offsets: &ClockOffsets| {
                best[task].is_none_or(|before| offsets.wall.error < before.wall.error)
            };
            if let Some(offsets) = offsets.filter(is_better) {
                best[task] = Some(offsets);
            }
        }
        if there.is_empty() {
            break;
        }
    }
    Ok(best)
}

/// Reads the answers of the tasks in `open`, and returns the offsets of those that have answered; `None` for times that
/// contradict each other. A task without an answer is read once after the end of the round: with a slow store one look
/// at all tasks may take longer than the round.
fn read_answers(
    store: &JobStore,
    interrupt: &Interrupt,
    round: PingRound,
    attempts: &[String],
    mut open: Vec<usize>,
    read: &dyn Fn() -> ClockReading,
) -> Result<Vec<(usize, Option<ClockOffsets>)>, StoreError> {
    let mut answers = Vec::new();
    while !open.is_empty() {
        let mut rest = Vec::new();
        for task in open {
            if interrupt.signal().is_some() {
                return Ok(answers);
            }
            let is_last_look = clock::now() >= round.until;
            let name = pong_name(task, &attempts[task], round.number);
            match store.get_json::<Pong>(interrupt, &name)? {
                Some(pong) => answers.push((task, offsets(round.ping.sent, pong.seen, read()))),
                None if is_last_look => {}
                None => rest.push(task),
            }
        }
        open = rest;
        if !open.is_empty() {
            pause(interrupt, LOOK_EVERY);
        }
    }
    Ok(answers)
}

/// Returns the offsets of clocks that showed `seen` between `sent` and `received`.
fn offsets(sent: ClockReading, seen: ClockReading, received: ClockReading) -> Option<ClockOffsets> {
    let of = |clock: fn(ClockReading) -> Nanos| {
        ClockOffset::of_exchange(clock(sent), clock(seen), clock(seen), clock(received))
    };
    Some(ClockOffsets {
        wall: of(|reading| reading.wall)?,
        monotonic: of(|reading| reading.monotonic)?,
    })
}

/// Answers pings of a stage as the attempt of a task.
#[derive(Debug)]
pub(crate) struct ClockAnswers<'a> {
    store: &'a JobStore,
    task: usize,
    attempt: &'a str,
    rounds: std::ops::Range<u32>,
    fast_until: Option<Moment>,
}

impl<'a> ClockAnswers<'a> {
    pub(crate) const fn new(
        store: &'a JobStore,
        task: usize,
        attempt: &'a str,
        stage: ClockStage,
    ) -> Self {
        Self {
            store,
            task,
            attempt,
            rounds: stage.rounds(),
            fast_until: None,
        }
    }

    /// Returns true if all pings were answered.
    pub(crate) fn is_complete(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Answers a ping, if there is a new one, and returns the time until the next look if it is
    /// soon.
    pub(crate) fn look(
        &mut self,
        interrupt: &Interrupt,
        read: &dyn Fn() -> ClockReading,
    ) -> Result<Option<Nanos>, StoreError> {
        let round = self.rounds.start;
        if !self.is_complete() && self.store.get(interrupt, &ping_name(round))?.is_some() {
            let pong = Pong { seen: read() };
            let name = pong_name(self.task, self.attempt, round);
            self.store.create_json(interrupt, &name, &pong)?;
            self.rounds.start += 1;
            self.fast_until = Some(clock::now() + NEXT_MAX);
        }
        let is_fast =
            !self.is_complete() && self.fast_until.is_some_and(|until| clock::now() < until);
        Ok(is_fast.then_some(LOOK_EVERY))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::{RetryBounds, Store};

    /// The offsets of a clock that is ahead by this much, measured through a store.
    fn measured(job: &JobStore, stage: ClockStage, ahead: u64) -> ClockOffset {
        let attempts = ["a".to_owned()];
        let shifted = || {
            let reading = ClockReading::now();
            ClockReading {
                wall: reading.wall + Nanos::new(ahead),
                monotonic: reading.monotonic + Nanos::new(ahead),
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let quiet = Interrupt::new();
                let mut answers = ClockAnswers::new(job, 0, "a", stage);
                while !answers.is_complete() {
                    answers.look(&quiet, &shifted).unwrap();
                    pause(&quiet, LOOK_EVERY);
                }
            });
            let quiet = Interrupt::new();
            let offsets = measure(job, &quiet, stage, &attempts, &ClockReading::now).unwrap();
            let offsets = offsets[0].unwrap();
            assert!(
                offsets.wall.nanos.abs_diff(ahead.cast_signed()) <= offsets.wall.error.as_u64()
            );
            offsets.monotonic
        })
    }

    #[test]
    fn a_planted_offset_and_drift_are_found_within_their_bounds() {
        const AHEAD: u64 = 5_000_000;
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        let job = JobStore::new(store, "a", RetryBounds::default()).unwrap();
        let first = measured(&job, ClockStage::BeforeStart, AHEAD);
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
        let second = measured(&job, ClockStage::AfterEnd, AHEAD + 1_000_000_000);
        let drift = second.drift(first, Nanos::from_secs(10)).unwrap();
        assert!(drift.ppm.abs_diff(100_000) <= drift.error, "{drift:?}");
        let none = first.drift(first, Nanos::from_secs(10)).unwrap();
        assert_eq!(none.at_least(), 0, "{none:?}");
    }

    #[test]
    fn an_attempt_that_does_not_answer_has_no_offset() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        let job = JobStore::new(store, "a", RetryBounds::default()).unwrap();
        let interrupt = Interrupt::new();
        interrupt.raise(15);
        let attempts = ["a".to_owned()];
        let stage = ClockStage::BeforeStart;
        let offsets = measure(&job, &interrupt, stage, &attempts, &ClockReading::now).unwrap();
        assert_eq!(offsets, [None]);
    }

    /// With a slow store the last parts of a run were not read in time, and one of them was blamed for it.
    #[test]
    fn each_attempt_is_read_once_after_the_end_of_a_round() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        let job = JobStore::new(store, "a", RetryBounds::default()).unwrap();
        let quiet = Interrupt::new();
        let attempts = ["a", "b", "c"].map(str::to_owned);
        let sent = ClockReading::now();
        for task in [0, 2] {
            let seen = ClockReading::now();
            let name = pong_name(task, &attempts[task], 0);
            job.create_json(&quiet, &name, &Pong { seen }).unwrap();
        }
        let round = PingRound {
            number: 0,
            ping: Ping { sent },
            until: clock::now(),
        };
        let open = vec![0, 1, 2];
        let read = &ClockReading::now;
        let answers = read_answers(&job, &quiet, round, &attempts, open, read).unwrap();
        let tasks: Vec<usize> = answers.iter().map(|(task, _)| *task).collect();
        assert_eq!(tasks, [0, 2]);
        // All have the clock of this process.
        for (_, offsets) in answers {
            let wall = offsets.unwrap().wall;
            assert!(wall.nanos.unsigned_abs() <= wall.error.as_u64(), "{wall:?}");
        }
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
