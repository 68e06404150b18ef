//! Histories as they might have been if nothing had changed.

use super::split::deviations;

/// The part of a segment that is chance: deviations from its mean,
/// and what of each comes from the one before.
pub(super) struct Null {
    /// Part that each deviation adds to the share that it has of the one before; the
    /// first one scaled to be like the others.
    innovations: Vec<f64>,
    correlation: f64,
}

impl Null {
    /// From a segment in which neighbours resemble each other by `correlation`,
    /// at least 0 and below 1.
    pub(super) fn of(values: &[f64], correlation: f64) -> Self {
        let deviations = deviations(values);
        let first = deviations.first().map(|first| first * fresh(correlation));
        let later = deviations
            .windows(2)
            .map(|pair| pair[1] - correlation * pair[0]);
        Self {
            innovations: first.into_iter().chain(later).collect(),
            correlation,
        }
    }

    /// Values to permute.
    pub(super) fn innovations(&self) -> &[f64] {
        &self.innovations
    }

    /// The history that grows from innovations in this order.
    pub(super) fn history(&self, innovations: &[f64], history: &mut [f64]) {
        let mut deviation = 0.0;
        for (place, (innovation, value)) in innovations.iter().zip(history).enumerate() {
            deviation = if place == 0 {
                innovation / fresh(self.correlation)
            } else {
                self.correlation * deviation + innovation
            };
            *value = deviation;
        }
    }
}

/// The standard deviation of an innovation where deviations have one of 1.
fn fresh(correlation: f64) -> f64 {
    (1.0 - correlation * correlation).sqrt()
}
