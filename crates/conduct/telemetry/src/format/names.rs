//! One metric, called as each format calls such things.

use stillwell_metric::{Kind, Metric, Unit};

/// What stands before every name.
pub(crate) const OWN: &str = "stillwell";

/// The name of the job, and of the service.
pub(crate) const SERVICE: &str = "stillwell";

/// With the unit in full and `_total` behind counters.
pub(crate) fn prometheus(metric: &Metric) -> String {
    let unit = match metric.unit {
        Unit::Nanoseconds => "_seconds",
        Unit::Ratio => "_ratio",
        Unit::Bytes | Unit::Count | Unit::Unknown => "",
    };
    let total = match metric.kind {
        Kind::Counter => "_total",
        Kind::Gauge | Kind::Histogram => "",
    };
    format!("{OWN}_{}{unit}{total}", metric.name)
}

/// With dots, and without a unit, which stands in a field of its own.
pub(crate) fn otlp(metric: &Metric) -> String {
    format!("{OWN}.{}", metric.name)
}

/// The unit in the words of UCUM; times are told in seconds.
pub(crate) const fn otlp_unit(metric: &Metric) -> &'static str {
    match metric.unit {
        Unit::Bytes => "By",
        Unit::Nanoseconds => "s",
        Unit::Count | Unit::Ratio | Unit::Unknown => "1",
    }
}

/// What a total counts, in the unit that its format is told: times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Total {
    /// As it was counted.
    Whole(u64),
    /// In seconds.
    Seconds(f64),
}

impl Total {
    pub(crate) const fn new(metric: &Metric, total: u64) -> Self {
        match metric.unit {
            Unit::Nanoseconds => Self::Seconds(stillwell_units::Nanos::new(total).as_secs_f64()),
            _ => Self::Whole(total),
        }
    }

    pub(crate) const fn as_float(self) -> f64 {
        match self {
            Self::Whole(value) => stillwell_units::float_from_u64(value),
            Self::Seconds(value) => value,
        }
    }
}
