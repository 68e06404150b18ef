//! Checks a capture by lading's own rules.
//!
//! Each `fetch_index` has exactly one time. In each series (a metric with its labels) both increase from row to
//! row. The number of different times is at least the requested one.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use stillwell_metric::Labels;

use super::{LadingError, LadingRow, visit_lading};

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validity {
    /// Rows read.
    pub rows: u64,
    /// Series, of all runs together.
    pub series: usize,
    /// Different ticks, of all runs together.
    pub ticks: usize,
    /// Different times.
    pub times: usize,
    /// Number of ticks with a second time.
    pub mapping_violations: u64,
    /// Number of rows that do not increase.
    pub series_violations: u64,
    /// The first thing that was wrong.
    pub first: Option<Violation>,
    /// Requested number of different times, if there are fewer.
    pub times_wanted: Option<u64>,
    /// Reason for a missing end, if the writer was killed.
    pub cut: Option<String>,
}

/// One row that breaks a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// Its number, from 1.
    pub row: u64,
    /// Description of the problem.
    pub problem: String,
}

impl Validity {
    /// The capture is valid.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.first.is_none() && self.times_wanted.is_none()
    }

    /// Returns the broken rules, each with the number of violations.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let rules = [
            (self.mapping_violations, "ticks with more than one time"),
            (
                self.series_violations,
                "rows whose fetch_index or time does not increase within their series",
            ),
        ];
        let broken = rules.into_iter().filter(|(count, _)| *count > 0);
        let mut problems: Vec<String> = broken
            .map(|(count, rule)| format!("{count} {rule}"))
            .collect();
        if let Some(wanted) = self.times_wanted {
            problems.push(format!("{} different times, not {wanted}", self.times));
        }
        problems
    }
}

/// The sizes of the capture.
impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rows, {} series, {} ticks, {} times",
            self.rows, self.series, self.ticks, self.times
        )
    }
}

/// Checks the capture at `path`, which should have at least `times_min` different times.
///
/// # Errors
/// [`LadingError`] if the capture cannot be read.
pub fn validate(path: &Path, times_min: Option<u64>) -> Result<Validity, LadingError> {
    let mut check = Check::default();
    let cut = visit_lading(path, &mut |row| check.row(row))?;
    let times = check.times.len();
    let enough = |wanted: &u64| (times as u64) >= *wanted;
    Ok(Validity {
        series: check.last.len(),
        ticks: check.time_of.len(),
        times,
        times_wanted: times_min.filter(|wanted| !enough(wanted)),
        cut,
        ..check.validity
    })
}

#[derive(Default)]
struct Check {
    validity: Validity,
    times: BTreeSet<u64>,
    /// The time of each tick of each run.
    time_of: BTreeMap<(String, u64), u64>,
    /// Tick and time of the last row of each series.
    last: BTreeMap<(String, String, Labels), (u64, u64)>,
}

impl Check {
    fn row(&mut self, row: LadingRow) {
        self.validity.rows += 1;
        self.times.insert(row.wall_millis);
        let (tick, time) = (row.tick, row.wall_millis);
        let known = *self
            .time_of
            .entry((row.run_id.clone(), tick))
            .or_insert(time);
        if known != time {
            self.validity.mapping_violations += 1;
            self.fail(format!("fetch_index {tick} is at {time} and at {known}"));
        }
        let problem = match self.last.entry((row.run_id, row.metric, row.labels)) {
            Entry::Vacant(place) => {
                place.insert((tick, time));
                return;
            }
            Entry::Occupied(mut place) => {
                let (tick_before, time_before) = place.insert((tick, time));
                let rises = tick > tick_before && time > time_before;
                (!rises).then(|| {
                    let (_, metric, _) = place.key();
                    format!(
                        "`{metric}` goes from fetch_index {tick_before} at {time_before} to \
                         {tick} at {time}"
                    )
                })
            }
        };
        if let Some(problem) = problem {
            self.validity.series_violations += 1;
            self.fail(problem);
        }
    }

    fn fail(&mut self, problem: String) {
        let row = self.validity.rows;
        self.validity
            .first
            .get_or_insert(Violation { row, problem });
    }
}
