//! How many units a shape has asked for by a time, and the inverse.

mod fraction;
mod ramp;
mod segments;

use stillwell_plan::RateShape;
use stillwell_units::{Moment, Nanos, float_from_u64};

pub(crate) use fraction::Fraction;
use ramp::Ramp;
pub(crate) use segments::Segments;

/// Below this a rate is zero, so that every denominator fits.
const RATE_MIN: f64 = 1.0 / float_from_u64(1 << 40);
/// Above this a rate is this, so that every product fits.
const RATE_MAX: f64 = float_from_u64(1 << 63);

/// A shape prepared for being asked often. Times are nanoseconds since the
/// schedule's start.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Curve {
    Max,
    Constant(Fraction),
    Ramp(Ramp),
}

impl Curve {
    pub(crate) fn new(shape: RateShape) -> Self {
        match shape {
            RateShape::Max => Self::Max,
            RateShape::Constant { per_second } => {
                Self::Constant(Fraction::new(bounded(per_second)))
            }
            RateShape::Ramp {
                initial_per_second,
                maximum_per_second,
                change_per_second,
            } => {
                let initial = bounded(initial_per_second);
                let maximum = bounded(maximum_per_second);
                let change = bounded(change_per_second);
                // A ramp that cannot rise is a constant, which is exact.
                if initial >= maximum {
                    Self::Constant(Fraction::new(maximum))
                } else if change <= 0.0 {
                    Self::Constant(Fraction::new(initial))
                } else {
                    Self::Ramp(Ramp::new(initial, maximum, change))
                }
            }
        }
    }

    pub(crate) const fn is_max(&self) -> bool {
        matches!(self, Self::Max)
    }

    /// Whole units asked for in the first `elapsed_ns`.
    pub(crate) fn total_at(&self, elapsed_ns: u64) -> u64 {
        match self {
            Self::Max => u64::MAX,
            Self::Constant(fraction) => fraction.total_at(elapsed_ns),
            Self::Ramp(ramp) => ramp.total_at(elapsed_ns),
        }
    }

    /// The first nanosecond at which `total` units have been asked for;
    /// `u64::MAX` for never.
    pub(crate) fn reaches(&self, total: u64) -> u64 {
        match self {
            Self::Max => 0,
            Self::Constant(fraction) => fraction.reaches(total),
            Self::Ramp(ramp) => ramp.reaches(total),
        }
    }

    /// As [`Self::total_at`], with the part of the unit under way.
    pub(crate) fn asked_at(&self, elapsed_ns: u64) -> f64 {
        match self {
            Self::Max => f64::INFINITY,
            Self::Constant(fraction) => fraction.asked_at(elapsed_ns),
            Self::Ramp(ramp) => ramp.asked_at(elapsed_ns),
        }
    }

    /// The moment of unit number `total` in a schedule begun at `start`.
    pub(crate) fn moment_of(&self, total: u64, start: Moment) -> Moment {
        start + Nanos::new(self.reaches(total))
    }
}

/// `rate` within the bounds that [`RateShape`] names.
pub(crate) const fn bounded(rate: f64) -> f64 {
    if rate.is_nan() || rate < RATE_MIN {
        0.0
    } else {
        rate.min(RATE_MAX)
    }
}
