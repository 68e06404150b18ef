//! The `date` header.

use std::time::{Duration, UNIX_EPOCH};

use httpdate::fmt_http_date;
use stillwell_units::Nanos;

/// Length of a date in bytes.
pub(crate) const DATE_BYTES: usize = 29;

/// The date of the last requested second.
#[derive(Debug, Default)]
pub(crate) struct Date {
    second: Option<u64>,
    text: String,
}

impl Date {
    /// The date at `wall`, counted from 1970: 29 bytes until the year 9999.
    pub(crate) fn at(&mut self, wall: Nanos) -> &str {
        let second = wall.as_u64() / 1_000_000_000;
        if self.second != Some(second) {
            self.second = Some(second);
            self.text = fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (second, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_827_696, "Tue, 29 Feb 2000 12:34:56 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (1_735_689_600, "Wed, 01 Jan 2025 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            let mut date = Date::default();
            assert_eq!(date.at(Nanos::from_secs(second)), text);
            assert_eq!(text.len(), DATE_BYTES);
        }
    }
}
