//! Rates: bytes or events per second.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::number::{float_from_u64, floor_to_u64, split_number};
use crate::{ByteSize, ParseError};

/// Bytes per second, at least one.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct ByteRate(u64);

impl ByteRate {
    /// `bytes_per_second`, which must not be zero: a workload without load is
    /// written as no workload.
    ///
    /// # Errors
    /// [`ParseError::Range`] for zero.
    pub fn try_new(bytes_per_second: u64) -> Result<Self, ParseError> {
        if bytes_per_second == 0 {
            return Err(ParseError::Range {
                input: "0 B/s".to_owned(),
                kind: "rate of bytes",
                bounds: "at least 1 B/s",
            });
        }
        Ok(Self(bytes_per_second))
    }

    /// Bytes in each second.
    #[must_use]
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }
}

impl From<ByteRate> for u64 {
    fn from(rate: ByteRate) -> Self {
        rate.0
    }
}

impl TryFrom<u64> for ByteRate {
    type Error = ParseError;

    fn try_from(bytes_per_second: u64) -> Result<Self, ParseError> {
        Self::try_new(bytes_per_second)
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", ByteSize::new(self.0))
    }
}

impl FromStr for ByteRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let Some(size) = text.strip_suffix("/s") else {
            if text.contains('/') {
                return Err(ParseError::Shape {
                    input: text.to_owned(),
                    kind: "rate of bytes",
                    accepted: "bytes per second, such as `10 MiB/s`",
                });
            }
            return Err(ParseError::UnitMissing {
                input: text.to_owned(),
                kind: "rate of bytes",
                example: if text.ends_with(|c: char| c.is_ascii_digit()) {
                    " MiB/s"
                } else {
                    "/s"
                },
            });
        };
        Self::try_new(size.parse::<ByteSize>()?.bytes())
    }
}

/// Events per second: finite and above zero; below one is allowed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct EventRate(f64);

impl EventRate {
    /// `events_per_second`, which must be finite and above zero.
    ///
    /// # Errors
    /// [`ParseError::Range`] otherwise.
    pub fn try_new(events_per_second: f64) -> Result<Self, ParseError> {
        if events_per_second.is_finite() && events_per_second > 0.0 {
            Ok(Self(events_per_second))
        } else {
            Err(ParseError::Range {
                input: format!("{events_per_second}/s"),
                kind: "rate of events",
                bounds: "above zero and finite",
            })
        }
    }

    /// Events in each second.
    #[must_use]
    pub const fn events_per_second(self) -> f64 {
        self.0
    }
}

impl From<EventRate> for f64 {
    fn from(rate: EventRate) -> Self {
        rate.0
    }
}

impl TryFrom<f64> for EventRate {
    type Error = ParseError;

    fn try_from(events_per_second: f64) -> Result<Self, ParseError> {
        Self::try_new(events_per_second)
    }
}

impl fmt::Display for EventRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 1.0 && self.0 < float_from_u64(u64::MAX) {
            let whole = floor_to_u64(self.0.round());
            write!(f, "{}/s", group_thousands(whole))
        } else {
            write!(f, "{}/m", self.0 * 60.0)
        }
    }
}

impl FromStr for EventRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let shape = || ParseError::Shape {
            input: text.to_owned(),
            kind: "rate of events",
            accepted: "a count per time, such as `1000/s`, `5k/s` or `300/m`",
        };
        let (count, period) = match text.trim().split_once('/') {
            Some((count, "s")) => (count, 1.0),
            Some((count, "m")) => (count, 60.0),
            Some((count, "h")) => (count, 3600.0),
            Some(_) => return Err(shape()),
            None => {
                // `100rps` and `100 events` are `100/s`.
                let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
                let number = text.trim();
                let digits = number.find(|c| !is_of_number(c)).unwrap_or(number.len());
                if digits == 0 {
                    return Err(shape());
                }
                let has_factor = matches!(&number[digits..], "k" | "M");
                let end = if has_factor { number.len() } else { digits };
                return Err(ParseError::UnitMissing {
                    input: number[..end].to_owned(),
                    kind: "rate of events",
                    example: "/s",
                });
            }
        };
        let count = ungroup_thousands(count).ok_or_else(shape)?;
        let (number, suffix) = split_number(&count).ok_or_else(shape)?;
        let scale = match suffix {
            "" => 1.0,
            "k" => 1e3,
            "M" => 1e6,
            _ => return Err(shape()),
        };
        Self::try_new(number * scale / period)
    }
}

