//! Many tests at once.

use crate::number::float;

/// Holm's adjusted p values (1979), in the order given: those at most α are
/// significant, with a chance of at most α that any of them is so wrongly.
///
/// NaN stays NaN, and is not counted as a test.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let order = ascending(p_values);
    let tests = order.len();
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let mut least: f64 = 0.0;
    for (before, index) in order.into_iter().enumerate() {
        least = least.max(p_values[index] * float(tests - before)).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

/// Benjamini and Hochberg's adjusted p values (1995), in the order given: of
/// those at most q a share of at most q is expected to be wrong.
///
/// NaN stays NaN, and is not counted as a test.
#[must_use]
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let order = ascending(p_values);
    let tests = float(order.len());
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let mut most: f64 = 1.0;
    for (before, index) in order.into_iter().enumerate().rev() {
        most = most.min(p_values[index] * tests / float(before + 1));
        adjusted[index] = most;
    }
    adjusted
}

/// The indices of all that are numbers, the smallest first.
fn ascending(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len())
        .filter(|&index| !p_values[index].is_nan())
        .collect();
    order.sort_by(|&left, &right| p_values[left].total_cmp(&p_values[right]));
    order
}
