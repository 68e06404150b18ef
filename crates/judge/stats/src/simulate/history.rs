//! Simulated histories of results, with or without a step.

use crate::draw::Draws;

/// Results over time whose deviations are an autoregression of the first order with standard deviation 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedHistory {
    /// Number of results.
    pub results: usize,
    /// Correlation of neighbours, from 0 to below 1.
    pub correlation: f64,
    /// Change of the level after three fifths of the results, in standard deviations.
    pub step: f64,
}

impl SimulatedHistory {
    /// Values of the history of this seed.
    #[must_use]
    pub fn values(&self, seed: u64) -> Vec<f64> {
        let mut draws = Draws::seeded(seed);
        let fresh = (1.0 - self.correlation * self.correlation).sqrt();
        let mut deviation = draws.normal();
        let step = self.step_index();
        (0..self.results)
            .map(|index| {
                let value = deviation + if index < step { 0.0 } else { self.step };
                deviation = self.correlation * deviation + fresh * draws.normal();
                value
            })
            .collect()
    }

    /// Index of the first result after the step.
    #[must_use]
    pub const fn step_index(&self) -> usize {
        self.results * 3 / 5
    }
}
