//! Histories as they might have been if nothing had changed.

use super::split::deviations;

/// The part of a segment that is chance: deviations from its level,
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
        let whole = fresh(correlation);
        let first = deviations.first().map(|first| (whole, whole * first));
        let later = deviations
            .windows(2)
            .map(|pair| (1.0 - correlation, pair[1] - correlation * pair[0]));
        // With the share of a level of 1 in each.
        let whitened: Vec<(f64, f64)> = first.into_iter().chain(later).collect();
        let sum = |product: fn(&(f64, f64)) -> f64| whitened.iter().map(product).sum::<f64>();
        // By generalised least squares: the mean would leave a trend in the histories.
        let level = sum(|(share, value)| share * value) / sum(|(share, _)| share * share);
        Self {
            innovations: whitened
                .iter()
                .map(|(share, value)| value - share * level)
                .collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The first value of a history counts more for its level than those that follow from the ones before.
    #[test]
    fn no_level_is_left_in_the_innovations() {
        let values = [5.0, 5.2, 5.1, 5.6, 5.9, 5.4];
        for correlation in [0.0, 0.3, 0.6] {
            let null = Null::of(&values, correlation);
            let mut shares = [1.0 - correlation; 6];
            shares[0] = fresh(correlation);
            let left = shares.iter().zip(null.innovations());
            let left: f64 = left.map(|(share, innovation)| share * innovation).sum();
            assert!(left.abs() < 1e-12, "{correlation}: {left}");
            // They give the history back, less its level.
            let mut history = [0.0; 6];
            null.history(null.innovations(), &mut history);
            let levels: Vec<f64> = values.iter().zip(history).map(|(a, b)| a - b).collect();
            assert!(
                levels
                    .windows(2)
                    .all(|pair| (pair[0] - pair[1]).abs() < 1e-12)
            );
        }
    }
}
