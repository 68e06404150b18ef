//! Times in names of folders.

/// Returns a UTC time such as `20261121-104500`, from seconds since 1970.
#[must_use]
pub fn timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}{month:02}{day:02}-{:02}{:02}{:02}",
        rest / 3600,
        rest % 3600 / 60,
        rest % 60
    )
}

/// The date that lies `days` after 1970-01-01, in the Gregorian calendar: years
/// are counted from March, so that the leap day is the last of its year.
const fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
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
