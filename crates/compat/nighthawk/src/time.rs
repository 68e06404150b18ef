//! Times in the JSON form of protocol buffers: `"0.000195s"` and
//! `"2020-10-21T21:28:12.690578Z"`.

use jiff::Timestamp;
use jiff::tz::Offset;
use stillwell_units::Nanos;

const SECOND: u64 = 1_000_000_000;

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
    let time = Timestamp::from_nanosecond(i128::from(nanoseconds))
        .expect("64 bits of nanoseconds end in the year 2554");
    let date = Offset::UTC.to_datetime(time).strftime("%Y-%m-%dT%H:%M:%S");
    format!("{date}{}Z", fraction(nanoseconds % SECOND))
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
    let time: Timestamp = text.parse().ok()?;
    u64::try_from(time.as_nanosecond()).ok().map(Nanos::new)
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
