//! Results of `stillwell load`: the summary as JSON and CSV, and the full result.

use serde_json::{Map, Value};
use stillwell_metric::Unit;
use stillwell_plan::goal::Direction;

use super::{Figure, FigureUnit, ResultError, number};

/// Beginning of the schema name of summaries.
const SUMMARY: &str = "stillwell/load-summary/";
/// Beginning of the schema name of full results.
const FULL: &str = "stillwell/load/";
/// Outcomes that are no errors; those under way at the end are neither.
const NO_ERRORS: [&str; 3] = ["ok", "status_3xx", "unfinished"];
/// Quantiles: their names, and their keys in both forms.
const QUANTILES: [(&str, &str, &str); 7] = [
    ("latency_p50", "p50", "p50"),
    ("latency_p75", "p75", ""),
    ("latency_p90", "p90", "p90"),
    ("latency_p95", "p95", ""),
    ("latency_p99", "p99", "p99"),
    ("latency_p999", "p99.9", "p999"),
    ("latency_mean", "mean", ""),
];

/// Returns true if `value` is a result of `stillwell load`.
pub(super) fn is_load(value: &Value) -> bool {
    let schema = value.get("schema").and_then(Value::as_str);
    schema.is_some_and(|schema| schema.starts_with(SUMMARY) || schema.starts_with(FULL))
}

/// Returns true if `text` begins like a result of `stillwell load` as CSV, whose rows are sorted.
pub(super) fn is_csv(text: &str) -> bool {
    let start = text.strip_prefix("name,value\n");
    start.is_some_and(|rows| rows.starts_with("bytes_received,"))
}

/// Keys whose values are lists.
const LISTS: [&str; 3] = ["targets", "routes", "warnings"];
/// Last keys of texts; a seed may look like a number.
const TEXTS: [&str; 10] = [
    "schema",
    "version",
    "command",
    "seed",
    "protocol",
    "validity",
    "ended_because",
    "name",
    "code",
    "text",
];

/// Reads a summary that was written as CSV, a name and a value in each line, as its JSON. Keys of one
/// level are joined by points. Returns `null` if `text` is something else.
///
/// # Errors
/// [`ResultError::ListRow`] for a value in a list that is not at a number.
pub(super) fn of_csv(text: &str) -> Result<Value, ResultError> {
    let mut all = Map::new();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    // Stillwell writes only lines that are pairs.
    for row in reader.records().flatten() {
        let (Some(name), Some(cell)) = (row.get(0), row.get(1)) else {
            continue;
        };
        let keys = keys_of(name);
        if lacks_number(&keys) {
            let name = name.to_owned();
            return Err(ResultError::ListRow { name });
        }
        let value = match (keys.first(), keys.last()) {
            (Some(first), _) if first == "targets" => Value::String(cell.to_owned()),
            (_, Some(last)) if TEXTS.contains(&last.as_str()) => Value::String(cell.to_owned()),
            _ => serde_json::from_str(cell).unwrap_or_else(|_| Value::String(cell.to_owned())),
        };
        if insert(&mut all, &keys, value).is_none() {
            return Ok(Value::Null);
        }
    }
    for list in LISTS {
        if let Some(Value::Object(items)) = all.get(list) {
            let place = |(key, _): &(&String, &Value)| key.parse::<usize>().ok();
            let mut items: Vec<_> = items.iter().collect();
            items.sort_by_key(place);
            let items = items.into_iter().map(|(_, item)| item.clone()).collect();
            all.insert(list.to_owned(), Value::Array(items));
        }
    }
    Ok(Value::Object(all))
}

/// Returns true if `keys` are those of a value in a list, without its number there.
fn lacks_number(keys: &[String]) -> bool {
    let [list, number, ..] = keys else {
        return false;
    };
    LISTS.contains(&list.as_str()) && number.parse::<usize>().is_err()
}

