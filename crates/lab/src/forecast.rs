//! How long the rest will take.

use stillwell_plan::PhasesPlan;
use stillwell_units::{Nanos, float_from_u64};

/// Start, stop and close of a run, until some have been measured.
const OVERHEAD_GUESS: Nanos = Nanos::from_millis(2_000);

/// How long the runs that are left will take: what their plans say, and for each
/// what the runs so far took besides.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    parts: Vec<Part>,
    overhead: Nanos,
    runs_measured: u64,
}

/// Runs that take equally long.
#[derive(Clone, Copy, Debug)]
struct Part {
    planned: Nanos,
    runs_left: u64,
}

impl Forecast {
    /// Adds a part of `runs` runs with such phases; parts count from 0.
    pub fn expect(&mut self, phases: &PhasesPlan, runs: u64) {
        self.parts.push(Part {
            planned: phases.warmup + phases.measure + phases.quiet,
            runs_left: runs,
        });
    }

    /// Takes away runs of a part that will not be made after all.
    pub fn forgo(&mut self, part: usize, runs: u64) {
        if let Some(part) = self.parts.get_mut(part) {
            part.runs_left = part.runs_left.saturating_sub(runs);
        }
    }

    /// Takes away one run of a part, which took so long.
    pub fn ran(&mut self, part: usize, took: Nanos) {
        self.forgo(part, 1);
        if let Some(part) = self.parts.get(part) {
            self.overhead += took.saturating_sub(part.planned);
            self.runs_measured += 1;
        }
    }

    /// How long the runs that are left will take.
    #[must_use]
    pub fn left(&self) -> Nanos {
        let overhead = if self.runs_measured == 0 {
            OVERHEAD_GUESS.as_secs_f64()
        } else {
            self.overhead.as_secs_f64() / float_from_u64(self.runs_measured)
        };
        let parts = self.parts.iter();
        let seconds = parts
            .map(|part| (part.planned.as_secs_f64() + overhead) * float_from_u64(part.runs_left));
        Nanos::from_secs_f64(seconds.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_took_is_learnt() {
        let phases = PhasesPlan {
            warmup: Nanos::from_secs(2),
            measure: Nanos::from_secs(10),
            quiet: Nanos::from_secs(1),
            ..PhasesPlan::default()
        };
        let mut forecast = Forecast::default();
        assert_eq!(forecast.left(), Nanos::ZERO);
        forecast.expect(&phases, 4);
        assert_eq!(forecast.left(), Nanos::from_secs(4 * 15));
        forecast.ran(0, Nanos::from_secs(14));
        assert_eq!(forecast.left(), Nanos::from_secs(3 * 14));
        forecast.ran(0, Nanos::from_secs(16));
        assert_eq!(forecast.left(), Nanos::from_secs(2 * 15));
        forecast.expect(&phases, 1);
        forecast.forgo(0, 5);
        assert_eq!(forecast.left(), Nanos::from_secs(15));
    }
}
