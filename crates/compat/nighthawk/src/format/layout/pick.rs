//! Choice of the shown entries of a long list of percentiles.

use crate::{Percentile, Statistic};

const SHOWN: [f64; 9] = [0.0, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0];

/// Of each share that is shown the first entry that is not below it, each entry
/// once, the ends included.
pub(super) fn shown(statistic: &Statistic) -> Vec<&Percentile> {
    let mut entries: Vec<&Percentile> = Vec::new();
    for share in SHOWN {
        let mut all = statistic.percentiles.iter();
        let first = all.find(|entry| entry.percentile >= share);
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
