//! Times in the JSON form of protocol buffers: `"0.000195s"` and
//! `"2020-10-21T21:28:12.690578Z"`.

use stillwell_units::Nanos;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400;

/// A length of time: `0.000195s`, with no, three, six or nine digits behind the
/// point.
#[must_use]
pub fn duration_text(length: Nanos) -> String {
    let nanoseconds = length.as_u64();
    format!(
        "{}{}s",
        nanoseconds / SECOND,
        fraction(nanoseconds % SECOND)
    )
}

/// A point in time, given since the Unix epoch, in UTC.
#[must_use]
pub fn timestamp_text(since_epoch: Nanos) -> String {
    let nanoseconds = since_epoch.as_u64();
    let seconds = nanoseconds / SECOND;
    let (year, month, day) = civil(seconds / DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{}Z",
        fraction(nanoseconds % SECOND)
    )
}

/// The length of time that `text` says, if it is one of those above and not
/// negative.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Nanos> {
    let (seconds, nanoseconds) = split_seconds(text.strip_suffix('s')?)?;
    let total = seconds.checked_mul(SECOND)?.checked_add(nanoseconds)?;
    Some(Nanos::new(total))
}

/// The point in time that `text` says, since the Unix epoch: in UTC, or with an
/// offset such as `+02:00`; from 1970 on.
#[must_use]
pub fn parse_timestamp(text: &str) -> Option<Nanos> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let mut parts = date.splitn(3, '-');
    let mut part = || parts.next().and_then(whole);
    let (year, month, day) = (part()?, part()?, part()?);
    if !(1970..=2554).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, offset_minutes) = split_offset(rest)?;
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (parts.next().and_then(whole)?, parts.next().and_then(whole)?);
    let (second, nanoseconds) = split_seconds(parts.next()?)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let local = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    let seconds = local.checked_add_signed(-offset_minutes * 60)?;
    let total = seconds.checked_mul(SECOND)?.checked_add(nanoseconds)?;
    Some(Nanos::new(total))
}

/// The time of day, and by how many minutes its clock is ahead of UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (time, offset) = text.split_at(at);
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let minutes = i64::try_from(whole(hours)? * 60 + whole(minutes)?).ok()?;
    let ahead = offset.starts_with('+');
    Some((time, if ahead { minutes } else { -minutes }))
}

/// Seconds, and nanoseconds behind the point.
fn split_seconds(text: &str) -> Option<(u64, u64)> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = fraction.len();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let scale = 10_u64.pow(u32::try_from(9 - digits).ok()?);
    Some((whole(seconds)?, whole(fraction)? * scale))
}

/// Digits alone, at most as many as fit.
fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn fraction(nanoseconds: u64) -> String {
    match nanoseconds {
        0 => String::new(),
        n if n.is_multiple_of(1_000_000) => format!(".{:03}", n / 1_000_000),
        n if n.is_multiple_of(1_000) => format!(".{:06}", n / 1_000),
        n => format!(".{n:09}"),
    }
}

/// Year, month and day of a day since the Unix epoch. Years are counted from
/// March, so that the leap day is the last of its year.
const fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// Days since the Unix epoch; the inverse of [`civil`].
const fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let year_of_era = year % 400;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    year / 400 * 146_097 + of_era - 719_468
}
