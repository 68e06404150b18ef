//! The layout for readers, with commas.

use crate::{Quantity, Statistic, WorkerResult};

use stillwell_report::load::id;

use super::{HEADING, friendly, per_second, pick, quantity_text, share_text};

/// The result of all workers; statistics that are ours alone are left out.
pub(in crate::format) fn csv(global: &WorkerResult) -> String {
    let mut text = HEADING.to_owned();
    for statistic in &global.statistics {
        if statistic.count > 0 && !statistic.id.starts_with(id::STILLWELL_PREFIX) {
            describe(statistic, &mut text);
        }
    }
    text.push_str("Counter,Value,Per second\n");
    for counter in &global.counters {
        let rate = per_second(counter.value, global.execution_duration);
        text.push_str(&format!("{},{},{rate:.2}\n", counter.name, counter.value));
    }
    text.push('\n');
    text
}

fn describe(statistic: &Statistic, text: &mut String) {
    text.push_str(&format!(
        "{} ({} samples)\nMin,Mean,Max,Pstdev\n{},{},{},{}\n",
        friendly(&statistic.id),
        statistic.count,
        quantity_text(statistic.min),
        quantity_text(statistic.mean),
        quantity_text(statistic.max),
        quantity_text(statistic.pstdev),
    ));
    let entries = pick::inner(statistic);
    if !entries.is_empty() {
        text.push_str("Percentile,Count,Value(microseconds),Value\n");
    }
    for entry in entries {
        let micros = match entry.value {
            Some(Quantity::Time(time)) => time.as_u64() / 1000,
            Some(Quantity::Raw(_)) | None => 0,
        };
        text.push_str(&format!(
            "{},{},{micros},{}\n",
            share_text(entry.percentile),
            entry.count,
            quantity_text(entry.value)
        ));
    }
    text.push('\n');
}
