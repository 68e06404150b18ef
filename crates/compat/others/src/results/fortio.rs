//! fortio's JSON, also as Nighthawk writes it.

use serde_json::Value;
use stillwell_metric::Unit;
use stillwell_plan::goal::Direction;

use super::{Figure, FigureUnit, number, quantile_name};

/// The numbers of the run, or what is missing.
pub(super) fn figures(result: &Value) -> Result<Vec<Figure>, &'static str> {
    let histogram = result
        .get("DurationHistogram")
        .filter(|histogram| histogram.is_object());
    let histogram = histogram.ok_or("object `DurationHistogram`")?;
    let mut figures = Vec::new();
    let mut push = |name: String, unit, better, shown, value: Option<f64>| {
        figures.extend(value.map(|value| Figure {
            name,
            unit,
            better,
            shown,
            value,
        }));
    };
    let rate = result.get("ActualQPS").and_then(number);
    let higher = Some(Direction::HigherIsBetter);
    let name = "requests_per_second".to_owned();
    push(name, FigureUnit::COUNT_PER_SECOND, higher, true, rate);
    let times = FigureUnit::of(Unit::Nanoseconds);
    let lower = Some(Direction::LowerIsBetter);
    let percentiles = histogram.get("Percentiles").and_then(Value::as_array);
    let percentiles = percentiles.map_or_else(Vec::new, |entries| fortio_percentiles(entries));
    for (share, seconds) in percentiles {
        if (0.0..=1.0).contains(&share) {
            let value = seconds.map(|seconds| seconds * 1e9);
            let shown = share >= 0.499;
            push(quantile_name("latency_", share), times, lower, shown, value);
        }
    }
    for (name, key) in [
        ("mean", "Avg"),
        ("min", "Min"),
        ("max", "Max"),
        ("pstdev", "StdDev"),
    ] {
        let value = histogram
            .get(key)
            .and_then(number)
            .map(|seconds| seconds * 1e9);
        push(
            format!("latency_{name}"),
            times,
            lower,
            name == "mean",
            value,
        );
    }
    let ratio = FigureUnit::of(Unit::Ratio);
    push("errors".to_owned(), ratio, lower, true, errors(result));
    if figures.is_empty() {
        return Err("figures in `DurationHistogram`");
    }
    Ok(figures)
}

/// Returns the shares (0 to 1) and seconds of fortio's `Percentiles`. Nighthawk of early 2020 wrote shares
/// such as 0.5 in place of 50.
#[must_use]
pub fn fortio_percentiles(entries: &[Value]) -> Vec<(f64, Option<f64>)> {
    let percentiles = entries.iter().filter_map(|entry| {
        let percentile = entry.get("Percentile").and_then(number)?;
        Some((percentile, entry.get("Value").and_then(number)))
    });
    let mut percentiles: Vec<_> = percentiles.collect();
    if percentiles.iter().any(|(percentile, _)| *percentile > 1.0) {
        for (percentile, _) in &mut percentiles {
            *percentile /= 100.0;
        }
    }
    percentiles
}

/// Returns true if a key of fortio's `RetCodes` counts successes: a status of 2xx or 3xx, as in the results of
/// other tools, or a name, which gRPC, TCP and UDP have.
#[must_use]
pub fn is_fortio_success(code: &str) -> bool {
    code.starts_with(['2', '3']) || code == "SERVING" || code == "OK"
}

/// Returns the share of responses with an error code; Nighthawk reports only successful ones.
fn errors(result: &Value) -> Option<f64> {
    let codes = result.get("RetCodes")?.as_object()?;
    let (mut good, mut all) = (0.0, 0.0);
    for (code, count) in codes {
        let count = number(count)?;
        all += count;
        if is_fortio_success(code) {
            good += count;
        }
    }
    // Good codes alone prove nothing: Nighthawk reports only these.
    (all > 0.0 && (codes.len() > 1 || good < all)).then(|| 1.0 - good / all)
}
