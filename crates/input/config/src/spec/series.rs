//! Series as goals.

use stillwell_metric::{Kind, catalogue};
use stillwell_plan::check::{Aggregation, SeriesSelector};
use stillwell_plan::goal::{Reduction, SeriesGoal};
use stillwell_text::{Node, Reader, Span, code, nearest};

/// Beginning of the names of series that the target exports.
const SCRAPED: &str = "target/";

pub(super) fn is_scraped(metric: &str) -> bool {
    metric.starts_with(SCRAPED)
}

/// `name` or `name['id']`, a series that can be there.
pub(super) fn read(reader: &Reader, node: &Node, reduction: Reduction) -> Option<SeriesGoal> {
    let text = reader.text(node)?;
    let Some(series) = parse_series(text) else {
        let message = format!("`{text}` does not name a series");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write `name` or `name['id']`"));
        return None;
    };
    if series.aggregation == Aggregation::Mean {
        let message = "the name of a series does not contain its reduction";
        let error = reader.error(code::BAD_VALUE, node.span, message);
        let instead = format!("write `series: {}, reduce: mean`", series.metric);
        reader.report(error.label(instead));
        return None;
    }
    let mut known = catalogue::ALL.iter().map(|metric| metric.name);
    if !is_scraped(&series.metric) && !known.any(|name| name == series.metric) {
        report_unknown(reader, node.span, &series.metric);
        return None;
    }
    Some(SeriesGoal {
        metric: series.metric,
        id: series.id,
        reduction,
    })
}

fn report_unknown(reader: &Reader, span: Span, name: &str) {
    let message = format!("no series is called `{name}`");
    let mut error = reader.error(code::UNKNOWN_WORD, span, message);
    let known = catalogue::ALL.iter().map(|metric| metric.name);
    if let Some(near) = nearest(name, known) {
        error = error.label(format!("did you mean `{near}`?"));
    }
    let scraped = format!("a series that is scraped from the target is called `{SCRAPED}{name}`");
    reader.report(error.help(scraped));
}

/// Reports a reduction that does not fit such a series: `reduce` is at `span`.
pub(super) fn check_reduction(reader: &Reader, goal: &SeriesGoal, span: Span) -> Option<()> {
    let mut known = catalogue::ALL.iter();
    let Some(metric) = known.find(|metric| metric.name == goal.metric) else {
        // The type of a series that the target exports is known only later.
        return Some(());
    };
    let help = match (metric.kind, goal.reduction) {
        (Kind::Counter, Reduction::PerEvent | Reduction::Rate)
        | (Kind::Gauge, Reduction::Mean | Reduction::Peak) => return Some(()),
        (Kind::Counter, _) => "a counter only grows: write `rate` or `per_event`",
        (Kind::Gauge, _) => "a gauge goes up and down: write `mean` or `peak`",
        (Kind::Histogram, _) => "times have their own goals, such as `latency_p99`",
    };
    let message = format!("`{}` cannot be reduced that way", goal.metric);
    let error = reader.error(code::BAD_VALUE, span, message);
    let kind = format!("it is a {}", metric.kind.name());
    reader.report(error.label(kind).help(help));
    None
}

/// A series as `name`, `name['id']`, or either within `avg(…)`.
#[must_use]
pub fn parse_series(text: &str) -> Option<SeriesSelector> {
    let text = text.trim();
    let averaged = text
        .strip_prefix("avg(")
        .and_then(|rest| rest.strip_suffix(')'));
    let (text, aggregation) = match averaged {
        Some(inner) => (inner.trim(), Aggregation::Mean),
        None => (text, Aggregation::Each),
    };
    let (metric, id) = match text.split_once('[') {
        Some((metric, rest)) => {
            let inner = rest.strip_suffix(']')?.trim();
            let quoted = |quote| inner.strip_prefix(quote)?.strip_suffix(quote);
            let id = quoted('\'').or_else(|| quoted('"'))?;
            (metric.trim(), Some(id.to_owned()))
        }
        None => (text, None),
    };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | ':' | '-');
    if metric.is_empty() || !metric.chars().all(is_name) {
        return None;
    }
    // Its name in older files.
    let metric = if metric == "lost_bytes" {
        "missed_bytes"
    } else {
        metric
    };
    Some(SeriesSelector {
        metric: metric.to_owned(),
        id,
        aggregation,
    })
}
