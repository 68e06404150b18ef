//! Goodness of fit of the curve to all probes.

use super::posterior::Posterior;
use crate::number::float;

/// Largest standard score of a fit that is good: one good fit in a hundred exceeds it.
const SCORE_MAX: f64 = 2.33;

/// Returns true if the results are as likely as the curve predicts, and have no trend.
pub(super) fn is_good(posterior: &Posterior, results: &[(f64, bool)]) -> bool {
    let predicted: Vec<f64> = results
        .iter()
        .map(|(rate, _)| posterior.predicted(*rate).clamp(1e-9, 1.0 - 1e-9))
        .collect();
    let held = results.iter().map(|(_, held)| *held);
    let pairs: Vec<(f64, bool)> = predicted.into_iter().zip(held).collect();
    surprise(&pairs) <= SCORE_MAX && trend(&pairs).abs() <= SCORE_MAX
}

/// Standard score of the log-likelihood: large if probes held or failed that should not have.
fn surprise(pairs: &[(f64, bool)]) -> f64 {
    let (mut excess, mut variance) = (0.0, 0.0);
    for (share, held) in pairs {
        let (yes, no) = (-share.ln(), -(1.0 - share).ln());
        let expected = share * yes + (1.0 - share) * no;
        excess += if *held { yes } else { no } - expected;
        variance += share * (1.0 - share) * (yes - no) * (yes - no);
    }
    score(excess, variance)
}

/// Standard score of a trend: positive if late probes held more often than predicted.
fn trend(pairs: &[(f64, bool)]) -> f64 {
    let weight: f64 = pairs.iter().map(|(share, _)| share * (1.0 - share)).sum();
    let moment = pairs.iter().enumerate();
    let moment: f64 = moment
        .map(|(index, (share, _))| float(index) * share * (1.0 - share))
        .sum();
    let middle = moment / weight;
    let (mut sum, mut variance) = (0.0, 0.0);
    for (index, (share, held)) in pairs.iter().enumerate() {
        let distance = float(index) - middle;
        sum += distance * (if *held { 1.0 } else { 0.0 } - share);
        variance += distance * distance * share * (1.0 - share);
    }
    score(sum, variance)
}

fn score(sum: f64, variance: f64) -> f64 {
    if variance > 0.0 {
        sum / variance.sqrt()
    } else {
        0.0
    }
}
