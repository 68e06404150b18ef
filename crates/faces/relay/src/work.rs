//! CPU time that is used on purpose.

use std::hint::black_box;
use std::str::FromStr;

use stillwell_scope::clock;
use stillwell_units::{Nanos, ParseError, float_from_u64, floor_to_u64, parse_count};

/// Rounds in one trial of the calibration: well under a scheduler's slice, well
/// above the cost of two looks at the clock.
const TRIAL_ROUNDS: u64 = 200_000;
/// Trials that count; as many go before them, so the CPU has found its
/// frequency.
const TRIALS: usize = 15;

/// CPU time used for each event.
///
/// A round is a fixed piece of arithmetic, so rounds cost the same instructions
/// in every process of one build: where the truth must be known, use
/// rounds. A time is turned into rounds once, when the relay starts, by the
/// thread's CPU clock: the median of fifteen trials. That is good to about a
/// round (1 to 2 ns) and a few percent on a quiet machine; a CPU that changes its
/// frequency later changes the time of a round with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WorkAmount {
    /// So many rounds of [`spin`]. Typed as `120rounds`.
    Rounds(u64),
    /// So much CPU time. Typed as `300ns`.
    Time(Nanos),
}

impl FromStr for WorkAmount {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let Some(rounds) = text.trim().strip_suffix("rounds") else {
            return text.parse().map(Self::Time);
        };
        let rounds = parse_count(rounds).ok_or_else(|| ParseError::Shape {
            input: text.to_owned(),
            kind: "work amount",
            accepted: "a time or a number of rounds, such as `300ns` or `120rounds`",
        })?;
        Ok(Self::Rounds(rounds))
    }
}

/// Returns `state` after `rounds` rounds. Each needs the result of the one before it, so they
/// cannot be done side by side or left out.
#[must_use]
pub fn spin(rounds: u64, state: u64) -> u64 {
    let mut state = state;
    for _ in 0..rounds {
        state = (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    state
}

/// Burns the amount, event by event.
#[derive(Debug)]
pub(crate) struct Work {
    rounds: u64,
    state: u64,
}

impl Work {
    /// Calibrates by the calling thread's CPU if the amount is a time. That takes about ten
    /// milliseconds.
    pub(crate) fn new(amount: WorkAmount) -> Self {
        let rounds = match amount {
            WorkAmount::Rounds(rounds) => rounds,
            WorkAmount::Time(Nanos::ZERO) => 0,
            WorkAmount::Time(time) => rounds_in(time),
        };
        Self { rounds, state: 1 }
    }

    /// The rounds for each event.
    pub(crate) const fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The work of one event.
    pub(crate) fn perform(&mut self) {
        if self.rounds > 0 {
            self.state = black_box(spin(self.rounds, self.state));
        }
    }
}

/// The rounds that take `time` of the calling thread's CPU, at least one.
fn rounds_in(time: Nanos) -> u64 {
    let mut trials: Vec<u64> = (0..2 * TRIALS)
        .map(|seed| trial(seed as u64).as_u64())
        .skip(TRIALS)
        .collect();
    trials.sort_unstable();
    let trial_nanos = trials[TRIALS / 2].max(1);
    let rounds = float_from_u64(time.as_u64()) * float_from_u64(TRIAL_ROUNDS);
    floor_to_u64((rounds / float_from_u64(trial_nanos)).round()).max(1)
}

fn trial(seed: u64) -> Nanos {
    let before = clock::thread_cpu();
    black_box(spin(TRIAL_ROUNDS, black_box(seed)));
    clock::thread_cpu().saturating_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_written() {
        assert_eq!("300ns".parse(), Ok(WorkAmount::Time(Nanos::new(300))));
        assert_eq!("120 rounds".parse(), Ok(WorkAmount::Rounds(120)));
        for text in ["", "rounds", "1.5rounds", "300"] {
            assert!(text.parse::<WorkAmount>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_round_is_the_same_piece_of_work_in_every_build() {
        assert_eq!(spin(0, 7), 7);
        assert_eq!(spin(1, 1), 0xbf58_476d_1ce4_e5b9);
        assert_eq!(spin(5, spin(7, 3)), spin(12, 3));
    }

    #[test]
    fn events_burn_the_given_rounds() {
        let mut work = Work::new(WorkAmount::Rounds(120));
        for _ in 0..10 {
            work.perform();
        }
        assert_eq!(work.state, spin(1200, 1));
        let mut idle = Work::new(WorkAmount::Time(Nanos::ZERO));
        idle.perform();
        assert_eq!(idle.state, 1);
    }

    #[test]
    fn times_become_rounds() {
        assert!(rounds_in(Nanos::from_millis(1)) > rounds_in(Nanos::new(1000)));
        assert_eq!(rounds_in(Nanos::ZERO), 1);
    }
}
