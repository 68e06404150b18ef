//! One line a number.

use crate::{Output, Quantity, Statistic, WorkerResult};

use super::pick;

/// Every result, times in whole microseconds.
pub(in crate::format) fn dotted(output: &Output) -> String {
    let mut text = String::new();
    for result in &output.results {
        describe(result, &mut text);
    }
    text
}

fn describe(result: &WorkerResult, text: &mut String) {
    for statistic in &result.statistics {
        let scope = format!("{}.{}", result.name, statistic.id);
        text.push_str(&moments(&scope, statistic));
        for entry in pick::shown(statistic) {
            let scope = format!("{scope}.permilles-{:.0}", entry.percentile * 1000.0);
            let unit = match entry.value {
                Some(Quantity::Time(_)) => "microseconds",
                Some(Quantity::Raw(_)) | None => "value",
            };
            let (count, value) = (entry.count, number(entry.value));
            text.push_str(&format!(
                "{scope}.count: {count}\n{scope}.{unit}: {value}\n"
            ));
        }
    }
    for counter in &result.counters {
        let (name, value) = (&counter.name, counter.value);
        text.push_str(&format!("{}.{name}:{value}\n", result.name));
    }
}

fn moments(scope: &str, statistic: &Statistic) -> String {
    format!(
        "{scope}.samples: {}\n{scope}.mean: {}\n{scope}.pstdev: {}\n{scope}.min: {}\n{scope}.max: {}\n",
        statistic.count,
        number(statistic.mean),
        number(statistic.pstdev),
        number(statistic.min),
        number(statistic.max)
    )
}

fn number(value: Option<Quantity>) -> String {
    match value.unwrap_or(Quantity::Raw(0.0)) {
        Quantity::Time(time) => (time.as_u64() / 1000).to_string(),
        Quantity::Raw(value) => value.to_string(),
    }
}
