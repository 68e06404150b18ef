//! Changes beside those of the goals, for readers who look for the cause.

use std::borrow::Cow;

use stillwell_verdict::{ExperimentVerdict, Moved};

use super::caveats::probability;
use crate::document::{Block, Cell, Table, Text};
use crate::words;

const HEADS: [&str; 6] = [
    "other changed series",
    "baseline",
    "comparison",
    "change",
    "likely at least",
    "p (corrected)",
];

/// Returns the first `limit` rows, surest and largest first, and how to read them; nothing where nothing was
/// looked for.
pub(super) fn blocks(experiment: &ExperimentVerdict, limit: usize) -> Vec<Block> {
    let Some(legend) = legend(experiment, limit) else {
        return Vec::new();
    };
    let legend = Text::dim(legend);
    if experiment.moved.is_empty() {
        return vec![Block::Paragraph(legend)];
    }
    let several = experiment.variants.len() > 2;
    let moved = experiment.moved.iter().take(limit);
    let table = Table::new(
        HEADS.map(|name| super::column(name, experiment)),
        moved.map(|entry| row(entry, several)),
    );
    let note = Some(legend);
    vec![Block::Table(Table { note, ..table })]
}

/// Returns how to read the rows; `None` where nothing was looked for.
fn legend(experiment: &ExperimentVerdict, limit: usize) -> Option<String> {
    if experiment.moved_of == 0 {
        return None;
    }
    let series = words::counted(experiment.moved_of, "series", "series");
    if experiment.moved.is_empty() {
        return Some(format!(
            "no other metric changed significantly ({series} tested)"
        ));
    }
    let more = experiment.moved.len().saturating_sub(limit);
    let more = if more > 0 {
        format!("; {more} more in the report's JSON form")
    } else {
        String::new()
    };
    Some(format!(
        "exploratory: {series} tested; one in ten of these changes may be chance. `p (corrected)` allows for \
         their number, `likely at least` does not{more}"
    ))
}

/// Returns the name of a series without its component: its `id` says it.
fn short(series: &str) -> Cow<'_, str> {
    let short = || {
        let (metric, labels) = series.split_once("{component=")?;
        let (_, labels) = labels.split_once(",component_name=")?;
        let (_, labels) = labels.split_once(',')?;
        labels
            .starts_with("id=")
            .then(|| Cow::Owned(format!("{metric}{{{labels}")))
    };
    short().unwrap_or(Cow::Borrowed(series))
}

fn row(moved: &Moved, several: bool) -> Vec<Cell> {
    let name = short(&moved.series);
    let name = if several {
        format!("{name} ({})", moved.comparison)
    } else {
        name.into_owned()
    };
    let value = |value: f64| Cell::number(words::check_value(value, moved.unit), value, moved.unit);
    let share = |share: f64, shown: fn(f64) -> String| {
        Cell::number(from_none(share, shown), share, "share")
    };
    vec![
        name.into(),
        value(moved.baseline_mean),
        value(moved.comparison_mean),
        share(moved.change, words::signed_percent),
        share(moved.at_least, words::percent),
        probability(moved.p_adjusted).into(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::explained;

    /// F11: "likely at least" is a plain bound of series that were selected by their p.
    #[test]
    fn f11_lower_bounds_of_selected_series_are_reported_as_not_corrected() {
        let text = legend(&explained(), 5).unwrap();
        assert!(text.starts_with("exploratory: "), "{text}");
        assert!(text.contains("`likely at least` does not"), "{text}");
    }

    #[test]
    fn columns_of_two_variants_have_their_names() {
        let experiment = ExperimentVerdict {
            variants: vec!["A".to_owned(), "B".to_owned()],
            ..explained()
        };
        let titles = HEADS.map(|name| crate::suite::column(name, &experiment).head().to_owned());
        assert_eq!(titles[1..3], ["A", "B"]);
    }

    #[test]
    fn a_series_with_an_id_is_named_without_its_component() {
        for (series, name) in [
            (
                "sent{component=generator,component_name=requests,id=web,route=GET /,worker=0}:rate",
                "sent{id=web,route=GET /,worker=0}:rate",
            ),
            (
                "read{component=sink,component_name=http}:rate",
                "read{component=sink,component_name=http}:rate",
            ),
            (
                "read{component=sink,component_name=http,worker=1}:rate",
                "read{component=sink,component_name=http,worker=1}:rate",
            ),
            (
                "worker_cpu{worker=gen-web-0}:rate",
                "worker_cpu{worker=gen-web-0}:rate",
            ),
            ("process_cpu:rate", "process_cpu:rate"),
        ] {
            assert_eq!(short(series), name);
        }
    }
}
