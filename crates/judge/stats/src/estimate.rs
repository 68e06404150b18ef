//! A value and the interval around it.

/// An estimated value with the interval that should hold the true one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The most plausible value.
    pub value: f64,
    /// The lower end of the interval, at most `value`.
    pub lower: f64,
    /// The upper end of the interval, at least `value`.
    pub upper: f64,
}

impl Estimate {
    /// `value` with `half_width` on both sides.
    pub(crate) fn around(value: f64, half_width: f64) -> Self {
        Self {
            value,
            lower: value - half_width,
            upper: value + half_width,
        }
    }

    /// True if `truth` lies within the interval, its ends included.
    #[must_use]
    pub fn contains(&self, truth: f64) -> bool {
        self.lower <= truth && truth <= self.upper
    }

    /// True if zero lies outside the interval: there is a change of some size.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        !self.contains(0.0)
    }

    /// `convert` of each part, which must rise with its argument.
    pub(crate) fn map(self, convert: impl Fn(f64) -> f64) -> Self {
        Self {
            value: convert(self.value),
            lower: convert(self.lower),
            upper: convert(self.upper),
        }
    }
}
