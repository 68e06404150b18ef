//! Number of units that a shape has requested by a time, and the inverse.

mod fraction;
mod segments;

use fraction::Fraction;
use segments::Segments;
use stillwell_plan::RateShape;
use stillwell_units::{Moment, Nanos, float_from_u64, floor_to_u64};

/// Below this a rate is zero, so every denominator fits.
const RATE_MIN: f64 = 1.0 / float_from_u64(1 << 40);
/// Above this a rate is this, so every product fits.
const RATE_MAX: f64 = float_from_u64(1 << 63);

/// A shape, prepared for frequent queries. Times are nanoseconds since the
/// schedule's start.
#[derive(Clone, Debug)]
pub(crate) enum Curve {
    Max,
    Constant { exact: Fraction, per_second: f64 },
    Segments(Segments),
}

impl From<&RateShape> for Curve {
    fn from(shape: &RateShape) -> Self {
        match shape {
            RateShape::Max => Self::Max,
            RateShape::Constant { per_second } => Self::constant(*per_second),
            RateShape::Ramp(ramp) => {
                let [from, to] = [ramp.from_per_second, ramp.to_per_second].map(bounded);
                // A ramp without a change is a constant, which is exact.
                if (to - from).abs() < RATE_MIN || ramp.over == Nanos::ZERO {
                    Self::constant(to)
                } else {
                    Self::Segments(Segments::ramp(from, to, ramp.over))
                }
            }
            RateShape::Steps { steps } => Self::Segments(Segments::steps(
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
            Self::Segments(segments) => floor_to_u64(segments.requested_at(elapsed_ns)),
        }
    }

    /// The first nanosecond at which `total` units have been requested;
    /// `u64::MAX` for never.
    pub(crate) fn reaches(&self, total: u64) -> u64 {
        match self {
            Self::Max => 0,
            Self::Constant { exact, .. } => exact.reaches(total),
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
            Self::Segments(segments) => segments.reaches(units),
        }
    }

    /// As [`Self::total_at`], with the part of the unit under way.
    pub(crate) fn requested_at(&self, elapsed_ns: u64) -> f64 {
        match self {
            Self::Max => f64::INFINITY,
            Self::Constant { exact, .. } => exact.requested_at(elapsed_ns),
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
