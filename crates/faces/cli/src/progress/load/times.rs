//! Latencies in classes of a few significant bounds.

use stillwell_metric::Histogram;
use stillwell_units::{Nanos, as_usize, float_from_u64};

/// Classes that are shown.
pub(super) const CLASSES_MAX: u16 = 8;
/// Bounds of classes: 1, 2 and 5 of each power of ten, from a microsecond to 500 seconds.
const BOUNDS: usize = 27;

/// Number of latencies in each class.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyClasses {
    counts: [u64; BOUNDS],
}

impl LatencyClasses {
    pub(super) fn add(&mut self, latencies: &Histogram<u64>) {
        for value in latencies.iter_recorded() {
            let time = value.value_iterated_to();
            let class = (0..BOUNDS).find(|class| time <= bound(*class));
            self.counts[class.unwrap_or(BOUNDS - 1)] += value.count_since_last_iteration();
        }
    }

    /// Returns upper bounds and shares of all, from the first class with latencies to the last. Where these are too
    /// many, the first ones are joined: long latencies are those that matter.
    pub(super) fn classes(&self) -> Vec<(Nanos, f64)> {
        let all: u64 = self.counts.iter().sum();
        let Some(last) = self.counts.iter().rposition(|count| *count > 0) else {
            return Vec::new();
        };
        let first = self.counts.iter().position(|count| *count > 0);
        let joined = (last + 1).saturating_sub(as_usize(CLASSES_MAX));
        let first = first.unwrap_or(0).max(joined);
        let share = |counts: &[u64]| float_from_u64(counts.iter().sum()) / float_from_u64(all);
        (first..=last)
            .map(|class| {
                let from = if class == first { 0 } else { class };
                (Nanos::new(bound(class)), share(&self.counts[from..=class]))
            })
            .collect()
    }
}

/// Returns the upper bound of a class, in nanoseconds.
fn bound(class: usize) -> u64 {
    let power = u32::try_from(class / 3).unwrap_or(0);
    [1_000, 2_000, 5_000][class % 3] * 10_u64.pow(power)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stillwell_metric::empty_histogram;

    use super::*;

    proptest! {
        /// For all latencies: few classes with rising bounds hold all of them.
        #[test]
        fn classes_hold_all_latencies(
            times in proptest::collection::vec(1_u64..1_000_000_000_000, 1..50),
        ) {
            let mut histogram = empty_histogram();
            for time in &times {
                histogram.saturating_record(*time);
            }
            let mut classes = LatencyClasses::default();
            classes.add(&histogram);
            let classes = classes.classes();
            prop_assert!(classes.len() <= as_usize(CLASSES_MAX));
            prop_assert!(classes.is_sorted_by(|a, b| a.0 < b.0));
            let all: f64 = classes.iter().map(|class| class.1).sum();
            prop_assert!((all - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn bounds_are_1_2_and_5_of_each_power_of_ten() {
        assert_eq!([0, 1, 2, 3].map(bound), [1_000, 2_000, 5_000, 10_000]);
        assert_eq!(bound(BOUNDS - 1), 500_000_000_000);
        assert!(LatencyClasses::default().classes().is_empty());
    }
}
