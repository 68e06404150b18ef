//! Distinguishes the seconds of one run from runs.
//!
//! Seconds of one run are not independent, and the differences between runs are missing in them. A test over
//! seconds calls most comparisons of a program with itself significant. If rows look like seconds, the report
//! gives the reason instead of a result.

use std::collections::BTreeSet;

/// Names of columns that count the beats of one run.
const BEATS: [&str; 7] = [
    "second",
    "seconds",
    "sec",
    "secs",
    "tick",
    "fetch_index",
    "elapsed",
];
/// Names of columns with times.
const TIMES: [&str; 7] = [
    "time",
    "timestamp",
    "epoch",
    "unix_time",
    "date",
    "datetime",
    "ts",
];
/// Names of columns that identify a run.
const RUNS: [&str; 8] = [
    "run",
    "run_id",
    "replicate",
    "replica",
    "invocation",
    "pair",
    "iteration",
    "trial",
];

/// Smallest number of rows for a check of evenness.
const EVEN_ROWS_MIN: usize = 8;
/// Longest step between rows, in seconds, that no run fits into.
const STEP_SECONDS_MAX: f64 = 10.0;
/// Smallest number of values for a check of correlation.
const FOLLOWING_MIN: usize = 30;
/// Limit on the correlation in standard errors: exceeded once in 4,000 columns of independent runs.
const FOLLOWING_ERRORS: f64 = 3.5;

/// Returns true if a column of this name identifies the row.
pub(super) fn is_key(name: &str) -> bool {
    let name = plain(name);
    let name = name.as_str();
    BEATS.contains(&name) || TIMES.contains(&name) || RUNS.contains(&name)
}

/// Returns the reason from the columns of keys why the rows of a table are not runs.
pub(super) fn reason_from_keys<'t>(
    keys: impl Iterator<Item = (&'t str, &'t [String])>,
) -> Option<String> {
    let mut keys = keys;
    keys.find_map(|(name, cells)| {
        let key = plain(name);
        let key = key.as_str();
        if RUNS.contains(&key) {
            return repeats(cells)
                .then(|| format!("column `{name}` holds the same run in several rows"));
        }
        let numbers: Option<Vec<f64>> = cells.iter().map(|cell| cell.parse().ok()).collect();
        let numbers = numbers?;
        let rises = numbers.len() >= 3 && numbers.windows(2).all(|pair| pair[1] > pair[0]);
        if BEATS.contains(&key) && rises {
            return Some(format!("column `{name}` counts the seconds of one run"));
        }
        let step = even_step(&numbers)?;
        (step <= STEP_SECONDS_MAX).then(|| {
            format!(
                "column `{name}` increases in even steps of {step} s: those are samples of one run"
            )
        })
    })
}

/// Returns the reason from the correlation of successive values why they are not one per run.
pub(super) fn follow_one_another(values: &[f64]) -> Option<String> {
    if values.len() < FOLLOWING_MIN {
        return None;
    }
    let count = values.iter().fold(0.0, |count, _| count + 1.0);
    let mean = values.iter().sum::<f64>() / count;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let product = values
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean));
    let correlation = product.sum::<f64>() / square;
    let limit = FOLLOWING_ERRORS / count.sqrt();
    (correlation.is_finite() && correlation > limit).then(|| {
        format!(
            "its {} values are autocorrelated ({correlation:.2} from each to the next), as the \
             seconds of one run are",
            values.len()
        )
    })
}

fn plain(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    // `time (s)`, `elapsed_s` and the like.
    let name = name.split(['(', '[']).next().unwrap_or_default().trim();
    let name = name.strip_suffix("_s").unwrap_or(name);
    name.replace(' ', "_")
}

fn repeats(cells: &[String]) -> bool {
    let mut names = BTreeSet::new();
    !cells.iter().all(|cell| names.insert(cell.as_str()))
}

/// The step in seconds of numbers that rise evenly, as clocks do.
fn even_step(numbers: &[f64]) -> Option<f64> {
    if numbers.len() < EVEN_ROWS_MIN {
        return None;
    }
    let mut steps: Vec<f64> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable_by(f64::total_cmp);
    let middle = *steps.get(steps.len() / 2)?;
    let (least, most) = (*steps.first()?, *steps.last()?);
    let even = middle > 0.0 && least > 0.8 * middle && most < 1.2 * middle;
    // Clocks of this century, in seconds, milliseconds, microseconds and
    // nanoseconds; smaller numbers are seconds since some start.
    let scale = match numbers.first()?.abs() {
        size if size > 1e17 => 1e9,
        size if size > 1e14 => 1e6,
        size if size > 1e11 => 1e3,
        _ => 1.0,
    };
    even.then_some(middle / scale)
}
