//! Bounds that a load must keep, for who searches the highest rate that does.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

/// A bound on one figure of a load. Typed as `p99<20ms`, `errors<0.1%` or
/// `throughput>99%`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct CapacityBound {
    /// The bounded figure.
    pub figure: CapacityFigure,
    /// The limit itself: nanoseconds of a latency, else a share of one; finite
    /// and not below 0. It is kept where it is reached exactly.
    pub limit: f64,
}

/// A figure that can have a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapacityFigure {
    /// The time within which this share of all requests or events is done, above
    /// 0 and below 1; from the intended time on, and infinite for those that never
    /// are.
    Latency(f64),
    /// The mean of the times of those that are done.
    LatencyMean,
    /// The longest of them.
    LatencyMax,
    /// Share of requests that were answered with an error, or not at all.
    Errors,
    /// Share of requests without any answer, or of events that did not arrive.
    Loss,
    /// Sent requests as a share of the requested ones.
    Throughput,
}

/// A text that is not a bound.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{text}` is not a bound{problem}: write p99<20ms, mean<5ms, max<1s, errors<0.1%, loss<0.01% or throughput>99%"
)]
pub struct CapacityBoundError {
    text: String,
    problem: String,
}

impl CapacityFigure {
    /// Returns true if it must stay below its limit; else above.
    #[must_use]
    pub const fn is_upper(self) -> bool {
        !matches!(self, Self::Throughput)
    }

    /// Returns true if it is a time in nanoseconds, not a share.
    #[must_use]
    pub const fn is_time(self) -> bool {
        matches!(
            self,
            Self::Latency(_) | Self::LatencyMean | Self::LatencyMax
        )
    }

    /// `value` of it for readers.
    #[must_use]
    pub fn format_value(self, value: f64) -> String {
        if !value.is_finite() {
            return "never".to_owned();
        }
        if self.is_time() {
            return Nanos::from_secs_f64(value / 1e9).to_string();
        }
        // As few digits as identify the value.
        let percent = value * 100.0;
        let digits = if percent >= 10.0 { 1 } else { 3 };
        let text = format!("{percent:.digits$}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        format!("{text} %")
    }
}

impl CapacityBound {
    /// Returns true if a figure of this value keeps it. What was not measured does not.
    #[must_use]
    pub fn is_kept(&self, value: Option<f64>) -> bool {
        value.is_some_and(|value| {
            if self.figure.is_upper() {
                value <= self.limit
            } else {
                value >= self.limit
            }
        })
    }
}

impl fmt::Display for CapacityFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency(share) => {
                // Rounded where the share is not exact in binary.
                let text = format!("{:.6}", share * 100.0);
                write!(f, "p{}", text.trim_end_matches('0').trim_end_matches('.'))
            }
            Self::LatencyMean => f.write_str("mean"),
            Self::LatencyMax => f.write_str("max"),
            Self::Errors => f.write_str("errors"),
            Self::Loss => f.write_str("loss"),
            Self::Throughput => f.write_str("throughput"),
        }
    }
}

impl fmt::Display for CapacityBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.figure.is_upper() { '<' } else { '>' };
        // In full: a rounded limit is another bound when it is read again.
        if self.figure.is_time() {
            let limit = Nanos::new(floor_to_u64(self.limit.round())).to_exact_text();
            return write!(f, "{}{sign}{limit}", self.figure);
        }
        let percent = format!("{:.9}", self.limit * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{}{sign}{percent}%", self.figure)
    }
}

impl From<CapacityBound> for String {
    fn from(bound: CapacityBound) -> Self {
        bound.to_string()
    }
}

impl TryFrom<String> for CapacityBound {
    type Error = CapacityBoundError;

    fn try_from(text: String) -> Result<Self, CapacityBoundError> {
        text.parse()
    }
}

impl FromStr for CapacityBound {
    type Err = CapacityBoundError;

    fn from_str(text: &str) -> Result<Self, CapacityBoundError> {
        let refused = |problem: &str| CapacityBoundError {
            text: text.to_owned(),
            problem: problem.to_owned(),
        };
        let place = text.find(['<', '>']).ok_or_else(|| refused(""))?;
        let (name, rest) = text.split_at(place);
        let is_upper = rest.starts_with('<');
        let limit = rest.trim_start_matches(['<', '>']);
        let limit = limit.trim_start_matches('=').trim();
        let figure = figure(name.trim()).ok_or_else(|| refused(", there is no such figure"))?;
        if figure.is_upper() != is_upper {
            let side = if figure.is_upper() {
                "an upper bound (`<`)"
            } else {
                "a lower bound (`>`)"
            };
            return Err(refused(&format!(", {figure} needs {side}")));
        }
        let limit = if figure.is_time() {
            let time: Nanos = limit
                .parse()
                .map_err(|_| refused(", its limit must be a time"))?;
            float_from_u64(time.as_u64())
        } else {
            share(limit).ok_or_else(|| refused(", its limit must be a share from 0 to 100 %"))?
        };
        Ok(Self { figure, limit })
    }
}

