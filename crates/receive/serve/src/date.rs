//! The `date` header.

use stillwell_units::Nanos;

/// Length of a date in bytes.
pub(crate) const DATE_BYTES: usize = 29;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

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
            self.text = written(second);
        }
        &self.text
    }
}

fn written(second: u64) -> String {
    let (days, rest) = (second / 86_400, second % 86_400);
    let weekday = DAYS[usize::try_from(days % 7).unwrap_or(0)];
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    // Years that begin in March, so that the odd day comes last; 400 of them
    // have always the same days.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leaps = day_of_era / 1460 + day_of_era / 146_096;
    let year_of_era = (day_of_era + day_of_era / 36_524 - leaps) / 365;
    let before = 365 * year_of_era + year_of_era / 4 - year_of_era / 100;
    let day_of_year = day_of_era - before;
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = MONTHS[usize::try_from((month_from_march + 2) % 12).unwrap_or(0)];
    let year = era * 400 + year_of_era + u64::from(month_from_march >= 10);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
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
