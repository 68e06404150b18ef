//! Totals over counters whose owners come and go.

use std::collections::BTreeMap;

/// A total over counters whose owners end. The last count of an ended owner stays in the total. Its later
/// counts are missing: at most one beat per owner.
#[derive(Debug)]
pub(crate) struct Carry<K, const N: usize> {
    /// Each owner's counters, and the round in which it was last recorded.
    counts: BTreeMap<K, ([u64; N], u64)>,
    ended: [u64; N],
    round: u64,
}

impl<K: Ord + Copy, const N: usize> Carry<K, N> {
    pub(crate) const fn new() -> Self {
        Self {
            counts: BTreeMap::new(),
            ended: [0; N],
            round: 0,
        }
    }

    /// Records the count of `owner` so far.
    pub(crate) fn record(&mut self, owner: K, counters: [u64; N]) {
        self.counts.insert(owner, (counters, self.round));
    }

    /// Returns the last count of `owner`, unless it has ended.
    pub(crate) fn last(&self, owner: K) -> Option<[u64; N]> {
        self.counts.get(&owner).map(|(counters, _)| *counters)
    }

    /// Ends a round. An owner that was not recorded in it has ended. Returns the totals of living and of ended
    /// owners.
    pub(crate) fn end_round(&mut self) -> ([u64; N], [u64; N]) {
        let (round, ended) = (self.round, &mut self.ended);
        let mut living = [0; N];
        self.counts.retain(|_, (counters, last)| {
            let is_living = *last == round;
            let total = if is_living { &mut living } else { &mut *ended };
            for (total, counter) in total.iter_mut().zip(counters) {
                *total = total.saturating_add(*counter);
            }
            is_living
        });
        self.round += 1;
        (living, self.ended)
    }

    /// Forgets all owners and their counts. Returns the totals so far.
    pub(crate) fn restart(&mut self) -> [u64; N] {
        let before = std::mem::replace(self, Self::new());
        let mut totals = before.ended;
        for (counters, _) in before.counts.values() {
            for (total, counter) in totals.iter_mut().zip(counters) {
                *total = total.saturating_add(*counter);
            }
        }
        totals
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

    #[test]
    fn a_restart_returns_the_totals_of_living_and_ended_owners() {
        let mut carry = Carry::new();
        carry.record(1, [10]);
        carry.record(2, [5]);
        carry.end_round();
        carry.record(2, [7]);
        carry.end_round();
        assert_eq!(carry.restart(), [17]);
        carry.record(3, [1]);
        assert_eq!(carry.end_round(), ([1], [0]));
    }

    proptest! {
        #[test]
        fn for_all_starts_and_ends_totals_never_fall(
            rounds in proptest::collection::vec(proptest::collection::vec((0_u8..6, 0_u64..10), 0..6), 0..20)
        ) {
            let (mut carry, mut counters, mut last) = (Carry::new(), [0_u64; 6], 0);
            for round in rounds {
                for (owner, more) in round {
                    counters[usize::from(owner)] += more;
                    // An ended owner that returns is a new one with the same counter.
                    let is_known = carry.counts.contains_key(&owner);
                    if !is_known {
                        counters[usize::from(owner)] = more;
                    }
                    carry.record(owner, [counters[usize::from(owner)]]);
                }
                let [total] = sums(carry.end_round());
                prop_assert!(total >= last);
                last = total;
            }
        }
    }
}
