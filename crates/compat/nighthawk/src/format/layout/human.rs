//! The layout for readers.

use crate::{Statistic, WorkerResult};

use stillwell_report::load::id;

use super::{HEADING, friendly, per_second, pick, quantity_text, share_text};

/// The result of all workers; statistics that are ours alone are left out.
pub(in crate::format) fn human(global: &WorkerResult) -> String {
    let mut text = HEADING.to_owned();
    for statistic in &global.statistics {
        if statistic.count > 0 && !statistic.id.starts_with(id::STILLWELL_PREFIX) {
            describe(statistic, &mut text);
        }
    }
    text.push_str(&format!("{:<40}{:<12}Per second\n", "Counter", "Value"));
    for counter in &global.counters {
        let rate = per_second(counter.value, global.execution_duration);
        text.push_str(&format!(
            "{:<40}{:<12}{rate:.2}\n",
            counter.name, counter.value
        ));
    }
    text.push('\n');
    text
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