/// Inserts a value below its keys; `None` if a name is both a value and a group.
fn insert(all: &mut Map<String, Value>, keys: &[String], value: Value) -> Option<()> {
    let (last, keys) = keys.split_last()?;
    let mut map = all;
    for key in keys {
        let below = map.entry(key.clone());
        let below = below.or_insert_with(|| Value::Object(Map::new()));
        map = below.as_object_mut()?;
    }
    map.insert(last.clone(), value);
    Some(())
}

/// The keys in a name; that of the 99.9th percentile has a point itself.
fn keys_of(name: &str) -> Vec<String> {
    let (name, last) = match name.strip_suffix(".p99.9") {
        Some(name) => (name, Some("p99.9")),
        None => (name, None),
    };
    name.split('.').chain(last).map(str::to_owned).collect()
}

/// The numbers of the run, or what is missing.
pub(super) fn figures(value: &Value) -> Result<Vec<Figure>, &'static str> {
    let schema = value.get("schema").and_then(Value::as_str);
    let is_summary = schema.is_some_and(|schema| schema.starts_with(SUMMARY));
    let rate = match is_summary {
        true => value.get("requests_per_second"),
        false => value.pointer("/health/sent_per_second"),
    };
    let rate = rate.and_then(number).ok_or("rate of sent requests")?;
    let figure = |name: &str, unit, better, value| Figure {
        name: name.to_owned(),
        unit,
        better: Some(better),
        shown: true,
        value,
    };
    let mut figures = vec![figure(
        "requests_per_second",
        FigureUnit::COUNT_PER_SECOND,
        Direction::HigherIsBetter,
        rate,
    )];
    let times = FigureUnit::of(Unit::Nanoseconds);
    let lower = Direction::LowerIsBetter;
    for (name, in_summary, in_full) in QUANTILES {
        let nanoseconds = match is_summary {
            true => number(&value["latency"][in_summary]).map(|seconds| seconds * 1e9),
            false => latency(value).and_then(|latency| number(&latency[in_full])),
        };
        figures.extend(nanoseconds.map(|value| figure(name, times, lower, value)));
    }
    let errors = match is_summary {
        true => value.get("error_share").and_then(number),
        false => error_share(value),
    };
    let ratio = FigureUnit::of(Unit::Ratio);
    figures.extend(errors.map(|errors| figure("errors", ratio, lower, errors)));
    for route in routes(value) {
        let Some(name) = route.get("name").and_then(Value::as_str) else {
            continue;
        };
        for (metric, key) in [("latency_p50", "p50"), ("latency_p99", "p99")] {
            let nanoseconds = number(&route["latency"][key]).map(|seconds| seconds * 1e9);
            let metric = format!("{metric}['{name}']");
            figures.extend(nanoseconds.map(|value| figure(&metric, times, lower, value)));
        }
        let errors = route.get("error_share").and_then(number);
        let metric = format!("error_share['{name}']");
        figures.extend(errors.map(|errors| figure(&metric, ratio, lower, errors)));
    }
    Ok(figures)
}

/// The routes of a summary.
fn routes(value: &Value) -> Vec<&Value> {
    match value.get("routes") {
        Some(Value::Array(routes)) => routes.iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the histogram of latencies of a full result.
fn latency(value: &Value) -> Option<&Value> {
    let statistics = value.pointer("/global/statistics")?.as_array()?;
    let mut statistics = statistics.iter();
    let statistic = statistics.find(|statistic| statistic["id"] == "stillwell.response_time")?;
    statistic.get("histogram")
}

/// Returns the share of requests that ended badly, of a full result.
fn error_share(value: &Value) -> Option<f64> {
    let (mut errors, mut all) = (0.0, 0.0);
    for outcome in value.pointer("/global/outcomes")?.as_array()? {
        let name = outcome.get("outcome")?.as_str()?;
        let count = number(outcome.get("count")?)?;
        if !NO_ERRORS.contains(&name) {
            errors += count;
        }
        if name != "unfinished" {
            all += count;
        }
    }
    (all > 0.0).then(|| errors / all)
}
