//! The standard normal distribution.

use statrs::function::erf::{erfc, erfc_inv};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

/// The probability of a value above `deviations` standard deviations, accurate
/// to 1e-9 of itself far into the tail; NaN for NaN.
#[must_use]
pub fn upper_tail(deviations: f64) -> f64 {
    0.5 * erfc(deviations * FRAC_1_SQRT_2)
}

/// The value that is not exceeded with this probability: −∞ at 0, ∞ at 1, NaN
/// where `probability` is none.
#[must_use]
pub fn quantile(probability: f64) -> f64 {
    if (0.0..=1.0).contains(&probability) {
        -SQRT_2 * erfc_inv(2.0 * probability)
    } else {
        f64::NAN
    }
}
