//! Nighthawk's JSON: `Output` of its API, with `results[]` for each worker and
//! for all of them together.

use serde_json::Value;
use stillwell_metric::{Outcome, Unit};
use stillwell_plan::goal::Direction;

use super::{Figure, FigureUnit, number, quantile_name};

/// Time from sending a request to the end of its response.
const REQUEST: &str = "benchmark_http_client.request_to_response";
/// The result of all workers together.
const GLOBAL: &str = "global";
/// Quantiles that are reported. A file's list holds others; the first entry at or above each of these counts.
const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// Counters of Nighthawk, and the outcome of the requests that they count.
pub const NIGHTHAWK_OUTCOMES: [(&str, Outcome); 9] = [
    ("benchmark.http_2xx", Outcome::Ok),
    ("benchmark.http_3xx", Outcome::Status3xx),
    ("benchmark.http_4xx", Outcome::Status4xx),
    ("benchmark.http_5xx", Outcome::Status5xx),
    ("benchmark.http_xxx", Outcome::StatusOther),
    ("benchmark.http_1xx", Outcome::StatusOther),
    ("benchmark.stream_resets", Outcome::PeerClosed),
    ("benchmark.pool_connection_failure", Outcome::ConnectFailed),
    ("benchmark.pool_overflow", Outcome::Dropped),
];

/// The numbers of the run, or what is missing.
pub(super) fn figures(output: &Value) -> Result<Vec<Figure>, &'static str> {
    let results = output.get("results").and_then(Value::as_array);
    let results = results.ok_or("`results`")?;
    let named = |result: &&Value| result.get("name").and_then(Value::as_str) == Some(GLOBAL);
    let result = results.iter().find(named);
    let result = match (result, results.as_slice()) {
        (Some(global), _) => global,
        (None, [only]) => only,
        (None, _) => return Err("result named `global`"),
    };
    let mut figures = Vec::new();
    let seconds = result.get("execution_duration").and_then(duration);
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    let counters = list(result, "counters");
    figures.extend(throughput(counters, seconds));
    let statistics = list(result, "statistics");
    for statistic in statistics {
        figures.extend(statistic_figures(statistic));
    }
    figures.extend(errors(counters));
    for counter in counters {
        let name = counter.get("name").and_then(Value::as_str);
        let value = counter.get("value").and_then(number);
        if let (Some(name), Some(value)) = (name, value) {
            figures.extend(counter_figures(name, value, seconds));
        }
    }
    // Response times are behind throughput, independent of their place in the file.
    figures.sort_by_key(|figure| !figure.shown);
    if figures.is_empty() {
        return Err("statistics and counters");
    }
    Ok(figures)
}

fn list<'v>(result: &'v Value, key: &str) -> &'v [Value] {
    let list = result.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Requests a second.
fn throughput(counters: &[Value], seconds: Option<f64>) -> Option<Figure> {
    let requests = count_of(counters, "upstream_rq_total");
    let requests = requests.or_else(|| count_of(counters, "benchmark.http_2xx"))?;
    Some(Figure {
        name: "requests_per_second".to_owned(),
        unit: FigureUnit::COUNT_PER_SECOND,
        better: Some(Direction::HigherIsBetter),
        shown: true,
        value: requests / seconds?,
    })
}

/// Returns the share of requests that failed, if their outcomes are counted.
fn errors(counters: &[Value]) -> Option<Figure> {
    let (mut bad, mut all) = (0.0, 0.0);
    for (name, outcome) in NIGHTHAWK_OUTCOMES {
        // Nighthawk leaves out counters of 0.
        let count = count_of(counters, name).unwrap_or(0.0);
        all += count;
        if !matches!(outcome, Outcome::Ok | Outcome::Status3xx) {
            bad += count;
        }
    }
    (all > 0.0).then(|| Figure {
        name: "errors".to_owned(),
        unit: FigureUnit::of(Unit::Ratio),
        better: Some(Direction::LowerIsBetter),
        shown: true,
        value: bad / all,
    })
}

fn count_of(counters: &[Value], name: &str) -> Option<f64> {
    let named = |counter: &&Value| counter.get("name").and_then(Value::as_str) == Some(name);
    counters.iter().find(named)?.get("value").and_then(number)
}

fn counter_figures(name: &str, value: f64, seconds: Option<f64>) -> Vec<Figure> {
    let figure = |name: String, unit, value| Figure {
        name,
        unit,
        better: None,
        shown: false,
        value,
    };
    let mut figures = vec![figure(name.to_owned(), FigureUnit::of(Unit::Count), value)];
    if let Some(seconds) = seconds {
        let name = format!("{name}:rate");
        figures.push(figure(name, FigureUnit::COUNT_PER_SECOND, value / seconds));
    }
    figures
}

/// Returns mean, extremes and quantiles of a statistic with samples.
fn statistic_figures(statistic: &Value) -> Vec<Figure> {
    let id = statistic.get("id").and_then(Value::as_str).unwrap_or("");
    let count = statistic.get("count").and_then(number).unwrap_or(0.0);
    if id.is_empty() || count <= 0.0 {
        return Vec::new();
    }
    let prefix = if id == REQUEST {
        "latency_".to_owned()
    } else {
        format!("{id}.")
    };
    let mut figures = Vec::new();
    let mut push = |name: String, (value, unit): (f64, Unit), shown: bool| {
        figures.push(Figure {
            name,
            unit: FigureUnit::of(unit),
            better: (unit == Unit::Nanoseconds).then_some(Direction::LowerIsBetter),
            shown: shown && id == REQUEST,
            value,
        });
    };
    let entries = list(statistic, "percentiles");
    for quantile in QUANTILES {
        let reaches = |entry: &&Value| {
            let percentile = entry.get("percentile").and_then(number);
            percentile.is_some_and(|percentile| percentile >= quantile)
        };
        let entry = entries.iter().find(reaches);
        if let Some(value) = entry.and_then(|entry| time_or_raw(entry, "duration", "raw_value")) {
            let shown = [0.5, 0.9, 0.99, 0.999]
                .iter()
                .any(|reported| (reported - quantile).abs() < 1e-9);
            push(quantile_name(&prefix, quantile), value, shown);
        }
    }
    for (name, key, shown) in [
        ("mean", "mean", true),
        ("min", "min", false),
        ("max", "max", false),
        ("pstdev", "pstdev", false),
    ] {
        if let Some(value) = time_or_raw(statistic, key, &format!("raw_{key}")) {
            push(format!("{prefix}{name}"), value, shown);
        }
    }
    figures
}

/// A time in nanoseconds, or else a plain number.
fn time_or_raw(value: &Value, time: &str, raw: &str) -> Option<(f64, Unit)> {
    let time = value.get(time).and_then(duration);
    let raw = || value.get(raw).and_then(number);
    time.map(|seconds| (seconds * 1e9, Unit::Nanoseconds))
        .or_else(|| raw().map(|value| (value, Unit::Unknown)))
}

/// A length of time as JSON writes those of protocol buffers: `0.002s`.
fn duration(value: &Value) -> Option<f64> {
    let seconds: f64 = value.as_str()?.strip_suffix('s')?.parse().ok()?;
    seconds.is_finite().then_some(seconds)
}
