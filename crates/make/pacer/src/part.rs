//! One target's part of one worker's share of a schedule.

use std::sync::Arc;

use crate::Share;

/// Weights are brought down to a sum of about this.
const PERIOD_MAX: u64 = 100_000;

/// Some of the units of a [`Share`]: every so many of them, in a pattern that
/// repeats. The parts of one share interleave as evenly as their weights allow,
/// no unit belongs to two of them, and together they are the whole share.
#[derive(Clone, Debug)]
pub struct Part {
    share: Share,
    /// The units of this part among `period` units of the share, in order.
    slots: Arc<[u64]>,
    period: u64,
}

impl Part {
    /// All of `share`.
    #[must_use]
    pub fn whole(share: Share) -> Self {
        Self {
            share,
            slots: [0].into(),
            period: 1,
        }
    }

    /// `share` divided by `weights`; a weight of zero counts as one.
    #[must_use]
    pub fn split(share: Share, weights: &[u32]) -> Vec<Self> {
        let weights = reduced(weights);
        let period: u64 = weights.iter().sum();
        let mut slots = vec![Vec::new(); weights.len()];
        // Each unit goes to the part with the largest deficit, the first of equals.
        let mut deficits = vec![0_i64; weights.len()];
        for unit in 0..period {
            for (deficit, weight) in deficits.iter_mut().zip(&weights) {
                *deficit += weight.cast_signed();
            }
            let most = deficits.iter().copied().max().unwrap_or(0);
            let next = deficits
                .iter()
                .position(|deficit| *deficit == most)
                .unwrap_or(0);
            deficits[next] -= period.cast_signed();
            slots[next].push(unit);
        }
        let parts = slots.into_iter().map(|slots| Self {
            share,
            slots: slots.into(),
            period,
        });
        parts.collect()
    }

    /// Number in the whole schedule, counted from zero, of this part's unit
    /// `position` is.
    #[must_use]
    pub fn number(&self, position: u64) -> u64 {
        let count = self.slots.len() as u64;
        let (round, slot) = (position / count, position % count);
        let slot = usize::try_from(slot).unwrap_or(0);
        let in_share = round
            .saturating_mul(self.period)
            .saturating_add(self.slots[slot]);
        self.share.total_at(in_share) - 1
    }

    /// Number of this part's units among the whole schedule's first `total`.
    #[must_use]
    pub fn of_total(&self, total: u64) -> u64 {
        let in_share = self.share.of_total(total);
        let (rounds, rest) = (in_share / self.period, in_share % self.period);
        let begun = self.slots.partition_point(|slot| *slot < rest);
        rounds * self.slots.len() as u64 + begun as u64
    }

    /// Its fraction of the whole schedule.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        let ratio = |part: u64, whole: u64| {
            stillwell_units::float_from_u64(part) / stillwell_units::float_from_u64(whole)
        };
        ratio(self.slots.len() as u64, self.period) / f64::from(self.share.of())
    }
}

/// The same proportions in the smallest whole numbers, none of them zero.
fn reduced(weights: &[u32]) -> Vec<u64> {
    let weights = weights.iter().map(|weight| u64::from(*weight).max(1));
    let divisor = weights.clone().fold(0, greatest_common_divisor).max(1);
    let sum = weights.clone().sum::<u64>() / divisor;
    let scale = divisor * sum.div_ceil(PERIOD_MAX).max(1);
    weights.map(|weight| (weight / scale).max(1)).collect()
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_interleave_by_their_weights() {
        let parts = Part::split(Share::WHOLE, &[200, 100]);
        let numbers = |part: &Part| (0..4).map(|at| part.number(at)).collect::<Vec<_>>();
        assert_eq!(numbers(&parts[0]), [0, 2, 3, 5]);
        assert_eq!(numbers(&parts[1]), [1, 4, 7, 10]);
        assert!((parts[0].fraction() - 2.0 / 3.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn for_all_weights_and_shares_every_unit_belongs_to_one_part(
            weights in prop::collection::vec(0_u32..50, 1..6),
            workers in 1_u32..5,
        ) {
            let parts = || Share::all(workers).flat_map(|share| Part::split(share, &weights));
            let mut seen = BTreeSet::new();
            for part in parts() {
                let numbers = (0..).map(|at| part.number(at)).take_while(|number| *number < 2000);
                let before = seen.len();
                let mut count = 0;
                for number in numbers {
                    seen.insert(number);
                    count += 1;
                }
                prop_assert_eq!(seen.len(), before + count, "a unit belongs to two");
                let share = stillwell_units::float_from_u64(count as u64) / 2000.0;
                prop_assert!((share - part.fraction()).abs() < 0.15, "{share}");
            }
            prop_assert_eq!(seen.len(), 2000);
            for total in [0, 1, 7, 500, 2000] {
                let sum: u64 = parts().map(|part| part.of_total(total)).sum();
                prop_assert_eq!(sum, total);
            }
            let whole: f64 = parts().map(|part| part.fraction()).sum();
            prop_assert!((whole - 1.0).abs() < 1e-9);
        }

        #[test]
        fn for_all_weights_nothing_overflows(weights in prop::collection::vec(any::<u32>(), 1..4)) {
            for part in Part::split(Share::WHOLE, &weights) {
                prop_assert!(part.number(u64::MAX) >= part.number(0));
            }
        }
    }
}
