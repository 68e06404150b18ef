//! Correlation of neighbouring samples.

use crate::number::float;

/// Above this the samples are one long drift, and no formula helps.
const CORRELATION_MAX: f64 = 0.99;

/// The correlation of neighbouring samples in an autoregressive series of the
/// first order: what is left of a deviation after one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Autocorrelation {
    lag_one: f64,
}

impl Autocorrelation {
    /// Estimated from residuals about a fit with `parameters` (1 for a mean, 2
    /// for a line), freed of the bias that the fit brings, and never negative:
    /// to trust in noise that cancels out would be brave.
    pub(crate) fn of_residuals(residuals: &[f64], parameters: usize) -> Self {
        let (count, parameters) = (float(residuals.len()), float(parameters));
        let corrected = unbiased(lag_one(residuals), count, parameters);
        Self {
            lag_one: corrected.clamp(0.0, CORRELATION_MAX),
        }
    }

    /// The correlations of the means of neighbouring batches: at lags 0, 1, … up
    /// to `batches` − 1.
    pub(crate) fn of_batches(self, batch: usize, batches: usize) -> Vec<f64> {
        let r = self.lag_one;
        let size = float(batch);
        let decayed = r.powf(size);
        // Σ r^|i−j| over a batch, and over two that touch.
        let within = size * (1.0 + r) / (1.0 - r) - 2.0 * r * (1.0 - decayed) / (1.0 - r).powi(2);
        let touching = r * ((1.0 - decayed) / (1.0 - r)).powi(2);
        let mut correlations = vec![1.0];
        let mut next = touching / within;
        while correlations.len() < batches {
            correlations.push(next);
            next *= decayed;
        }
        correlations
    }
}

/// The sum of products of neighbours over the sum of squares: values are
/// deviations from a fit. 0 where all are zero.
pub(crate) fn lag_one(deviations: &[f64]) -> f64 {
    let squares: f64 = deviations.iter().map(|value| value * value).sum();
    let products: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}

/// A lag-one correlation without the bias −(p + (2 + p)·r) / n, to first order,
/// that fitting p parameters gives it.
fn unbiased(result: f64, count: f64, parameters: f64) -> f64 {
    let room = count - 2.0 - parameters;
    if room > 0.0 {
        (count * result + parameters) / room
    } else {
        CORRELATION_MAX
    }
}
