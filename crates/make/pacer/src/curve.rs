//! Number of units that a shape has requested by a time, and the inverse.

mod fraction;
mod ramp;
mod segments;

use fraction::Fraction;
use ramp::Ramp;
use segments::Segments;
use stillwell_plan::{LoadCurve, RateShape};
use stillwell_units::{Moment, Nanos, float_from_u64, floor_to_u64};

/// Below this a rate is zero, so that every denominator fits.
const RATE_MIN: f64 = 1.0 / float_from_u64(1 << 40);
/// Above this a rate is this, so that every product fits.
const RATE_MAX: f64 = float_from_u64(1 << 63);

/// A shape, prepared for frequent queries. Times are nanoseconds since the
/// schedule's start.
#[derive(Clone, Debug)]
pub(crate) enum Curve {
    Max,
    Constant { exact: Fraction, per_second: f64 },
    Ramp(Ramp),
    Segments(Segments),
}

impl From<RateShape> for Curve {
    fn from(shape: RateShape) -> Self {
        match shape {
            RateShape::Max => Self::Max,
            RateShape::Constant { per_second } => Self::constant(per_second),
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
                    Self::constant(maximum)
                } else if change <= 0.0 {
                    Self::constant(initial)
                } else {
                    Self::Ramp(Ramp::new(initial, maximum, change))
                }
            }
        }
    }
}

impl From<&LoadCurve> for Curve {
    fn from(curve: &LoadCurve) -> Self {
        match curve {
            LoadCurve::Constant { per_second } => Self::constant(*per_second),
            LoadCurve::Ramp {
                from_per_second,
                to_per_second,
                over,
            } => Self::Segments(Segments::ramp(*from_per_second, *to_per_second, *over)),
            LoadCurve::Steps { steps } => Self::Segments(Segments::steps(
                steps.iter().map(|step| (step.per_second, step.length)),
            )),
        }
    }
}

impl Curve {
    fn constant(per_second: f64) -> Self {
        let per_second = bounded(per_second);
        Self::Constant {
            exact: Fraction::new(per_second),
            per_second,
        }
    }

    pub(crate) const fn is_max(&self) -> bool {
        matches!(self, Self::Max)
    }

    /// Whole units requested in the first `elapsed_ns`.
    pub(crate) fn total_at(&self, elapsed_ns: u64) -> u64 {
        match self {
            Self::Max => u64::MAX,
            Self::Constant { exact, .. } => exact.total_at(elapsed_ns),
            Self::Ramp(ramp) => floor_to_u64(ramp.requested_at(elapsed_ns)),
            Self::Segments(segments) => floor_to_u64(segments.requested_at(elapsed_ns)),
        }
    }

    /// The first nanosecond at which `total` units have been requested;
    /// `u64::MAX` for never.
    pub(crate) fn reaches(&self, total: u64) -> u64 {
        match self {
            Self::Max => 0,
            Self::Constant { exact, .. } => exact.reaches(total),
            Self::Ramp(ramp) => ramp.reaches(float_from_u64(total)),
            Self::Segments(segments) => segments.reaches(float_from_u64(total)),
        }
    }

    /// As [`Self::reaches`], for a number that need not be whole; of a constant rate
    /// to the nanosecond or so.
    pub(crate) fn reaches_units(&self, units: f64) -> u64 {
        match self {
            Self::Max => 0,
            Self::Constant { per_second, .. } if *per_second > 0.0 => {
                floor_to_u64(units / per_second * 1e9)
            }
            Self::Constant { .. } => u64::MAX,
            Self::Ramp(ramp) => ramp.reaches(units),
            Self::Segments(segments) => segments.reaches(units),
        }
    }

    /// As [`Self::total_at`], with the part of the unit under way.
    pub(crate) fn requested_at(&self, elapsed_ns: u64) -> f64 {
        match self {
            Self::Max => f64::INFINITY,
            Self::Constant { exact, .. } => exact.requested_at(elapsed_ns),
            Self::Ramp(ramp) => ramp.requested_at(elapsed_ns),
            Self::Segments(segments) => segments.requested_at(elapsed_ns),
        }
    }

    /// The moment of unit number `total` in a schedule begun at `start`.
    pub(crate) fn moment_of(&self, total: u64, start: Moment) -> Moment {
        start + Nanos::new(self.reaches(total))
    }
}

/// `rate` within the bounds that [`RateShape`] names.
const fn bounded(rate: f64) -> f64 {
    if rate.is_nan() || rate < RATE_MIN {
        0.0
    } else {
        rate.min(RATE_MAX)
    }
}
