//! Lengths of time and points in time, in nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::number::{float_from_u64, floor_to_u64, split_number};

const SECOND: u64 = 1_000_000_000;

/// A length of time in nanoseconds; 584 years fit.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(transparent)]
pub struct Nanos(u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// One second.
    pub const SECOND: Self = Self(SECOND);

    /// `nanoseconds` nanoseconds.
    #[must_use]
    pub const fn new(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// `milliseconds` milliseconds.
    #[must_use]
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000))
    }

    /// `seconds` seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(SECOND))
    }

    /// `seconds` seconds; negative gives zero.
    #[must_use]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self(floor_to_u64((seconds * 1e9).round()))
    }

    /// The number of nanoseconds.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// In seconds.
    #[must_use]
    pub const fn as_secs_f64(self) -> f64 {
        float_from_u64(self.0) / 1e9
    }

    /// For the standard library's waits.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Returns all digits, of which `Display` rounds those beyond the third decimal: `1.0004s`. For limits that were typed:
    /// the text reads back as the same length.
    #[must_use]
    pub fn to_exact_text(self) -> String {
        let (scale, decimals, unit) = match self.0 {
            1_000..1_000_000 => (1_000, 3, "us"),
            1_000_000..SECOND => (1_000_000, 6, "ms"),
            SECOND.. if !self.0.is_multiple_of(SECOND) => (SECOND, 9, "s"),
            // Whole nanoseconds and whole seconds have no decimals.
            _ => return self.to_string(),
        };
        let number = format!("{}.{:0decimals$}", self.0 / scale, self.0 % scale);
        let number = number.trim_end_matches('0').trim_end_matches('.');
        format!("{number}{unit}")
    }

    /// `self − other`, or zero.
    #[must_use]
    pub const fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }

    /// Returns the share that this is of `whole`, which counts as one nanosecond at least.
    #[must_use]
    pub fn share_of(self, whole: Self) -> f64 {
        float_from_u64(self.0) / float_from_u64(whole.0.max(1))
    }
}

impl Nanos {
    /// Returns whole seconds and the nanoseconds beyond them, as the kernel takes them.
    ///
    /// # Panics
    /// Never: 2⁶⁴ ns are less than 2³⁵ s.
    #[must_use]
    pub fn split_seconds(self) -> (i64, u32) {
        let seconds = i64::try_from(self.0 / Self::SECOND.0);
        let nanos = u32::try_from(self.0 % Self::SECOND.0);
        (
            seconds.expect("2⁶⁴ ns are less than 2³⁵ s"),
            nanos.expect("a second has fewer than 2³² ns"),
        )
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Nanos {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl fmt::Display for Nanos {
    /// In the unit a reader would choose: `250ns`, `1.5ms`, `90s` as `1m30s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0 => return f.write_str("0s"),
            1..1_000 => (1.0, "ns"),
            1_000..1_000_000 => (1e3, "us"),
            1_000_000..SECOND => (1e6, "ms"),
            _ if self.0 >= 60 * SECOND && self.0.is_multiple_of(SECOND) => {
                return fmt_clock(self.0 / SECOND, f);
            }
            _ => (1e9, "s"),
        };
        let scaled = (float_from_u64(self.0) / scale * 1e3).round() / 1e3;
        write!(f, "{scaled}{unit}")
    }
}

/// Whole seconds as hours, minutes and seconds, leaving out what is zero.
fn fmt_clock(seconds: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (length, unit) in [(3600, "h"), (60, "m"), (1, "s")] {
        let count = match length {
            3600 => seconds / 3600,
            60 => seconds % 3600 / 60,
            _ => seconds % 60,
        };
        if count > 0 {
            write!(f, "{count}{unit}")?;
        }
    }
    Ok(())
}

impl FromStr for Nanos {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let shape = || ParseError::Shape {
            input: text.to_owned(),
            kind: "duration",
            accepted: "a number and a unit, such as `500ms`, `10s`, `1h30m`",
        };
        let mut rest = text.trim();
        let mut total = 0.0;
        if rest.is_empty() {
            return Err(shape());
        }
        while !rest.is_empty() {
            let (number, after) = split_number(rest).ok_or_else(shape)?;
            let end = after
                .find(|c: char| !c.is_alphabetic())
                .unwrap_or(after.len());
            let unit = &after[..end];
            if unit.is_empty() {
                return Err(ParseError::UnitMissing {
                    input: text.trim().to_owned(),
                    kind: "duration",
                    example: "s",
                });
            }
            total += number * unit_nanos(unit).ok_or_else(shape)?;
            rest = after[end..].trim_start();
        }
        if total >= float_from_u64(u64::MAX) {
            return Err(ParseError::Range {
                input: text.to_owned(),
                kind: "duration",
                bounds: "at most 584 years",
            });
        }
        Ok(Self(floor_to_u64(total.round())))
    }
}

