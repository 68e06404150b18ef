//! Result of Apache Otava's method on a trend.

use stillwell_plan::goal::Scale;
use stillwell_stats::change::{self, OtavaOptions};

use super::judge::Found;
use super::{Basis, Trend};

/// Otava knows neither stretches nor logarithms: it gets what an export would
/// give it.
pub(super) fn detect(trend: &Trend, options: OtavaOptions, magnitude: f64) -> Vec<Found> {
    let options = OtavaOptions {
        magnitude,
        ..options
    };
    let values = trend.plain_values();
    // Numbers that cannot be tested show no change.
    change::otava(&values, &options)
        .unwrap_or_default()
        .iter()
        .map(|point| Found {
            index: point.index,
            p_value: point.p_value,
            plain: Some(*point),
        })
        .collect()
}

impl Trend {
    /// The values as an export has them: comparison / anchor, the comparison's
    /// level in base units, or differences.
    #[must_use]
    pub fn plain_values(&self) -> Vec<f64> {
        let points = self.points.iter();
        let plain = points.map(|point| match (self.basis, self.scale) {
            (Basis::Anchor, Scale::Ratio) => point.value.exp(),
            (Basis::Level, Scale::Ratio) => point.measured.comparison_mean,
            (_, Scale::Difference) => point.value,
        });
        plain.collect()
    }
}
