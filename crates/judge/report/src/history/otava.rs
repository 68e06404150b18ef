//! A history in the words of Apache Otava 0.8.0, for programs that read these.

use std::collections::BTreeMap;

use serde_json::{Value, json as object};
use stillwell_verdict::history::{Basis, Lead, Trend};

use super::export::{attributes, column};
use super::{HistoryReport, document};

/// As `otava analyze --output json`: a line for each experiment.
pub(super) fn json(report: &HistoryReport) -> String {
    let mut text = String::new();
    for (name, trends) in tests(report) {
        let mut groups: BTreeMap<(u64, &str), Vec<Value>> = BTreeMap::new();
        let mut origins = BTreeMap::new();
        for trend in trends {
            for lead in &trend.leads {
                let origin = &trend.points[lead.index].origin;
                let seconds = origin.time_millis / 1000;
                let result = result_of(trend, lead);
                let attributes = attributes(origin, trend, &report.branch);
                origins.insert(result, (seconds, attributes));
                let changes = groups.entry(result).or_default();
                changes.push(change(trend, lead, seconds));
            }
        }
        let groups = groups.into_iter().filter_map(|(result, changes)| {
            let (seconds, attributes) = origins.remove(&result)?;
            let attributes: serde_json::Map<String, Value> = attributes
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect();
            Some(object!({ "time": seconds, "attributes": attributes, "changes": changes }))
        });
        let mut test = serde_json::Map::new();
        test.insert(name, groups.collect());
        text.push_str(&format!("{}\n", Value::Object(test)));
    }
    text
}

fn change(trend: &Trend, lead: &Lead, seconds: u64) -> Value {
    let plain = &lead.plain;
    let decimal = |value: f64| format!("{value:.6}");
    object!({
        "metric": metric(trend),
        "index": lead.index,
        "time": seconds,
        "forward_change_percent": format!("{:.0}", plain.forward_change_percent()),
        "magnitude": decimal(plain.magnitude()),
        "mean_before": decimal(plain.mean_before),
        "stddev_before": decimal(plain.standard_deviation_before),
        "mean_after": decimal(plain.mean_after),
        "stddev_after": decimal(plain.standard_deviation_after),
        "pvalue": decimal(lead.p_value),
    })
}

/// As `otava analyze --output regressions_only`.
pub(super) fn regressions_only(report: &HistoryReport) -> String {
    let mut text = String::new();
    for (name, trends) in tests(report) {
        let mut groups: BTreeMap<(u64, &str), String> = BTreeMap::new();
        for trend in trends {
            for lead in trend.leads.iter().filter(|lead| lead.worse) {
                let lines = groups.entry(result_of(trend, lead)).or_default();
                let plain = &lead.plain;
                lines.push_str(&format!(
                    "    {:16}:\t{:>8}\t--> {:>8}\t({:>+6.1}%)\n",
                    metric(trend),
                    three_digits(plain.mean_before),
                    three_digits(plain.mean_after),
                    plain.forward_change_percent()
                ));
            }
        }
        if groups.is_empty() {
            text.push_str(&format!("No regressions found in {name}.\n"));
            continue;
        }
        text.push_str(&format!("Regressions in {name}:\n"));
        for ((millis, _), lines) in &groups {
            text.push_str(&format!("{}\n{lines}", document::timestamp(*millis)));
        }
    }
    text
}

/// Returns the start and the name of the result in which a level moved: its identity, in order of time. Trends of one test
/// may lack different results, so the same index is another result in each.
fn result_of<'a>(trend: &'a Trend, lead: &Lead) -> (u64, &'a str) {
    let origin = &trend.points[lead.index].origin;
    (origin.time_millis, origin.run.as_str())
}

/// Trends by the name of their test, in their order.
fn tests(report: &HistoryReport) -> Vec<(String, Vec<&Trend>)> {
    let mut tests: Vec<(String, Vec<&Trend>)> = Vec::new();
    for trend in &report.trends {
        let name = document::test_name(trend, &report.trends);
        match tests.last_mut().filter(|(last, _)| *last == name) {
            Some((_, trends)) => trends.push(trend),
            None => tests.push((name, vec![trend])),
        }
    }
    tests
}

/// The column of an export that has these values.
fn metric(trend: &Trend) -> String {
    column(&trend.metric, trend.basis == Basis::Anchor)
}

/// Three digits that matter, as C's `%#.3g` has them.
fn three_digits(value: f64) -> String {
    let scientific = format!("{value:.2e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return scientific;
    };
    match usize::try_from(2 - exponent) {
        Ok(0) => format!("{value:.0}."),
        Ok(decimals) if exponent >= -4 => format!("{value:.decimals$}"),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::three_digits;

    #[test]
    fn three_digits_are_those_of_c() {
        for (value, expected) in [
            (1.0, "1.00"),
            (123.4, "123."),
            (999.6, "1.00e+03"),
            (0.000_123_44, "0.000123"),
            (0.000_012_3, "1.23e-05"),
            (-12.345, "-12.3"),
            (0.0, "0.00"),
        ] {
            assert_eq!(three_digits(value), expected);
        }
    }
}
