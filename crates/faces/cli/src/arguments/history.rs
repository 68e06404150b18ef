//! Arguments of `stillwell history`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use jiff::civil::{self, Date, Time};
use stillwell_plan::GoalMetric;
use stillwell_units::{Nanos, Tolerance};

use super::count::{whole, within};

const NOTES: &str = "\
A change means that the level of a metric shifted. The cause may be the program, the
machine or the load. `stillwell bisect` compares the revisions around it and finds the
commit.

Exit codes:
  0  no primary goal is worse since its latest change, or there are too few results:
     fewer than 10 at an alarm rate of 1 %, or 8 at 5 %
  1  a primary goal, or a metric of --metric, is worse by its tolerance or more
  2  usage, or there are no results";

/// `stillwell history`.
#[derive(Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct HistoryArguments {
    /// Results folders of `run`, folders that contain them, or JSON files and captures of `load`
    /// [default: .stillwell/results]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Show only experiments with this name; `*` matches any text; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Metrics to show, named as for `run --goal` without a tolerance; repeatable
    /// [default: the goals of each experiment]
    #[arg(long, value_name = "GOAL")]
    pub(crate) metric: Vec<GoalMetric>,
    /// Earliest start of a result: a date such as 2026-11-21 or 2026-11-21T14:05 in UTC,
    /// or an age such as `30d` or `12h`
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<When>,
    /// Latest start of a result, in the same syntax
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<When>,
    /// Number of latest results of each experiment to show [default: all]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    pub(crate) last: Option<usize>,
    /// Test that detects changes
    #[arg(long, value_enum, default_value_t = HistoryMethod::Stillwell)]
    pub(crate) method: HistoryMethod,
    /// False alarm rate for each goal: the share of unchanged histories in which a change
    /// is reported [default: 1%]
    #[arg(long, value_name = "PERCENT", conflicts_with = "p_value")]
    pub(crate) alarm_rate: Option<Tolerance>,
    /// Maximum p value of a change, with --method otava [default: 0.001]
    #[arg(short = 'P', long, value_name = "P", value_parser = p_value)]
    pub(crate) p_value: Option<f64>,
    /// Results in a window, with --method otava [default: 50]
    #[arg(long, value_name = "N", value_parser = within::<usize>(0..))]
    pub(crate) window: Option<usize>,
    /// Smallest change to report, such as 2% [default: 0%]
    #[arg(short = 'M', long, value_name = "PERCENT")]
    pub(crate) magnitude: Option<Tolerance>,
    /// Print the numbers for another tool in place of a history
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) export: Option<Export>,
    /// Folder of an export: a table for each experiment, and the configuration that reads
    /// them [default: one table on standard output]
    #[arg(long, value_name = "DIR", requires = "export")]
    pub(crate) into: Option<PathBuf>,
    /// Name of the branch in the export
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) branch: String,
    /// Format on standard output
    #[arg(long, value_enum, default_value_t = HistoryOutput::Terminal, conflicts_with = "export")]
    pub(crate) format: HistoryOutput,
    /// Also write the history to FILE, in the format of its extension (.html, .md, .json,
    /// .txt); repeatable
    #[arg(short, long, value_name = "FILE", conflicts_with = "export")]
    pub(crate) output: Vec<PathBuf>,
    /// Exit with 0 even if a metric is worse
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

/// Tests that detect changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum HistoryMethod {
    /// A test with an exact false alarm rate.
    Stillwell,
    /// The test of Apache Otava 0.8.0.
    Otava,
}

/// Export formats.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Export {
    /// CSV as Apache Otava reads it.
    #[value(name = "otava-csv")]
    OtavaCsv,
}

/// Formats of a history.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum HistoryOutput {
    /// For people.
    Terminal,
    /// For a page or a comment.
    Markdown,
    /// For programs.
    Json,
    /// For a browser: one file with charts.
    Html,
    /// As `otava analyze --output json` prints it.
    OtavaJson,
    /// As `otava analyze --output regressions_only` prints it.
    RegressionsOnly,
}

/// A moment: a date, or a length of time before now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum When {
    /// Milliseconds since 1970.
    At(u64),
    /// A length of time before now.
    Ago(Nanos),
}

impl When {
    /// Returns milliseconds since 1970; `now_millis` is the current time.
    pub(crate) const fn millis(self, now_millis: u64) -> u64 {
        match self {
            Self::At(millis) => millis,
            Self::Ago(length) => now_millis.saturating_sub(length.as_u64() / 1_000_000),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(millis) = date_millis(text.trim()) {
            return Ok(Self::At(millis));
        }
        text.parse().map(Self::Ago).map_err(|_| {
            "give a date such as 2026-11-21 or 2026-11-21T14:05, or an age such as 30d".to_owned()
        })
    }
}

/// A Gregorian date of 1970 or later, with a time of day or without.
fn date_millis(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, time.trim_end_matches('Z')),
        None => (text, "00:00"),
    };
    let date = Date::strptime("%Y-%m-%d", date).ok()?;
    let time = Time::strptime("%H:%M", time).ok()?;
    let epoch = civil::date(1970, 1, 1).at(0, 0, 0, 0);
    let since_epoch = date.to_datetime(time).duration_since(epoch);
    u64::try_from(since_epoch.as_millis()).ok()
}

fn p_value(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok();
    value
        .filter(|value| *value > 0.0 && *value < 1.0)
        .ok_or_else(|| "give a number between 0 and 1, such as 0.001".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_or_lengths() {
        for (text, expected) in [
            ("1970-01-01", Some(When::At(0))),
            ("2000-02-29", Some(When::At(951_782_400_000))),
            ("2000-03-01", Some(When::At(951_868_800_000))),
            ("2026-11-21T14:05", Some(When::At(1_795_269_900_000))),
            ("2026-11-21 14:05", Some(When::At(1_795_269_900_000))),
            ("2100-02-29", None),
            ("2026-13-01", None),
            ("2026-11-21T24:00", None),
            ("30d", Some(When::Ago(Nanos::from_secs(30 * 86_400)))),
            ("yesterday", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
        assert_eq!(When::Ago(Nanos::from_secs(2)).millis(5000), 3000);
        assert_eq!(When::Ago(Nanos::from_secs(9)).millis(5000), 0);
    }
}
