//! The list of percentiles that HdrHistogram's tools walk: five in each half of
//! the distance that is left, denser and denser towards the largest sample.

use hdrhistogram::Histogram;
use stillwell_units::float_from_u64;

/// Ticks in each half of the distance to 1.
const TICKS_PER_HALF: f64 = 5.0;

/// Shares that readers look up exactly, though most of them are no ticks.
pub const EXACT: [f64; 7] = [0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999];

/// One entry of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// From 0 to 1.
    pub share: f64,
    /// Samples that are not above the value.
    pub count: u64,
    /// The upper end of the bucket in which the share is reached.
    pub value: u64,
}

/// Returns the ticks that the samples can resolve, and a last entry of 1; empty without
/// samples.
#[must_use]
pub fn ticks(histogram: &Histogram<u64>) -> Vec<Entry> {
    let total = histogram.len();
    let mut entries = Vec::new();
    let mut percent = 0.0;
    let mut count = 0;
    'walk: for bucket in histogram.iter_recorded() {
        count += bucket.count_at_value();
        while percent <= 100.0 * float_from_u64(count) / float_from_u64(total) {
            entries.push(Entry {
                share: percent / 100.0,
                count,
                value: histogram.highest_equivalent(bucket.value_iterated_to()),
            });
            percent = next_tick(percent);
            if count == total {
                break 'walk;
            }
        }
    }
    if total > 0 {
        entries.push(Entry {
            share: 1.0,
            count: total,
            value: histogram.max(),
        });
    }
    entries
}

/// The ticks and [`EXACT`] together, in order.
#[must_use]
pub fn ticks_and_exact(histogram: &Histogram<u64>) -> Vec<Entry> {
    let mut entries = ticks(histogram);
    if entries.is_empty() {
        return entries;
    }
    let total = float_from_u64(histogram.len());
    let mut wanted = EXACT.iter().copied().peekable();
    let mut count = 0;
    let mut exact = Vec::new();
    for bucket in histogram.iter_recorded() {
        count += bucket.count_at_value();
        while let Some(share) = wanted.next_if(|share| *share <= float_from_u64(count) / total) {
            let value = histogram.highest_equivalent(bucket.value_iterated_to());
            exact.push(Entry {
                share,
                count,
                value,
            });
        }
    }
    exact.retain(|entry| !entries.iter().any(|tick| is_same(tick.share, entry.share)));
    entries.extend(exact);
    entries.sort_by(|left, right| left.share.total_cmp(&right.share));
    entries
}

/// Returns true if a share is one of the ticks, or 1.
#[must_use]
pub fn is_tick(share: f64) -> bool {
    let mut percent = 0.0;
    while percent / 100.0 < share - 1e-12 {
        let next = next_tick(percent);
        // Distance to 1 below which ticks are no longer resolved.
        if next - percent < 1e-9 {
            return true;
        }
        percent = next;
    }
    is_same(percent / 100.0, share) || is_same(share, 1.0)
}

fn is_same(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-12
}

fn next_tick(percent: f64) -> f64 {
    let halvings = (100.0 / (100.0 - percent)).log2().floor() + 1.0;
    percent + 100.0 / (TICKS_PER_HALF * halvings.exp2())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_to_ten() -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 4).unwrap();
        for value in 1..=10 {
            histogram.record(value).unwrap();
        }
        histogram
    }

    #[test]
    fn ten_values_give_the_list_of_the_format() {
        let shares: Vec<(f64, u64)> = ticks(&one_to_ten())
            .iter()
            .map(|entry| (entry.share, entry.value))
            .collect();
        let expected = [
            (0.0, 1),
            (0.1, 1),
            (0.2, 2),
            (0.3, 3),
            (0.4, 4),
            (0.5, 5),
            (0.55, 6),
            (0.6, 6),
            (0.65, 7),
            (0.7, 7),
            (0.75, 8),
            (0.775, 8),
            (0.8, 8),
            (0.825, 9),
            (0.85, 9),
            (0.875, 9),
            (0.8875, 9),
            (0.9, 9),
            (0.9125, 10),
            (1.0, 10),
        ];
        assert_eq!(shares, expected);
    }

    #[test]
    fn exact_shares_are_there_however_few_samples() {
        for count in [1, 2, 3, 10, 100_000] {
            let mut histogram = stillwell_metric::empty_histogram();
            for value in 1..=count {
                histogram.record(value * 1000).unwrap();
            }
            let entries = ticks_and_exact(&histogram);
            for share in EXACT {
                let entry = entries
                    .iter()
                    .find(|entry| is_same(entry.share, share))
                    .unwrap();
                assert_eq!(entry.value, histogram.value_at_quantile(share), "{share}");
            }
            assert!(entries.is_sorted_by(|left, right| left.share < right.share));
            assert!(entries.is_sorted_by_key(|entry| entry.count));
        }
        assert!(ticks_and_exact(&stillwell_metric::empty_histogram()).is_empty());
    }

    #[test]
    fn ticks_differ_from_other_shares() {
        for entry in ticks(&one_to_ten()) {
            assert!(is_tick(entry.share), "{}", entry.share);
        }
        assert!(is_tick(0.990_625));
        assert!(!is_tick(0.99));
        assert!(!is_tick(0.999));
        assert!(is_tick(1.0));
    }
}
