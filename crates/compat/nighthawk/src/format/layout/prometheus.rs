//! Prometheus' text.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Output, Quantity, Statistic};
use stillwell_units::float_from_u64;

use super::pick;

/// A metric's lines by its name, in whose order they are printed.
type Families = BTreeMap<String, String>;

/// Returns every result, each with its `scope`; times are in whole microseconds.
pub(in crate::format) fn prometheus(output: &Output) -> String {
    let mut families = Families::new();
    let results = || output.results.iter();
    let counters: BTreeSet<&str> = results()
        .flat_map(|result| &result.counters)
        .map(|counter| &*counter.name)
        .collect();
    for name in counters {
        let of_result = results().filter_map(|result| {
            let counter = result
                .counters
                .iter()
                .find(|counter| counter.name == name)?;
            Some((escaped(&result.name), counter.value.to_string()))
        });
        add_counter(metric_name(name), of_result, &mut families);
    }
    let ids: BTreeSet<&str> = results()
        .flat_map(|result| &result.statistics)
        .filter(|statistic| statistic.count > 0 && !statistic.id.is_empty())
        .map(|statistic| &*statistic.id)
        .collect();
    for id in ids {
        let all = results().filter_map(|result| {
            let statistic = result
                .statistic(id)
                .filter(|statistic| statistic.count > 0)?;
            Some((escaped(&result.name), statistic))
        });
        add_statistic(&metric_name(id), &all.collect::<Vec<_>>(), &mut families);
    }
    families.into_values().collect()
}

fn add_counter(
    metric: String,
    values: impl Iterator<Item = (String, String)>,
    families: &mut Families,
) {
    let mut text = format!("# TYPE {metric} counter\n");
    for (scope, value) in values {
        text.push_str(&format!("{metric}{{scope=\"{scope}\"}} {value}\n"));
    }
    families.insert(metric, text);
}

/// Adds a summary, or counters where nothing has a quantile, and counters of what a summary lacks: Nighthawk declares
/// no gauges.
fn add_statistic(metric: &str, scopes: &[(String, &Statistic)], families: &mut Families) {
    let has_quantiles = |(_, statistic): &(String, &Statistic)| !pick::shown(statistic).is_empty();
    let mut counters = vec!["max", "mean", "min", "pstdev"];
    if scopes.iter().any(has_quantiles) {
        families.insert(metric.to_owned(), summary(metric, scopes));
    } else {
        counters.extend(["count", "sum"]);
    }
    for suffix in counters {
        let values = scopes.iter().map(|(scope, statistic)| {
            let value = match suffix {
                "count" => float_from_u64(statistic.count),
                "max" => number(statistic.max),
                "mean" => number(statistic.mean),
                "min" => number(statistic.min),
                "sum" => sum(statistic),
                _ => number(statistic.pstdev),
            };
            (scope.clone(), value.to_string())
        });
        add_counter(format!("{metric}_{suffix}"), values, families);
    }
}

fn summary(metric: &str, scopes: &[(String, &Statistic)]) -> String {
    let mut text = format!("# TYPE {metric} summary\n");
    for (scope, statistic) in scopes {
        for entry in pick::shown(statistic) {
            let (share, value) = (entry.percentile, number(entry.value));
            text.push_str(&format!(
                "{metric}{{scope=\"{scope}\",quantile=\"{share}\"}} {value}\n"
            ));
        }
        text.push_str(&format!(
            "{metric}_count{{scope=\"{scope}\"}} {}\n{metric}_sum{{scope=\"{scope}\"}} {}\n",
            statistic.count,
            sum(statistic)
        ));
    }
    text
}

fn sum(statistic: &Statistic) -> f64 {
    float_from_u64(statistic.count) * number(statistic.mean)
}

fn number(value: Option<Quantity>) -> f64 {
    match value.unwrap_or(Quantity::Raw(0.0)) {
        Quantity::Time(time) => float_from_u64(time.as_u64() / 1000),
        Quantity::Raw(value) => value,
    }
}

/// A name that Prometheus takes: all but letters, digits and `_` become `_`.
fn metric_name(name: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("nighthawk_{}", name.chars().map(clean).collect::<String>())
}

fn escaped(label: &str) -> String {
    label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
