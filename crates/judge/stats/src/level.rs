//! Confidence level of intervals.

/// The share of repeated experiments whose interval contains the true value:
/// above 0 and below 1, by custom 0.95.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Level(f64);

impl Level {
    /// 0.95: one interval in twenty misses the truth.
    pub const NINETY_FIVE: Self = Self(0.95);

    /// `share` of one, above 0 and below 1.
    ///
    /// # Errors
    /// [`LevelError`] otherwise, and for NaN.
    pub fn try_new(share: f64) -> Result<Self, LevelError> {
        if share > 0.0 && share < 1.0 {
            Ok(Self(share))
        } else {
            Err(LevelError { actual: share })
        }
    }

    /// As a share of one.
    #[must_use]
    pub const fn share(self) -> f64 {
        self.0
    }

    /// The share of intervals that miss the truth, on both sides together.
    #[must_use]
    pub const fn error_rate(self) -> f64 {
        1.0 - self.0
    }
}

impl TryFrom<f64> for Level {
    type Error = LevelError;

    fn try_from(share: f64) -> Result<Self, LevelError> {
        Self::try_new(share)
    }
}

/// A level outside its bounds.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("level {actual} does not lie between 0 and 1")]
pub struct LevelError {
    /// The given value.
    pub actual: f64,
}
