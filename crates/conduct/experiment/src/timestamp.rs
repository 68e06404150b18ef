//! Times in names of folders.

use jiff::Timestamp;
use jiff::tz::Offset;

/// Returns a UTC time such as `20261121-104500`, from seconds since 1970. Times after the year
/// 9999 are its end.
#[must_use]
pub fn timestamp(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    Offset::UTC
        .to_datetime(time)
        .strftime("%Y%m%d-%H%M%S")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "19700101-000000"),
            (951_782_400, "20000229-000000"),
            (951_868_800, "20000301-000000"),
            (1_700_000_000, "20231114-221320"),
            (4_107_542_399, "21000228-235959"),
            (4_107_542_400, "21000301-000000"),
        ] {
            assert_eq!(timestamp(seconds), expected);
        }
    }
}
