//! The layout for readers.

use crate::{Statistic, WorkerResult};

use stillwell_report::load::id;

use super::{HEADING, friendly, per_second, pick, quantity_text, share_text};

/// Statistics of responses that the layout of 2020 does not have.
const AFTER_2020: [&str; 3] = [
    id::RESPONSE_BODY_SIZE,
    id::RESPONSE_HEADER_SIZE,
    "benchmark_http_client.latency_",
];

/// The result of all workers; statistics that are ours alone are left out.
pub(in crate::format) fn human(global: &WorkerResult) -> String {
    let mut text = HEADING.to_owned();
    for statistic in &global.statistics {
        if statistic.count > 0 && !statistic.id.starts_with(id::STILLWELL_PREFIX) {
            describe(statistic, &mut text);
        }
    }
    count("", global, &mut text);
    text
}

/// The same in the layout of 2020.
pub(in crate::format) fn human_2020(global: &WorkerResult) -> String {
    let mut text = HEADING.to_owned();
    for statistic in &global.statistics {
        let is_later = AFTER_2020.iter().any(|name| statistic.id.starts_with(name));
        if statistic.count > 0 && !is_later && !statistic.id.starts_with(id::STILLWELL_PREFIX) {
            describe_2020(statistic, &mut text);
        }
    }
    count("client.", global, &mut text);
    text
}

/// Writes the counters, with `prefix` before their names.
fn count(prefix: &str, global: &WorkerResult, text: &mut String) {
    text.push_str(&format!("{:<40}{:<12}Per second\n", "Counter", "Value"));
    for counter in &global.counters {
        let rate = per_second(counter.value, global.execution_duration);
        let name = format!("{prefix}{}", counter.name);
        text.push_str(&format!("{name:<40}{:<12}{rate:.2}\n", counter.value));
    }
    text.push('\n');
}

fn describe(statistic: &Statistic, text: &mut String) {
    text.push_str(&format!(
        "{} ({} samples)\n  min: {} | mean: {} | max: {} | pstdev: {}\n",
        friendly(&statistic.id),
        statistic.count,
        quantity_text(statistic.min),
        quantity_text(statistic.mean),
        quantity_text(statistic.max),
        quantity_text(statistic.pstdev),
    ));
    let entries = pick::inner(statistic);
    if !entries.is_empty() {
        text.push_str(&format!(
            "\n  {:<12}{:<12}{:<15}\n",
            "Percentile", "Count", "Value"
        ));
    }
    for entry in entries {
        text.push_str(&format!(
            "  {:<12}{:<12}{:<15}\n",
            share_text(entry.percentile),
            entry.count,
            quantity_text(entry.value)
        ));
    }
    text.push('\n');
}

fn describe_2020(statistic: &Statistic, text: &mut String) {
    text.push_str(&format!(
        "{}\n  samples: {}\n  mean:    {}\n  pstdev:  {}\n",
        friendly(&statistic.id),
        statistic.count,
        quantity_text(statistic.mean),
        quantity_text(statistic.pstdev),
    ));
    let entries = pick::shown_ticks(statistic);
    if !entries.is_empty() {
        let (share, count) = ("Percentile", "Count");
        text.push_str(&format!("\n  {share:<12}{count:<12}Latency\n"));
    }
    for entry in entries {
        let share = format!("{:.6}", entry.percentile);
        let share = share.trim_end_matches('0').trim_end_matches('.');
        let value = quantity_text(entry.value);
        text.push_str(&format!("  {share:<12}{:<12}{value}\n", entry.count));
    }
    text.push('\n');
}
