//! An estimate of the remaining time.

use std::ops::Add;

use stillwell_plan::PhasesPlan;
use stillwell_units::{Nanos, float_from_u64};

/// Start, stop and close of a run, until some have been measured.
const OVERHEAD_GUESS: Nanos = Nanos::from_millis(2_000);

/// Estimates the length of the remaining runs from their plans and from the additional time of
/// earlier runs.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    parts: Vec<Part>,
    overhead: Nanos,
    runs_measured: u64,
}

/// Number of remaining runs: looks at the data decide. Repeated pairs are not counted, since they
/// are not known beforehand.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RunsLeft {
    /// If the next look ends it.
    pub least: u64,
    /// The present estimate.
    pub likely: u64,
    /// If only the last look ends it.
    pub most: u64,
}

/// An estimate of a length of time: see [`RunsLeft`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TimeLeft {
    /// If the next look ends it.
    pub least: Nanos,
    /// The present estimate.
    pub likely: Nanos,
    /// If only the last look ends it.
    pub most: Nanos,
}

impl RunsLeft {
    /// No run.
    pub const NONE: Self = Self::exactly(0);

    /// So many runs, come what may.
    #[must_use]
    pub const fn exactly(runs: u64) -> Self {
        Self {
            least: runs,
            likely: runs,
            most: runs,
        }
    }

    /// Each number with `change` made to it.
    #[must_use]
    pub fn map(self, change: impl Fn(u64) -> u64) -> Self {
        Self {
            least: change(self.least),
            likely: change(self.likely),
            most: change(self.most),
        }
    }
}

impl Add for TimeLeft {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        Self {
            least: self.least + rhs.least,
            likely: self.likely + rhs.likely,
            most: self.most + rhs.most,
        }
    }
}

/// Runs that take equally long.
#[derive(Clone, Copy, Debug)]
struct Part {
    planned: Nanos,
    runs_left: RunsLeft,
}

impl Forecast {
    /// Adds a part of runs with such phases; parts count from 0.
    pub fn expect(&mut self, phases: &PhasesPlan, runs: RunsLeft) {
        self.parts.push(Part {
            planned: phases.warmup + phases.measure + phases.quiet,
            runs_left: runs,
        });
    }

    /// Sets the number of remaining runs of a part.
    pub fn revise(&mut self, part: usize, runs: RunsLeft) {
        if let Some(part) = self.parts.get_mut(part) {
            part.runs_left = runs;
        }
    }

    /// Removes one run of a part, which took `took`.
    pub fn ran(&mut self, part: usize, took: Nanos) {
        if let Some(part) = self.parts.get_mut(part) {
            part.runs_left = part.runs_left.map(|runs| runs.saturating_sub(1));
            self.overhead += took.saturating_sub(part.planned);
            self.runs_measured += 1;
        }
    }

    /// Takes away one run of a part that is not made.
    pub fn skip(&mut self, part: usize) {
        if let Some(part) = self.parts.get_mut(part) {
            part.runs_left = part.runs_left.map(|runs| runs.saturating_sub(1));
        }
    }

    /// Returns the remaining time of one part.
    #[must_use]
    pub fn left_of(&self, part: usize) -> TimeLeft {
        let part = self.parts.get(part);
        part.map_or_else(TimeLeft::default, |part| self.time(part))
    }

    /// Returns the remaining time of all parts.
    #[must_use]
    pub fn left(&self) -> TimeLeft {
        let parts = self.parts.iter().map(|part| self.time(part));
        parts.fold(TimeLeft::default(), Add::add)
    }

    fn time(&self, part: &Part) -> TimeLeft {
        let overhead = if self.runs_measured == 0 {
            OVERHEAD_GUESS.as_secs_f64()
        } else {
            self.overhead.as_secs_f64() / float_from_u64(self.runs_measured)
        };
        let each = part.planned.as_secs_f64() + overhead;
        let time = |runs| Nanos::from_secs_f64(each * float_from_u64(runs));
        TimeLeft {
            least: time(part.runs_left.least),
            likely: time(part.runs_left.likely),
            most: time(part.runs_left.most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(seconds: [u64; 3]) -> TimeLeft {
        let [least, likely, most] = seconds.map(Nanos::from_secs);
        TimeLeft {
            least,
            likely,
            most,
        }
    }

    #[test]
    fn what_runs_took_is_learnt() {
        let phases = PhasesPlan {
            warmup: Nanos::from_secs(2),
            measure: Nanos::from_secs(10),
            quiet: Nanos::from_secs(1),
            ..PhasesPlan::default()
        };
        let mut forecast = Forecast::default();
        assert_eq!(forecast.left(), of([0, 0, 0]));
        let runs = RunsLeft {
            least: 4,
            likely: 6,
            most: 9,
        };
        forecast.expect(&phases, runs);
        assert_eq!(forecast.left(), of([4 * 15, 6 * 15, 9 * 15]));
        forecast.ran(0, Nanos::from_secs(14));
        assert_eq!(forecast.left(), of([3 * 14, 5 * 14, 8 * 14]));
        forecast.ran(0, Nanos::from_secs(16));
        assert_eq!(forecast.left(), of([2 * 15, 4 * 15, 7 * 15]));
        forecast.expect(&phases, RunsLeft::exactly(1));
        assert_eq!(forecast.left(), of([3 * 15, 5 * 15, 8 * 15]));
        forecast.revise(0, RunsLeft::NONE);
        assert_eq!(forecast.left(), of([15, 15, 15]));
        assert_eq!(forecast.left_of(0), of([0, 0, 0]));
    }
}
