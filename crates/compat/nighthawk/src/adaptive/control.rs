//! The exponential search.

use super::ExponentialSearch;

/// The search ends where the next rate is nearer than this to the last good one.
const NEAR: f64 = 0.01;

/// Grows the rate by a factor while thresholds hold, then halves the distance
/// between the last good and the first bad one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Controller {
    factor: f64,
    current: f64,
    good: Option<f64>,
    bad: Option<f64>,
}

/// The next step of a [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ControllerStep {
    /// A load at this rate.
    Load(f64),
    /// This is the answer.
    Converged(f64),
    /// Thresholds fail at the first rate already.
    FirstRateFailed,
}

impl Controller {
    /// Returns the search with these parameters.
    #[must_use]
    pub(super) const fn new(search: ExponentialSearch) -> Self {
        Self {
            factor: search.factor,
            current: search.initial,
            good: None,
            bad: None,
        }
    }

    /// Returns the next step.
    #[must_use]
    pub(super) fn step(&self) -> ControllerStep {
        match (self.good, self.bad) {
            (None, Some(_)) => ControllerStep::FirstRateFailed,
            (Some(good), Some(_)) if (self.current / good - 1.0).abs() < NEAR => {
                // Nighthawk's tool returns the untested middle; this rate was tested and held.
                ControllerStep::Converged(good)
            }
            _ => ControllerStep::Load(self.current),
        }
    }

    /// Takes the result of the load of the last step: true if all thresholds held.
    pub(super) fn observe(&mut self, holds: bool) {
        if holds {
            self.good = Some(self.current);
        } else {
            self.bad = Some(self.current);
        }
        self.current = match (self.good, self.bad) {
            (Some(good), Some(bad)) => 0.5 * (good + bad),
            (Some(good), None) => good * self.factor,
            (None, _) => self.current,
        };
    }
}
