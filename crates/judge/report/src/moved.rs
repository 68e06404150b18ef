//! What else changed beside a goal, as rows.

use stillwell_verdict::{ExperimentVerdict, Moved};

use crate::honesty::probability;
use crate::words;

/// The heads of the rows.
pub(crate) const HEADS: [&str; 6] = [
    "what else moved",
    "baseline",
    "comparison",
    "change",
    "at least",
    "p adjusted",
];

/// The first `limit` rows, surest and largest first.
pub(crate) fn rows(experiment: &ExperimentVerdict, limit: usize) -> Vec<[String; 6]> {
    let several = experiment.variants.len() > 2;
    let moved = experiment.moved.iter().take(limit);
    moved.map(|own| row(own, several)).collect()
}

/// What the rows are to be read as; `None` where nothing was looked for.
pub(crate) fn legend(experiment: &ExperimentVerdict, limit: usize) -> Option<String> {
    if experiment.moved_of == 0 {
        return None;
    }
    let series = words::counted(experiment.moved_of, "series", "series");
    if experiment.moved.is_empty() {
        return Some(format!("none of {series} surely moved with it"));
    }
    let more = experiment.moved.len().saturating_sub(limit);
    let more = if more > 0 {
        format!("; {more} more in the report's JSON form")
    } else {
        String::new()
    };
    Some(format!(
        "exploratory: of {series}, those that surely moved; one in ten of them may be chance{more}"
    ))
}

fn row(moved: &Moved, several: bool) -> [String; 6] {
    let name = if several {
        format!("{} ({})", moved.series, moved.comparison)
    } else {
        moved.series.clone()
    };
    [
        words::plain(&name),
        words::check_value(moved.baseline_mean, moved.unit),
        words::check_value(moved.comparison_mean, moved.unit),
        from_none(moved.change, words::signed_percent),
        from_none(moved.at_least, words::percent),
        probability(moved.p_adjusted),
    ]
}

/// A share, or a word where the baseline has none of it.
fn from_none(share: f64, shown: fn(f64) -> String) -> String {
    if share.is_finite() {
        shown(share)
    } else {
        "from none".to_owned()
    }
}
