//! Log lines by the second of their time.

use jiff::civil::Date;
use jiff::tz::Offset;
use stillwell_plan::payload::{TimeField, TimePattern, TimestampedPlan};

use super::{ReplayPiece, without_end};
use crate::BuildError;

/// Most empty seconds of a file that become placeholders: eleven days. Gaps beyond are a
/// mistake, or would fill any cache.
const GAP_SECONDS_MAX: i64 = 1_000_000;

/// The lines of `source` without their times, each second a block; blank lines
/// are left out.
pub(super) fn pieces<'s>(
    plan: &TimestampedPlan,
    source: &'s [u8],
) -> Result<Vec<ReplayPiece<'s>>, BuildError> {
    let mut pieces = Vec::new();
    let mut before: Option<i64> = None;
    let mut empty = 0;
    let lines = source.split_inclusive(|byte| *byte == b'\n');
    for (line, bytes) in (1_u64..).zip(lines) {
        let bytes = without_end(bytes);
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let (second, rest) = read(&plan.time, bytes).ok_or(BuildError::NoTime { line })?;
        let gap = second - before.unwrap_or(second);
        if gap < 0 {
            return Err(BuildError::TimeBackwards { line });
        }
        if plan.placeholder && gap > 1 {
            empty += gap - 1;
            if empty >= GAP_SECONDS_MAX {
                return Err(BuildError::TimeGap { line });
            }
            pieces.extend((1..gap).map(|_| ReplayPiece {
                bytes: b"",
                begins_block: true,
            }));
        }
        pieces.push(ReplayPiece {
            bytes: rest,
            begins_block: before != Some(second),
        });
        before = Some(second);
    }
    Ok(pieces)
}

/// The parts of a time in a line.
#[derive(Debug, Default)]
struct TimeParts {
    year: i64,
    month: i64,
    day: i64,
    seconds: i64,
    epoch: Option<i64>,
    offset: i64,
}

/// The second at which `line` begins, and what follows it and at most one blank.
fn read<'l>(pattern: &TimePattern, line: &'l [u8]) -> Option<(i64, &'l [u8])> {
    let mut parts = TimeParts {
        year: 1970,
        month: 1,
        day: 1,
        ..TimeParts::default()
    };
    let mut rest = line;
    for field in &pattern.fields {
        rest = read_field(field, rest, &mut parts)?;
    }
    let rest = match rest {
        [b' ' | b'\t', after @ ..] => after,
        _ => rest,
    };
    Some((parts.second()?, rest))
}

impl TimeParts {
    fn second(&self) -> Option<i64> {
        if let Some(epoch) = self.epoch {
            return Some(epoch);
        }
        let year = i16::try_from(self.year).ok()?;
        let (month, day) = (i8::try_from(self.month).ok()?, i8::try_from(self.day).ok()?);
        let midnight = Date::new(year, month, day).ok()?.at(0, 0, 0, 0);
        let midnight = Offset::UTC.to_timestamp(midnight).ok()?.as_second();
        Some(midnight + self.seconds - self.offset)
    }
}

fn read_field<'l>(field: &TimeField, text: &'l [u8], parts: &mut TimeParts) -> Option<&'l [u8]> {
    let (value, rest) = match field {
        TimeField::Text(expected) => return read_text(expected.as_bytes(), text),
        TimeField::MonthName => {
            let (name, rest) = text.split_at_checked(3)?;
            parts.month = month(name)?;
            return Some(rest);
        }
        TimeField::Offset | TimeField::OffsetColon => {
            let (offset, rest) = read_offset(text)?;
            parts.offset = offset;
            return Some(rest);
        }
        TimeField::PointFraction(digits) => return read_point(*digits, text),
        TimeField::Fraction(digits) => return Some(number(text, usize::from(*digits))?.1),
        TimeField::Year => number(text, 4)?,
        TimeField::Epoch => number(text, 18)?,
        _ => number(text, 2)?,
    };
    let bounded = |most| (value <= most).then_some(value);
    match field {
        TimeField::Year => parts.year = value,
        TimeField::ShortYear => parts.year = value + if value < 70 { 2000 } else { 1900 },
        TimeField::Month => parts.month = value,
        TimeField::Day | TimeField::PaddedDay => parts.day = value,
        TimeField::Hour => parts.seconds += bounded(23)? * 3600,
        TimeField::Minute => parts.seconds += bounded(59)? * 60,
        TimeField::Second => parts.seconds += bounded(60)?,
        _ => parts.epoch = Some(value),
    }
    Some(rest)
}

