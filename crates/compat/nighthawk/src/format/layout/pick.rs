//! Choice of the shown entries of a long list of percentiles.

use stillwell_report::load::percentile::is_tick;

use crate::{Percentile, Statistic};

const SHOWN: [f64; 9] = [0.0, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0];

/// Of each share that is shown the first entry that is not below it, each entry
/// once, the ends included.
pub(super) fn shown(statistic: &Statistic) -> Vec<&Percentile> {
    shown_among(statistic.percentiles.iter())
}

/// The same among the entries that Nighthawk lists.
pub(super) fn shown_ticks(statistic: &Statistic) -> Vec<&Percentile> {
    let all = statistic.percentiles.iter();
    shown_among(all.filter(|entry| is_tick(entry.percentile)))
}

fn shown_among<'s>(all: impl Iterator<Item = &'s Percentile> + Clone) -> Vec<&'s Percentile> {
    let mut entries: Vec<&Percentile> = Vec::new();
    for share in SHOWN {
        let first = all.clone().find(|entry| entry.percentile >= share);
        if let Some(first) = first
            && entries
                .last()
                .is_none_or(|last| !std::ptr::eq(*last, first))
        {
            entries.push(first);
        }
    }
    entries
}

/// The same without the ends.
pub(super) fn inner(statistic: &Statistic) -> Vec<&Percentile> {
    let mut entries = shown(statistic);
    entries.retain(|entry| entry.percentile > 0.0 && entry.percentile < 1.0);
    entries
}
