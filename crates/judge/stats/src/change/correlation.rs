//! Correlation of neighbours in a segment, beside its steps.

use super::split::deviations;
use crate::normal;
use crate::number::{float, floor_index};
use crate::warmup::lag_one;

/// Correlation is used where chance alone would show it this rarely.
const CHANCE: f64 = 0.05;

/// Above this a history is one long drift, in which no step is visible.
const CORRELATION_MAX: f64 = 0.95;

/// The share of differences, the largest, that may come from steps.
const STEPS: f64 = 0.1;

/// The lag-one correlation of the deviations of a segment, at least 0.
///
/// Steps, too, make neighbours resemble each other. So it is 0 unless the
/// segment as a whole is correlated, which no step can hide, and then it comes
/// from differences: those of neighbours have variance 2σ²(1 − r), those over
/// two places 2σ²(1 − r²), and a step touches but one or two of them, which are
/// left out among the largest tenth.
pub(super) fn correlation(values: &[f64]) -> f64 {
    let deviations = deviations(values);
    let raw = lag_one(&deviations) * float(values.len()).sqrt();
    if raw <= -normal::quantile(CHANCE) {
        return 0.0;
    }
    let left = smaller_squares(&deviations, 1);
    if left <= 0.0 {
        return 0.0;
    }
    let correlation = smaller_squares(&deviations, 2) / left - 1.0;
    let standard_error = float(values.len()).sqrt().recip();
    (correlation + standard_error).clamp(0.0, CORRELATION_MAX)
}

/// The mean square of the smaller differences of values `lag` apart.
fn smaller_squares(deviations: &[f64], lag: usize) -> f64 {
    let mut squares: Vec<f64> = deviations
        .iter()
        .zip(deviations.iter().skip(lag))
        .map(|(left, right)| (right - left).powi(2))
        .collect();
    squares.sort_unstable_by(f64::total_cmp);
    let kept = squares.len() - floor_index(STEPS * float(squares.len()));
    squares.truncate(kept.max(1));
    squares.iter().sum::<f64>() / float(squares.len().max(1))
}