/// `1234567` as `1,234,567`.
fn group_thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1,234,567.5k` without its commas. None if they do not separate thousands: the comma of `1,5` or `0,500` may be
/// meant as a decimal point.
fn ungroup_thousands(count: &str) -> Option<String> {
    let end = count
        .find(|c: char| !(c.is_ascii_digit() || c == ','))
        .unwrap_or(count.len());
    let (whole, rest) = count.split_at(end);
    let Some((first, groups)) = whole.split_once(',') else {
        return Some(count.to_owned());
    };
    let is_first = (1..=3).contains(&first.len()) && !first.starts_with('0');
    let is_grouped = is_first && groups.split(',').all(|group| group.len() == 3);
    is_grouped.then(|| format!("{}{rest}", whole.replace(',', "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_rates_read_as_written() {
        for (text, rate) in [
            ("1 MiB/s", 1_048_576),
            ("100MB/s", 100_000_000),
            ("5 B/s", 5),
        ] {
            assert_eq!(text.parse::<ByteRate>().unwrap().bytes_per_second(), rate);
        }
    }

    #[test]
    fn a_byte_rate_without_time_is_refused_with_the_right_form() {
        assert_eq!(
            "500 MiB".parse::<ByteRate>().unwrap_err().to_string(),
            "a rate of bytes needs a unit, as none is assumed: write `500 MiB/s`"
        );
        assert!("0 B/s".parse::<ByteRate>().is_err());
    }

    #[test]
    fn a_byte_rate_counts_seconds() {
        for text in ["10 MiB/m", "10 MiB/h", "10 MiB/", "10 MiB/sec", "1/s B"] {
            assert_eq!(
                text.parse::<ByteRate>().unwrap_err().to_string(),
                format!(
                    "`{text}` is not a rate of bytes: write bytes per second, such as `10 MiB/s`"
                )
            );
        }
    }

    #[test]
    fn event_rates_read_as_written() {
        for (text, rate) in [
            ("1000/s", 1000.0),
            ("5k/s", 5000.0),
            ("300/m", 5.0),
            ("1,000/s", 1000.0),
        ] {
            let parsed = text.parse::<EventRate>().unwrap().events_per_second();
            assert!((parsed - rate).abs() < 1e-9, "{text}");
        }
        for text in ["1000", "0/s", "k/s", "5/d"] {
            assert!(text.parse::<EventRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn commas_separate_thousands_and_nothing_else() {
        for (text, rate) in [
            ("1,000,000/s", 1_000_000.0),
            ("12,000.5/s", 12_000.5),
            ("1,500k/s", 1_500_000.0),
            ("999,999 /s", 999_999.0),
            ("1_000/s", 1000.0),
        ] {
            let parsed = text.parse::<EventRate>().unwrap().events_per_second();
            assert!((parsed - rate).abs() < 1e-9, "{text}");
        }
        for text in [
            "1,5/s",
            "0,5/s",
            "0,500/s",
            "1,00/s",
            "1,0000/s",
            "1234,567/s",
            ",5/s",
            "5,/s",
            "1,,000/s",
            "1.5,000/s",
            "1_000,000/s",
            "1,5k/s",
            "1k,/s",
        ] {
            let error = text.parse::<EventRate>().unwrap_err();
            assert!(matches!(error, ParseError::Shape { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn event_rates_print_for_readers() {
        assert_eq!(
            EventRate::try_new(1_234_567.0).unwrap().to_string(),
            "1,234,567/s"
        );
        assert_eq!(EventRate::try_new(0.5).unwrap().to_string(), "30/m");
    }
}
