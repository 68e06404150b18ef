//! Prometheus' text.

use std::collections::BTreeSet;

use crate::{Output, Quantity, Statistic};
use stillwell_units::float_from_u64;

use super::pick;

/// Returns every result, each with its `scope`; times are in microseconds.
pub(in crate::format) fn prometheus(output: &Output) -> String {
    let mut text = String::new();
    let results = || output.results.iter();
    let counters: BTreeSet<&str> = results()
        .flat_map(|result| &result.counters)
        .map(|counter| &*counter.name)
        .collect();
    for name in counters {
        let metric = metric_name(name);
        text.push_str(&format!("# TYPE {metric} counter\n"));
        for result in results() {
            if let Some(counter) = result.counters.iter().find(|counter| counter.name == name) {
                let scope = escaped(&result.name);
                text.push_str(&format!(
                    "{metric}{{scope=\"{scope}\"}} {}\n",
                    counter.value
                ));
            }
        }
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
        summary(&metric_name(id), &all.collect::<Vec<_>>(), &mut text);
    }
    text
}

fn summary(metric: &str, scopes: &[(String, &Statistic)], text: &mut String) {
    text.push_str(&format!("# TYPE {metric} summary\n"));
    for (scope, statistic) in scopes {
        for entry in pick::shown(statistic) {
            let (share, value) = (entry.percentile, number(entry.value));
            text.push_str(&format!(
                "{metric}{{scope=\"{scope}\",quantile=\"{share}\"}} {value}\n"
            ));
        }
        let sum = float_from_u64(statistic.count) * number(statistic.mean);
        text.push_str(&format!(
            "{metric}_count{{scope=\"{scope}\"}} {}\n{metric}_sum{{scope=\"{scope}\"}} {sum}\n",
            statistic.count
        ));
    }
    for suffix in ["min", "max", "mean", "pstdev"] {
        text.push_str(&format!("# TYPE {metric}_{suffix} gauge\n"));
        for (scope, statistic) in scopes {
            let value = match suffix {
                "min" => statistic.min,
                "max" => statistic.max,
                "mean" => statistic.mean,
                _ => statistic.pstdev,
            };
            let value = number(value);
            text.push_str(&format!("{metric}_{suffix}{{scope=\"{scope}\"}} {value}\n"));
        }
    }
}

fn number(value: Option<Quantity>) -> f64 {
    match value.unwrap_or(Quantity::Raw(0.0)) {
        Quantity::Time(time) => float_from_u64(time.as_u64()) / 1000.0,
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
