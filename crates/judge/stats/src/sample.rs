//! One column of numbers, and what describes it.

use crate::number::{float, floor_index};

/// At least one finite number, in the order in which they were given.
///
/// Squares must fit: for values above 1e150 the standard deviation may be
/// infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    values: &'a [f64],
}

impl<'a> Sample<'a> {
    /// `values`, if they are at least `at_least` (and never none) and all finite.
    ///
    /// # Errors
    /// [`SampleError`] says what is missing, or which value is not finite.
    pub fn try_new(values: &'a [f64], at_least: usize) -> Result<Self, SampleError> {
        let needed = at_least.max(1);
        if values.len() < needed {
            let result = values.len();
            return Err(SampleError::TooFew {
                actual: result,
                needed,
            });
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(SampleError::NotFinite {
                index,
                value: values[index],
            }),
            None => Ok(Self { values }),
        }
    }

    /// The numbers.
    #[must_use]
    pub const fn values(&self) -> &'a [f64] {
        self.values
    }

    /// Number of values: at least one.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a sample is never empty by construction"
    )]
    pub const fn len(&self) -> usize {
        self.values.len()
    }

    /// The arithmetic mean, by running updates: exact where all values are equal.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let mut mean = 0.0;
        for (before, value) in self.values.iter().enumerate() {
            mean += (value - mean) / float(before + 1);
        }
        mean
    }

    /// The sample standard deviation (divisor n − 1); `None` for one number.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        if self.values.len() < 2 {
            return None;
        }
        let count = float(self.values.len());
        let mean = self.mean();
        let (sum, squares) = self
            .values
            .iter()
            .fold((0.0, 0.0), |(sum, squares), value| {
                let deviation = value - mean;
                (sum + deviation, squares + deviation * deviation)
            });
        // The deviations would add up to zero if the mean were exact: what
        // remains is the rounding of the mean, and is taken out again.
        let variance = (squares - sum * sum / count) / (count - 1.0);
        Some(variance.max(0.0).sqrt())
    }

    /// The smallest number.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The largest number.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.values
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// The number in the middle, or the mean of the two there.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.sorted().median()
    }

    /// The value below which `share` of the numbers lie: [`Sorted::quantile`].
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        self.sorted().quantile(share)
    }

    /// The same numbers from smallest to largest, for several quantiles.
    #[must_use]
    pub fn sorted(&self) -> Sorted {
        Sorted::of(self.values.iter().copied())
    }
}

/// At least one finite number, from smallest to largest.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorted {
    values: Vec<f64>,
}

impl Sorted {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        Self { values }
    }

    /// The numbers, ascending.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The number in the middle, or the mean of the two there.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.interpolate(0.5)
    }

    /// The value below which `share` of the numbers lie, interpolated linearly
    /// between the two nearest (Hyndman and Fan's type 7, the default of NumPy
    /// and R); `None` where `share` is not within 0 and 1.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        (0.0..=1.0)
            .contains(&share)
            .then(|| self.interpolate(share))
    }

    fn interpolate(&self, share: f64) -> f64 {
        let last = self.values.len() - 1;
        let place = share * float(last);
        let index = floor_index(place).min(last);
        let (low, high) = (self.values[index], self.values[(index + 1).min(last)]);
        // Weights instead of `low + part * (high - low)`, whose difference may
        // overflow; held between both, since rounding may step outside.
        let part = place - float(index);
        (low * (1.0 - part) + high * part).clamp(low, high)
    }
}

/// Reason why numbers do not make a [`Sample`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// Too few numbers for the statistic.
    #[error("too few values: {actual}, at least {needed} are needed")]
    TooFew {
        /// Number of values.
        actual: usize,
        /// Least number.
        needed: usize,
    },
    /// More numbers than the t distribution is accurate for.
    #[error("too many values for a t test: {actual}")]
    TooMany {
        /// Number of values.
        actual: usize,
    },
    /// A number that is NaN or infinite.
    #[error("value {value} at index {index} is not finite")]
    NotFinite {
        /// Index, counted from zero.
        index: usize,
        /// The value.
        value: f64,
    },
}
