//! Mean and spread that merge exactly.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use stillwell_metric::Sizes;
use stillwell_units::float_from_u64;

/// Count, sum, sum of squares and extremes in integers, so any split of the
/// samples merges to the same.
///
/// JSON has them beside the mean and the standard deviation, which are not read back.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "MomentsForm", into = "MomentsForm")]
pub struct Moments {
    /// Samples.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The sum of their squares.
    pub squares: u128,
    /// The smallest; 0 without samples.
    pub min: u64,
    /// The largest; 0 without samples.
    pub max: u64,
}

impl Moments {
    /// Those of a histogram, each sample taken as the middle of its bucket, and
    /// the extremes as the ends of theirs.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let mut all = Self::default();
        for entry in histogram.iter_recorded() {
            let value = histogram.median_equivalent(entry.value_iterated_to());
            all.record_many(value, entry.count_at_value());
        }
        if all.count > 0 {
            all.min = histogram.min();
            all.max = histogram.max();
        }
        all
    }

    /// Adds one sample.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Adds the same sample `count` times.
    pub fn record_many(&mut self, value: u64, count: u64) {
        if count > 0 {
            let sum = u128::from(value) * u128::from(count);
            self.merge(&Self {
                count,
                sum,
                squares: sum.saturating_mul(u128::from(value)),
                min: value,
                max: value,
            });
        }
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The mean; 0 without samples.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        float_from_u128(self.sum) / float_from_u64(self.count)
    }

    /// The standard deviation of the population; 0 without samples.
    #[must_use]
    pub fn pstdev(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        // About the whole part of the mean, so nothing large cancels in
        // floating point.
        let count = u128::from(self.count);
        let center = self.sum / count;
        let rest = float_from_u128(self.sum % count) / float_from_u64(self.count);
        let twice = self.sum.saturating_add(self.sum % count);
        let about_center = self.squares.saturating_sub(center.saturating_mul(twice));
        let mean_square = float_from_u128(about_center) / float_from_u64(self.count);
        (mean_square - rest * rest).max(0.0).sqrt()
    }
}

/// `value` rounded to the nearest float.
#[expect(
    clippy::cast_precision_loss,
    reason = "rounding is what this function documents"
)]
const fn float_from_u128(value: u128) -> f64 {
    value as f64
}

impl From<Sizes> for Moments {
    fn from(sizes: Sizes) -> Self {
        let any = sizes.count > 0;
        Self {
            count: sizes.count,
            sum: sizes.sum.into(),
            squares: sizes.squares,
            min: if any { sizes.smallest } else { 0 },
            max: sizes.largest,
        }
    }
}

/// JSON form of the moments.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct MomentsForm {
    count: u64,
    #[serde(with = "long")]
    sum: u128,
    #[serde(with = "long")]
    squares: u128,
    min: u64,
    max: u64,
    mean: f64,
    pstdev: f64,
}

impl From<Moments> for MomentsForm {
    fn from(moments: Moments) -> Self {
        Self {
            count: moments.count,
            sum: moments.sum,
            squares: moments.squares,
            min: moments.min,
            max: moments.max,
            mean: moments.mean(),
            pstdev: moments.pstdev(),
        }
    }
}

impl From<MomentsForm> for Moments {
    fn from(form: MomentsForm) -> Self {
        Self {
            count: form.count,
            sum: form.sum,
            squares: form.squares,
            min: form.min,
            max: form.max,
        }
    }
}

/// Integers longer than JSON's, as text.
mod long {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}