fn unit_nanos(unit: &str) -> Option<f64> {
    let nanos = match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" | "sec" => 1e9,
        "m" | "min" => 6e10,
        "h" => 3.6e12,
        "d" => 8.64e13,
        _ => return None,
    };
    Some(nanos)
}

/// A point on the host's monotonic clock, in nanoseconds since its epoch.
///
/// Moments of one host compare; moments of two hosts do not.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    /// The moment `nanoseconds` after the clock's epoch.
    #[must_use]
    pub const fn new(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the clock's epoch.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to here, or zero where `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for Moment {
    type Output = Self;

    fn add(self, length: Nanos) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

impl Sub<Nanos> for Moment {
    type Output = Self;

    fn sub(self, length: Nanos) -> Self {
        Self(self.0.saturating_sub(length.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_written() {
        for (text, nanos) in [
            ("300ns", 300),
            ("50 us", 50_000),
            ("1.5ms", 1_500_000),
            ("10s", 10 * SECOND),
            ("1h30m", 5400 * SECOND),
            ("1m 5s", 65 * SECOND),
        ] {
            assert_eq!(text.parse::<Nanos>().unwrap().as_u64(), nanos, "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_not_silently_seconds() {
        assert_eq!(
            "10".parse::<Nanos>().unwrap_err().to_string(),
            "a duration needs a unit, as none is assumed: write `10s`"
        );
        for text in ["", "s", "1 fortnight", "1s2", "-1s"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn printed_durations_read_back() {
        for nanos in [
            0,
            300,
            50_000,
            1_500_000,
            SECOND,
            61 * SECOND,
            5400 * SECOND,
        ] {
            let nanos = Nanos::new(nanos);
            assert_eq!(nanos.to_string().parse::<Nanos>().unwrap(), nanos);
        }
    }

    #[test]
    fn exact_texts_of_durations_read_back() {
        for (nanos, text) in [
            (0, "0s"),
            (999, "999ns"),
            (1_000, "1us"),
            (1_000_001, "1.000001ms"),
            (20_000_000, "20ms"),
            (999_999_999, "999.999999ms"),
            (SECOND, "1s"),
            (1_000_400_000, "1.0004s"),
            (1_000_000_001, "1.000000001s"),
            (90 * SECOND, "1m30s"),
            (90 * SECOND + 400_000, "90.0004s"),
        ] {
            let nanos = Nanos::new(nanos);
            assert_eq!(nanos.to_exact_text(), text);
            assert_eq!(text.parse::<Nanos>().unwrap(), nanos);
        }
    }

    #[test]
    fn moments_never_go_below_zero() {
        assert_eq!(Moment::new(5).since(Moment::new(9)), Nanos::ZERO);
        assert_eq!(Moment::new(5) - Nanos::new(9), Moment::new(0));
    }

    #[test]
    fn shares_of_no_time_are_finite() {
        assert!((Nanos::new(3).share_of(Nanos::new(4)) - 0.75).abs() < 1e-9);
        assert!(Nanos::ZERO.share_of(Nanos::ZERO).abs() < 1e-9);
    }
}