fn figure(name: &str) -> Option<CapacityFigure> {
    Some(match name {
        "mean" => CapacityFigure::LatencyMean,
        "max" => CapacityFigure::LatencyMax,
        "median" => CapacityFigure::Latency(0.5),
        "errors" => CapacityFigure::Errors,
        "loss" => CapacityFigure::Loss,
        "throughput" => CapacityFigure::Throughput,
        _ => {
            let digits = name.strip_prefix('p')?;
            let is_plain = digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.');
            let percent: f64 = digits.parse().ok().filter(|_| is_plain)?;
            // p999 is 99.9, as people say it.
            let percent = match digits.len() {
                3 if digits.starts_with("99") && !digits.contains('.') => percent / 10.0,
                4 if digits.starts_with("999") && !digits.contains('.') => percent / 100.0,
                _ => percent,
            };
            (percent > 0.0 && percent < 100.0)
                .then_some(CapacityFigure::Latency(percent / 100.0))?
        }
    })
}

fn share(text: &str) -> Option<f64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().ok()? / scale;
    (0.0..=1.0).contains(&share).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_read_as_written() {
        for (text, shown, limit) in [
            ("p99<20ms", "p99<20ms", 2e7),
            ("p99.9 < 1s", "p99.9<1s", 1e9),
            ("p999<1s", "p99.9<1s", 1e9),
            ("p9999<1s", "p99.99<1s", 1e9),
            ("median<=500us", "p50<500us", 5e5),
            ("mean<5ms", "mean<5ms", 5e6),
            ("max<1s", "max<1s", 1e9),
            ("p99<1.0004s", "p99<1.0004s", 1_000_400_000.0),
            ("mean<1.000001ms", "mean<1.000001ms", 1_000_001.0),
            ("errors<0.1%", "errors<0.1%", 0.001),
            ("errors<0.001", "errors<0.1%", 0.001),
            ("errors<0%", "errors<0%", 0.0),
            ("loss<1 %", "loss<1%", 0.01),
            ("throughput>99%", "throughput>99%", 0.99),
            ("throughput>99.99%", "throughput>99.99%", 0.9999),
            ("throughput>100%", "throughput>100%", 1.0),
            ("errors<12.345%", "errors<12.345%", 0.123_45),
            ("errors<0.0004%", "errors<0.0004%", 4e-6),
            ("loss<7%", "loss<7%", 0.07),
        ] {
            let bound: CapacityBound = text.parse().unwrap();
            assert_eq!(bound.to_string(), shown);
            assert!((bound.limit - limit).abs() <= 1e-9 * limit, "{bound:?}");
            let again: CapacityBound = shown.parse().unwrap();
            assert_eq!(again.to_string(), shown);
            assert!((again.limit - limit).abs() <= 1e-9 * limit, "{again:?}");
        }
    }

    #[test]
    fn an_error_lists_the_accepted_bounds() {
        for (text, expected) in [
            ("p99", "is not a bound: write p99<20ms"),
            ("p100<1s", "no such figure"),
            ("p-1<1s", "no such figure"),
            ("latency<1s", "no such figure"),
            ("p99<20", "its limit must be a time"),
            ("errors<20ms", "a share from 0 to 100 %"),
            ("errors<200%", "a share from 0 to 100 %"),
            ("p99>20ms", "p99 needs an upper bound"),
            ("throughput<90%", "throughput needs a lower bound"),
        ] {
            let error = text.parse::<CapacityBound>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_was_not_measured_keeps_no_bound() {
        let upper: CapacityBound = "errors<1%".parse().unwrap();
        let lower: CapacityBound = "throughput>99%".parse().unwrap();
        assert!(upper.is_kept(Some(0.01)) && !upper.is_kept(Some(0.011)));
        assert!(lower.is_kept(Some(0.99)) && !lower.is_kept(Some(0.98)));
        assert!(!upper.is_kept(None) && !lower.is_kept(None));
        let late: CapacityBound = "p99<1s".parse().unwrap();
        assert!(!late.is_kept(Some(f64::INFINITY)));
        assert_eq!(late.figure.format_value(f64::INFINITY), "never");
    }
}
