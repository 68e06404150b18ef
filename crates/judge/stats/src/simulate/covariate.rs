//! Pairs whose runs have a recorded disturbance, with and without an adjustment for it.

use crate::draw::Draws;
use crate::estimate::Estimate;
use crate::level::Level;
use crate::number::{count, float};
use crate::paired::PairedError;
use crate::student::StudentT;

/// A machine whose disturbance is recorded with each run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CovariateMachine {
    /// True change, as a logarithm.
    pub change: f64,
    /// Noise of a pair that the disturbance does not explain.
    pub noise: f64,
    /// Noise of a pair that the disturbance causes.
    pub caused: f64,
    /// Noise of the record of that, as a share of `caused`.
    pub recorded: f64,
    /// Disturbance that the comparison meets because it is slower, as a share of the change.
    pub exposure: f64,
}

impl CovariateMachine {
    /// Changes of `pairs` pairs, each with the difference of its recorded disturbances.
    #[must_use]
    pub fn pairs(&self, seed: u64, pairs: u32) -> Vec<(f64, f64)> {
        let mut draws = Draws::seeded(seed);
        let exposed = self.exposure * self.change;
        let pairs = (0..count(pairs)).map(|_| {
            let disturbance = exposed + self.caused * draws.normal();
            // The change as it would be measured contains what the slower target meets.
            let change = self.change - exposed + disturbance + self.noise * draws.normal();
            let record = disturbance + self.recorded * self.caused * draws.normal();
            (change, record)
        });
        pairs.collect()
    }
}

/// Returns the change at a difference of zero between the disturbances, by the line that fits the
/// pairs best.
///
/// # Errors
/// [`PairedError::TooFewPairs`] for fewer than four pairs.
pub fn adjusted_change(pairs: &[(f64, f64)], level: Level) -> Result<Estimate, PairedError> {
    let number = float(pairs.len());
    let degrees = number - 2.0;
    if degrees < 2.0 {
        return Err(PairedError::TooFewPairs {
            actual: pairs.len(),
        });
    }
    let mean = |value: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(value).sum::<f64>() / number;
    let (change, record) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
    let spread = number * mean(&|pair| (pair.1 - record).powi(2));
    let product = number * mean(&|pair| (pair.0 - change) * (pair.1 - record));
    let slope = if spread > 0.0 { product / spread } else { 0.0 };
    let value = change - slope * record;
    let residual = |pair: &(f64, f64)| (pair.0 - value - slope * pair.1).powi(2);
    let variance = number * mean(&residual) / degrees;
    let leverage = if spread > 0.0 {
        record * record / spread
    } else {
        0.0
    };
    let standard_error = (variance * (number.recip() + leverage)).sqrt();
    let critical = StudentT::try_new(degrees).map_or(f64::INFINITY, |t| t.critical(level));
    Ok(Estimate {
        value,
        lower: value - critical * standard_error,
        upper: value + critical * standard_error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a line without noise the value at zero is exact.
    #[test]
    fn the_adjusted_change_is_where_the_line_meets_zero() {
        let pairs: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 7.0]
            .map(|record| (0.03 + 0.5 * record, record))
            .to_vec();
        let adjusted = adjusted_change(&pairs, Level::NINETY_FIVE).unwrap();
        assert!((adjusted.value - 0.03).abs() < 1e-12);
        assert!(adjusted.upper - adjusted.lower < 1e-9);
        assert!(adjusted_change(&pairs[..3], Level::NINETY_FIVE).is_err());
    }
}
