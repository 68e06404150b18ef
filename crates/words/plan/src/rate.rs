//! Rates: requested units over time.

use serde::{Deserialize, Serialize};
use stillwell_units::{ByteRate, EventRate, Nanos, float_from_u64};

/// Rate of a generator: the total of all its connections.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RatePlan {
    /// The counted quantity.
    pub unit: RateUnit,
    /// Requested number over time.
    pub shape: RateShape,
}

impl RatePlan {
    /// As fast as the target takes it.
    pub const MAX: Self = Self {
        unit: RateUnit::Bytes,
        shape: RateShape::Max,
    };

    /// A constant rate in bytes.
    #[must_use]
    pub const fn bytes(rate: ByteRate) -> Self {
        let per_second = float_from_u64(rate.bytes_per_second());
        Self::constant(RateUnit::Bytes, per_second)
    }

    /// A constant rate in events.
    #[must_use]
    pub const fn events(rate: EventRate) -> Self {
        Self::constant(RateUnit::Events, rate.events_per_second())
    }

    /// A constant rate, finite and above zero.
    #[must_use]
    pub const fn constant(unit: RateUnit, per_second: f64) -> Self {
        Self {
            unit,
            shape: RateShape::Constant { per_second },
        }
    }

    /// Returns true if the schedule never holds the generator back.
    #[must_use]
    pub const fn is_max(&self) -> bool {
        self.shape.is_max()
    }
}

/// The counted quantity of a rate.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// Payload bytes, without the transport's own.
    Bytes,
    /// Events, as the payload counts them; requests of a load.
    Events,
    /// Whole blocks.
    Blocks,
}

/// Requested units over time. All rates are finite, not negative, and above zero somewhere.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateShape {
    /// As fast as the target takes it.
    Max,
    /// The same rate all the time.
    Constant {
        /// Units each second.
        per_second: f64,
    },
    /// An even change from one rate to another, which then continues.
    Ramp(Ramp),
    /// One rate after the other; the last one continues. At least one.
    Steps {
        /// The steps in order.
        steps: Vec<RateStep>,
    },
}

/// An even change of a rate.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "RampJson")]
pub struct Ramp {
    /// Units each second at the start.
    pub from_per_second: f64,
    /// Units each second at the end, and after it.
    pub to_per_second: f64,
    /// Length of the change.
    pub over: Nanos,
}

/// One step of [`RateShape::Steps`].
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct RateStep {
    /// Units each second.
    pub per_second: f64,
    /// Length of the step.
    pub length: Nanos,
}

impl Ramp {
    /// Growth from `initial` by `change` in each second up to `maximum`, all in units each
    /// second, with `initial` at most `maximum`. A growth that takes longer than [`Nanos`] can
    /// state ends at the rate that is reached by then.
    #[must_use]
    pub fn growing(initial: f64, maximum: f64, change: f64) -> Self {
        let longest = Nanos::new(u64::MAX).as_secs_f64();
        let seconds = (maximum - initial) / change;
        let is_reached = seconds < longest;
        Self {
            from_per_second: initial,
            to_per_second: if is_reached {
                maximum
            } else {
                initial + change.max(0.0) * longest
            },
            over: Nanos::from_secs_f64(seconds.min(longest)),
        }
    }
}

/// Forms of a ramp: that of today, and that of generators in older captures.
#[derive(Deserialize)]
#[serde(untagged)]
enum RampJson {
    Over {
        from_per_second: f64,
        to_per_second: f64,
        over: Nanos,
    },
    Growing {
        initial_per_second: f64,
        maximum_per_second: f64,
        change_per_second: f64,
    },
}

impl From<RampJson> for Ramp {
    fn from(json: RampJson) -> Self {
        match json {
            RampJson::Over {
                from_per_second,
                to_per_second,
                over,
            } => Self {
                from_per_second,
                to_per_second,
                over,
            },
            RampJson::Growing {
                initial_per_second,
                maximum_per_second,
                change_per_second,
            } => Self::growing(initial_per_second, maximum_per_second, change_per_second),
        }
    }
}

impl RateShape {
    /// Returns true if there is no schedule.
    #[must_use]
    pub const fn is_max(&self) -> bool {
        matches!(self, Self::Max)
    }

    /// Returns the constant rate, if it is one.
    #[must_use]
    pub const fn constant(&self) -> Option<f64> {
        match self {
            Self::Constant { per_second } => Some(*per_second),
            Self::Max | Self::Ramp(_) | Self::Steps { .. } => None,
        }
    }

    /// Returns the rates that it names, in order; none for [`Self::Max`].
    #[must_use]
    pub fn levels(&self) -> Vec<f64> {
        match self {
            Self::Max => Vec::new(),
            Self::Constant { per_second } => vec![*per_second],
            Self::Ramp(ramp) => vec![ramp.from_per_second, ramp.to_per_second],
            Self::Steps { steps } => steps.iter().map(|step| step.per_second).collect(),
        }
    }

    /// Returns the highest rate; `None` for [`Self::Max`].
    #[must_use]
    pub fn highest(&self) -> Option<f64> {
        self.levels().into_iter().reduce(f64::max)
    }

    /// Returns it with every rate times `factor`.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Self {
        match &mut self {
            Self::Max => {}
            Self::Constant { per_second } => *per_second *= factor,
            Self::Ramp(ramp) => {
                ramp.from_per_second *= factor;
                ramp.to_per_second *= factor;
            }
            Self::Steps { steps } => steps.iter_mut().for_each(|step| step.per_second *= factor),
        }
        self
    }

    /// Returns the time in which it changes, with the last step; zero if it is constant.
    #[must_use]
    pub fn length(&self) -> Nanos {
        match self {
            Self::Max | Self::Constant { .. } => Nanos::ZERO,
            Self::Ramp(ramp) => ramp.over,
            Self::Steps { steps } => steps
                .iter()
                .fold(Nanos::ZERO, |sum, step| sum + step.length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramps_of_older_captures_are_read() {
        let old = r#"{"ramp": {"initial_per_second": 10.0, "maximum_per_second": 40.0,
            "change_per_second": 2.0}}"#;
        let ramp = RateShape::Ramp(Ramp {
            from_per_second: 10.0,
            to_per_second: 40.0,
            over: Nanos::from_secs(15),
        });
        assert_eq!(serde_json::from_str::<RateShape>(old).unwrap(), ramp);
        let new = serde_json::to_string(&ramp).unwrap();
        assert_eq!(serde_json::from_str::<RateShape>(&new).unwrap(), ramp);
    }

    #[test]
    fn growth_that_outlasts_time_ends_where_it_is_by_then() {
        let ramp = Ramp::growing(1.0, 1e15, 1.0);
        assert_eq!(ramp.over, Nanos::new(u64::MAX));
        let slope = (ramp.to_per_second - 1.0) / ramp.over.as_secs_f64();
        assert!((slope - 1.0).abs() < 1e-9);
    }
}
