//! Where things go that no flag places.

use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_scope::clock;

/// Results of `run` and `rig`, below the working directory.
pub(crate) const HOME: &str = ".stillwell";

/// A new folder below `kind`, named by the time and `name`, so that names sort
/// by age.
pub(crate) fn fresh(kind: &str, name: &str) -> PathBuf {
    let wall = clock::wall().as_u64() / 1_000_000_000;
    Path::new(HOME)
        .join(kind)
        .join(format!("{}-{name}", timestamp(wall)))
}

/// What results are called: the name of the first path.
pub(crate) fn name_of(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let stem = absolute.file_stem().unwrap_or_default();
    let name: String = stem
        .to_string_lossy()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect();
    match (name.as_str(), absolute.parent()) {
        ("experiment" | "lading" | "rig", Some(parent)) if parent.file_name().is_some() => {
            name_of(parent)
        }
        _ => name,
    }
}

/// Where builds are kept.
pub(crate) fn cache(given: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return std::path::absolute(given).context("find the cache folder");
    }
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or(home)
        .map(|folder| folder.join("stillwell"))
        .context("there is neither HOME nor XDG_CACHE_HOME: give --cache DIR")
}

/// A folder for the state of this process's runs: short, because it holds Unix
/// sockets, whose paths are.
pub(crate) fn state_root() -> PathBuf {
    std::env::temp_dir().join(format!("stillwell-{}", std::process::id()))
}

/// `20261121-104500`, UTC, from seconds since 1970.
pub(crate) fn timestamp(seconds: u64) -> String {
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

    #[test]
    fn results_are_named_after_what_was_run() {
        assert_eq!(name_of(Path::new("/suites/quick start")), "quick-start");
        assert_eq!(name_of(Path::new("/suites/relay/experiment.yaml")), "relay");
        assert_eq!(
            name_of(Path::new("/suites/case/lading/lading.yaml")),
            "case"
        );
    }
}
