//! Numbers as text for people: three significant digits, a space before the unit, commas between thousands.
//!
//! Every report and every progress line uses these functions, so one number reads the same everywhere.
//!
//! ```
//! use stillwell_units::human;
//! assert_eq!(human::time(4_231.0), "4.23 µs");
//! assert_eq!(human::bytes(52_428_800.0), "50.0 MiB");
//! assert_eq!(human::signed_percent(0.049), "+4.9 %");
//! ```

use std::fmt::Display;

use crate::{Nanos, float_from_u64, floor_to_u64};

/// Returns nanoseconds in the unit that fits, with three significant digits: `4.23 µs`.
#[must_use]
pub fn time(nanoseconds: f64) -> String {
    let (scale, unit) = match nanoseconds.abs() {
        size if size < 999.5 => (1.0, "ns"),
        size if size < 999.5e3 => (1e3, "µs"),
        size if size < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", significant(nanoseconds / scale))
}

/// Returns a length of time as [`time`] does.
#[must_use]
pub fn nanos(time_taken: Nanos) -> String {
    time(float_from_u64(time_taken.as_u64()))
}

/// Returns hours, minutes and seconds from one minute on, and [`nanos`] below: `2 min 43 s`.
#[must_use]
pub fn clock(elapsed: Nanos) -> String {
    let seconds = floor_to_u64(elapsed.as_secs_f64().round());
    match (seconds / 3600, seconds % 3600 / 60, seconds % 60) {
        (0, 0, _) => nanos(elapsed),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Returns a length of time as it was stated, without further digits: `200 ms`, `1 min 30 s`.
#[must_use]
pub fn length(stated: Nanos) -> String {
    let seconds = stated.as_u64() / Nanos::SECOND.as_u64();
    if seconds >= 60 && Nanos::from_secs(seconds) == stated {
        let parts = [
            (seconds / 3600, "h"),
            (seconds % 3600 / 60, "min"),
            (seconds % 60, "s"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, unit)| format!("{count} {unit}"))
            .collect();
        return parts.join(" ");
    }
    let text = stated.to_string();
    let digits = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    format!("{number} {}", unit.replace("us", "µs"))
}

/// Returns bytes in the IEC unit that fits: `50.0 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    let mut scaled = value;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if scaled.abs() < 1023.5 {
            return format!("{} {unit}", significant(scaled));
        }
        scaled /= 1024.0;
    }
    format!("{} TiB", significant(scaled))
}

/// Returns three significant digits, and all digits of larger numbers: `0.0995`, `1,023`, `3.21e-5`; `unbounded`
/// for what is not finite.
#[must_use]
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "unbounded".to_owned();
    }
    match value.abs() {
        size if size < 1e-12 => "0".to_owned(),
        size if size < 0.000_999_5 => format!("{value:.2e}"),
        size if size < 0.0995 => format!("{value:.4}"),
        size if size < 0.9995 => format!("{value:.3}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => grouped(value),
    }
}

/// Returns a number rounded to whole ones, with commas between thousands: `1,234,567`.
#[must_use]
pub fn grouped(value: f64) -> String {
    let digits = separated(&format!("{:.0}", value.abs()));
    if value < 0.0 {
        format!("-{digits}")
    } else {
        digits
    }
}

/// Returns a share of one as a percentage without a sign: `0.04 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let size = share.abs();
    if size < f64::MIN_POSITIVE {
        "0 %".to_owned()
    } else if size < 0.000_05 {
        "below 0.01 %".to_owned()
    } else {
        format!("{} %", percent_digits(size))
    }
}

/// Returns a relative change as a percentage with its sign: `+4.9 %`.
#[must_use]
pub fn signed_percent(share: f64) -> String {
    format!("{} %", signed_percent_digits(share))
}

/// Returns the digits of [`signed_percent`] without its unit: `+4.9`.
#[must_use]
pub fn signed_percent_digits(share: f64) -> String {
    let digits = percent_digits(share.abs());
    let zero = digits.chars().all(|c| matches!(c, '0' | '.'));
    match (zero, share < 0.0) {
        (true, _) => digits,
        (false, true) => format!("-{digits}"),
        (false, false) => format!("+{digits}"),
    }
}

fn percent_digits(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return "unbounded".to_owned();
    }
    match percent {
        size if size < 0.095 => format!("{size:.2}"),
        size if size < 99.95 => format!("{size:.1}"),
        size => grouped(size),
    }
}

/// Returns a number with its noun: `8 pairs`, `1 pair`.
#[must_use]
pub fn counted<N: Display + From<u8> + PartialEq>(
    number: N,
    singular: &str,
    plural: &str,
) -> String {
    let is_one = number == N::from(1);
    format!("{number} {}", if is_one { singular } else { plural })
}

/// Returns a noun with its article: `a rate`, `an event rate`.
#[must_use]
pub fn with_article(noun: &str) -> String {
    let has_consonant = ["udp ", "uni", "one "]
        .iter()
        .any(|start| noun.starts_with(start));
    let article = match noun.chars().next() {
        Some('a' | 'e' | 'i' | 'o' | 'u') if !has_consonant => "an",
        _ => "a",
    };
    format!("{article} {noun}")
}

/// Returns a count with commas between thousands: `239,950`.
#[must_use]
pub fn count(number: u64) -> String {
    separated(&number.to_string())
}

/// Returns `digits` with a comma before every third from the end.
fn separated(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (shown, expected) in [
            (time(950.4), "950 ns"),
            (time(999.6), "1.00 µs"),
            (time(4231.0), "4.23 µs"),
            (time(2.5e6), "2.50 ms"),
            (time(12e9), "12.0 s"),
            (bytes(0.0), "0 B"),
            (bytes(1023.0), "1,023 B"),
            (bytes(52_428_800.0), "50.0 MiB"),
            (percent(0.0), "0 %"),
            (percent(0.000_02), "below 0.01 %"),
            (percent(0.0004), "0.04 %"),
            (percent(1.5), "150 %"),
            (signed_percent(0.0), "0.00 %"),
            (signed_percent(-0.000_001), "0.00 %"),
            (signed_percent(0.049), "+4.9 %"),
            (signed_percent(-0.0312), "-3.1 %"),
            (signed_percent(f64::INFINITY), "+unbounded %"),
            (count(1_234_567), "1,234,567"),
            (grouped(-1234.4), "-1,234"),
        ] {
            assert_eq!(shown, expected);
        }
    }
}
