//! Latencies in classes of a few significant bounds.

use stillwell_metric::Histogram;
use stillwell_units::{Nanos, as_usize, float_from_u64};

use super::figure;
use super::live::{Look, Row, Tone};

/// Classes that are shown.
const CLASSES_MAX: u16 = 8;
/// Smallest terminal with the latencies in classes.
const SHOWN_FROM_ROWS: u16 = 22;
/// Longer bars show no more detail.
const BAR_MAX: usize = 60;
/// Bounds of classes: 1, 2 and 5 of each power of ten, from a microsecond to 500 seconds.
const BOUNDS: usize = 27;

/// Number of latencies in each class.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyClasses {
    counts: [u64; BOUNDS],
}

impl LatencyClasses {
    /// Returns the rows that a view keeps for the classes.
    pub(super) const fn height(look: Look) -> u16 {
        if look.rows >= SHOWN_FROM_ROWS {
            1 + CLASSES_MAX
        } else {
            0
        }
    }

    /// Returns a head and a row for each class; nothing without latencies, or on a low terminal.
    pub(super) fn rows(&self, head: &str, look: Look) -> Vec<Row> {
        let classes = self.classes();
        if classes.is_empty() || Self::height(look) == 0 {
            return Vec::new();
        }
        let width = usize::from(look.columns);
        let mut rows = vec![Row::of(look, Tone::Faint, head)];
        let most = classes.iter().map(|class| class.1).fold(0.0, f64::max);
        for (up_to, share) in classes {
            let time = figure::time(up_to, look.unicode);
            let sign = if look.unicode { "≤" } else { "<=" };
            let mut row = Row::of(look, Tone::Plain, &format!("  {sign} {time:>7}  "));
            let room = width.saturating_sub(row.width() + 10).min(BAR_MAX);
            row.push_column(share / most.max(f64::MIN_POSITIVE), room);
            row.push(Tone::Plain, &format!(" {}", figure::percent(share)));
            rows.push(row);
        }
        rows
    }

    pub(super) fn add(&mut self, latencies: &Histogram<u64>) {
        for value in latencies.iter_recorded() {
            let time = value.value_iterated_to();
            let class = (0..BOUNDS).find(|class| time <= bound(*class));
            self.counts[class.unwrap_or(BOUNDS - 1)] += value.count_since_last_iteration();
        }
    }

    /// Returns upper bounds and shares of all, from the first class with latencies to the last. Too many classes are
    /// joined to one for each power of ten, and after that the first ones: long latencies are those that matter.
    fn classes(&self) -> Vec<(Nanos, f64)> {
        let fine = (0..BOUNDS).map(|class| (bound(class), self.counts[class]));
        let fine = trimmed(fine.collect());
        let mut shown = fine.clone();
        let most = as_usize(CLASSES_MAX);
        if fine.len() > most {
            let mut coarse = vec![];
            for power in 0..=BOUNDS / 3 {
                let to = bound(3 * power);
                let from = power.checked_sub(1).map_or(0, |before| bound(3 * before));
                let inside = fine.iter().filter(|class| class.0 > from && class.0 <= to);
                coarse.push((to, inside.map(|class| class.1).sum()));
            }
            shown = trimmed(coarse);
            let superfluous = shown.len().saturating_sub(most);
            let joined: u64 = shown.drain(..superfluous).map(|class| class.1).sum();
            if let Some(first) = shown.first_mut() {
                first.1 += joined;
            }
        }
        let all: u64 = shown.iter().map(|class| class.1).sum();
        let share = |count| float_from_u64(count) / float_from_u64(all.max(1));
        let shown = shown.into_iter();
        shown
            .map(|(to, count)| (Nanos::new(to), share(count)))
            .collect()
    }
}

/// Returns classes without the empty ones at both ends.
fn trimmed(classes: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let is_used = |class: &(u64, u64)| class.1 > 0;
    match (
        classes.iter().position(is_used),
        classes.iter().rposition(is_used),
    ) {
        (Some(first), Some(last)) => classes[first..=last].to_vec(),
        _ => Vec::new(),
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
