//! Student's t distribution.

use statrs::function::beta::{beta_reg, ln_beta};

use crate::level::Level;
use crate::normal;

/// Above this many degrees of freedom the incomplete beta function has fewer
/// than nine digits left, and so many runs are impractical.
const DEGREES_MAX: f64 = 1e5;

/// Newton's steps end long before this: six suffice for what tests need.
const STEPS_MAX: u32 = 60;

/// Student's t distribution with positive degrees of freedom, whole or not.
///
/// Accurate to 1e-9, of the figure itself or of 1, for tails down to 1e-60.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudentT {
    degrees: f64,
    ln_beta: f64,
}

impl StudentT {
    /// The distribution with `degrees` of freedom, above 0 and up to 100 000.
    ///
    /// # Errors
    /// [`DegreesError`] otherwise, and for NaN.
    pub fn try_new(degrees: f64) -> Result<Self, DegreesError> {
        if degrees > 0.0 && degrees <= DEGREES_MAX {
            let ln_beta = ln_beta(0.5 * degrees, 0.5);
            Ok(Self { degrees, ln_beta })
        } else {
            Err(DegreesError { actual: degrees })
        }
    }

    /// The degrees of freedom.
    #[must_use]
    pub const fn degrees(&self) -> f64 {
        self.degrees
    }

    /// The probability of a value above `t`; NaN for NaN.
    #[must_use]
    pub fn upper_tail(&self, t: f64) -> f64 {
        let tail = 0.5 * self.two_sided(t);
        if t < 0.0 { 1.0 - tail } else { tail }
    }

    /// The probability of a value further from zero than `t`, on either side;
    /// NaN for NaN.
    #[must_use]
    pub fn two_sided(&self, t: f64) -> f64 {
        if t.is_nan() {
            return f64::NAN;
        }
        let square = t * t;
        if square < 4.0 {
            // Near the centre the share below is one less a trifle, which
            // rounding would take; further out this difference would lose it.
            let share = square / (self.degrees + square);
            1.0 - beta_reg(0.5, 0.5 * self.degrees, share)
        } else {
            let share = self.degrees / (self.degrees + square);
            beta_reg(0.5 * self.degrees, 0.5, share)
        }
    }

    /// The value that is not exceeded with this probability: −∞ at 0, ∞ at 1,
    /// NaN where `probability` is none.
    #[must_use]
    pub fn quantile(&self, probability: f64) -> f64 {
        if !(0.0..=1.0).contains(&probability) {
            f64::NAN
        } else if probability < 0.5 {
            -self.upper_quantile(probability)
        } else {
            self.upper_quantile(1.0 - probability)
        }
    }

    /// Number of standard errors reach from the estimate to each end of a
    /// two-sided interval of this level.
    #[must_use]
    pub fn critical(&self, level: Level) -> f64 {
        self.upper_quantile(0.5 * level.error_rate())
    }

    /// The value that is exceeded with probability `tail`, from 0 to a half.
    ///
    /// Newton's method on ln(tail) over ln(t), where both the flat tails of few
    /// degrees and the steep ones of many are nearly straight. The ready-made
    /// inverse of the incomplete beta function is good to four digits only for
    /// some degrees, so it serves not even as a start: the normal value does.
    pub(crate) fn upper_quantile(&self, tail: f64) -> f64 {
        if tail <= 0.0 {
            return f64::INFINITY;
        }
        let mut t = -normal::quantile(tail);
        if t <= 0.0 {
            return 0.0;
        }
        for _ in 0..STEPS_MAX {
            let reached = self.upper_tail(t);
            let slope = t * self.density(t) / reached;
            let step = (reached / tail).ln() / slope;
            if !step.is_finite() {
                break;
            }
            t *= step.exp();
            if step.abs() < 1e-14 {
                break;
            }
        }
        t
    }

    fn density(&self, t: f64) -> f64 {
        let exponent = 0.5 * (self.degrees + 1.0) * (t * t / self.degrees).ln_1p();
        (-exponent - self.ln_beta - 0.5 * self.degrees.ln()).exp()
    }
}

/// Degrees of freedom outside their bounds.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{actual} degrees of freedom are not above 0 and at most {DEGREES_MAX}")]
pub struct DegreesError {
    /// The given value.
    pub actual: f64,
}