/// Reads `expected`, in which a blank matches any number of blanks.
fn read_text<'l>(expected: &[u8], mut text: &'l [u8]) -> Option<&'l [u8]> {
    for byte in expected {
        text = if byte.is_ascii_whitespace() {
            text.trim_ascii_start()
        } else {
            text.strip_prefix(std::slice::from_ref(byte))?
        };
    }
    Some(text)
}

/// One to `digits_max` digits, blanks before them left out.
fn number(text: &[u8], digits_max: usize) -> Option<(i64, &[u8])> {
    let text = text.trim_ascii_start();
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let count = text.iter().take(digits_max).take_while(is_digit).count();
    let (digits, rest) = text.split_at(count);
    let value = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((value, rest))
}

fn read_point(digits: Option<u8>, text: &[u8]) -> Option<&[u8]> {
    match (text.strip_prefix(b"."), digits) {
        (Some(after), digits) => {
            let digits_max = digits.map_or(18, usize::from);
            Some(number(after, digits_max)?.1)
        }
        (None, None) => Some(text),
        (None, Some(_)) => None,
    }
}

/// `Z`, `+hhmm` or `+hh:mm`, in seconds.
fn read_offset(text: &[u8]) -> Option<(i64, &[u8])> {
    let (sign, rest) = match text {
        [b'Z', rest @ ..] => return Some((0, rest)),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = rest.split_at_checked(2)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let (minutes, rest) = rest.split_at_checked(2)?;
    let whole = |digits| number(digits, 2).filter(|(_, rest)| rest.is_empty());
    let seconds = whole(hours)?.0 * 3600 + whole(minutes)?.0 * 60;
    Some((sign * seconds, rest))
}

fn month(name: &[u8]) -> Option<i64> {
    const NAMES: &[u8] = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let lower = name.to_ascii_lowercase();
    let index = NAMES.chunks(3).position(|month| month == lower)?;
    i64::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_taken_away() {
        for (pattern, line, expected) in [
            (
                "%Y-%m-%dT%H:%M:%S",
                "1970-01-02T00:00:01 text",
                Some((86_401, "text")),
            ),
            (
                "%Y-%m-%d %H:%M:%S%.f",
                "2024-02-29 12:34:56.789123  two",
                Some((1_709_210_096, " two")),
            ),
            (
                "%d/%b/%Y:%H:%M:%S %z",
                "29/Feb/2024:13:34:56 +0100 a",
                Some((1_709_210_096, "a")),
            ),
            ("[%s]", "[1709210096]a", Some((1_709_210_096, "a"))),
            (
                "%b %e %Y %T",
                "Feb  9 2001 01:02:03",
                Some((981_680_523, "")),
            ),
            ("%F %T%.3f", "2024-02-29 12:34:56 a", None),
            ("%F %T", "2024-13-01 00:00:00 a", None),
            ("%F %T", "2024-12-01 24:00:00 a", None),
            ("%F %T", "text", None),
        ] {
            let pattern = TimePattern::parse(pattern).unwrap();
            let expected = expected.map(|(second, rest): (i64, &str)| (second, rest.as_bytes()));
            assert_eq!(read(&pattern, line.as_bytes()), expected, "{line}");
        }
    }
}
