//! Totals over things that come and go.

use std::collections::BTreeMap;

/// A total over counters whose owners end: what an owner had counted when it was
/// last seen stays in the total. What it counted after that is missing, at most
/// one beat's worth for each owner that ends.
#[derive(Debug)]
pub(crate) struct Carry<K, const N: usize> {
    /// Each owner's counters, and the round in which it was last seen.
    seen: BTreeMap<K, ([u64; N], u64)>,
    gone: [u64; N],
    round: u64,
}

impl<K: Ord + Copy, const N: usize> Carry<K, N> {
    pub(crate) const fn new() -> Self {
        Self {
            seen: BTreeMap::new(),
            gone: [0; N],
            round: 0,
        }
    }

    /// Notes what `owner` has counted so far.
    pub(crate) fn see(&mut self, owner: K, counters: [u64; N]) {
        self.seen.insert(owner, (counters, self.round));
    }

    /// Ends a round of looking: who was not seen in it is gone. The totals of
    /// the living and of those gone.
    pub(crate) fn end_round(&mut self) -> ([u64; N], [u64; N]) {
        let (round, gone) = (self.round, &mut self.gone);
        let mut living = [0; N];
        self.seen.retain(|_, (counters, last)| {
            let is_living = *last == round;
            let total = if is_living { &mut living } else { &mut *gone };
            for (total, counter) in total.iter_mut().zip(counters) {
                *total = total.saturating_add(*counter);
            }
            is_living
        });
        self.round += 1;
        (living, self.gone)
    }
}

/// The sums of two lists of totals.
pub(crate) fn sums<const N: usize>(totals: ([u64; N], [u64; N])) -> [u64; N] {
    std::array::from_fn(|index| totals.0[index].saturating_add(totals.1[index]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_comings_and_goings_totals_never_fall(
            rounds in proptest::collection::vec(proptest::collection::vec((0_u8..6, 0_u64..10), 0..6), 0..20)
        ) {
            let (mut carry, mut counters, mut last) = (Carry::new(), [0_u64; 6], 0);
            for round in rounds {
                for (owner, more) in round {
                    counters[usize::from(owner)] += more;
                    // An owner that was gone is another one with the same counter.
                    let is_known = carry.seen.contains_key(&owner);
                    if !is_known {
                        counters[usize::from(owner)] = more;
                    }
                    carry.see(owner, [counters[usize::from(owner)]]);
                }
                let [total] = sums(carry.end_round());
                prop_assert!(total >= last);
                last = total;
            }
        }
    }
}
