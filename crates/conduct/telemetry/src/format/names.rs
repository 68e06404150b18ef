//! Names and units of metrics in each format.

use stillwell_metric::{Kind, Metric, Unit};

/// Prefix of every name.
pub(crate) const PREFIX: &str = "stillwell";

/// The name of the job, and of the service.
pub(crate) const SERVICE: &str = "stillwell";

/// The name with the unit in full, and `_total` after counters.
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
    format!("{PREFIX}_{}{unit}{total}", metric.name)
}

/// The name without a unit, which is in another field.
pub(crate) fn otlp(metric: &Metric) -> String {
    format!("{PREFIX}.{}", metric.name)
}

/// The UCUM unit; times are in seconds.
pub(crate) const fn otlp_unit(metric: &Metric) -> &'static str {
    match metric.unit {
        Unit::Bytes => "By",
        Unit::Nanoseconds => "s",
        Unit::Count | Unit::Ratio | Unit::Unknown => "1",
    }
}

/// A total in the unit of the formats: times in seconds.
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

/// A gauge in the unit of the formats: times in seconds.
pub(crate) fn gauge(metric: &Metric, value: f64) -> f64 {
    match metric.unit {
        Unit::Nanoseconds => value / 1e9,
        _ => value,
    }
}
