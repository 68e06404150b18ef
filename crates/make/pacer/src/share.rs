//! One worker's share of a schedule.

/// Worker `index` of `of`: of the whole schedule's units, numbered from zero,
/// it sends those whose number leaves `index` when divided by `of`.
///
/// The shares of one schedule therefore interleave, no unit belongs to two of
/// them, and together they are the whole at every moment.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Share {
    index: u32,
    of: u32,
}

impl Share {
    /// All of it, for a lone worker.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Every share of a schedule divided by `of`, in order; none for zero.
    pub fn all(of: u32) -> impl ExactSizeIterator<Item = Self> {
        (0..of).map(move |index| Self { index, of })
    }

    /// Index of this share, counted from zero.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Number of shares.
    #[must_use]
    pub const fn of(self) -> u32 {
        self.of
    }

    /// Number of this share's units among the whole's first `total`.
    pub(crate) fn of_total(self, total: u64) -> u64 {
        let (index, of) = (u64::from(self.index), u64::from(self.of));
        if total <= index {
            return 0;
        }
        (total - index - 1) / of + 1
    }

    /// Number of units that the whole has requested once this share's unit number
    /// `position`, counted from zero, is due; saturates.
    pub(crate) fn total_at(self, position: u64) -> u64 {
        position
            .saturating_mul(u64::from(self.of))
            .saturating_add(u64::from(self.index))
            .saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_totals_the_shares_sum_to_the_whole(
            total in any::<u64>(),
            of in 1_u32..200,
        ) {
            let sum: u128 = Share::all(of).map(|share| u128::from(share.of_total(total))).sum();
            prop_assert_eq!(sum, u128::from(total));
        }

        #[test]
        fn for_all_positions_a_unit_is_due_at_its_total_and_not_before(
            position in 0_u64..1 << 40,
            of in 1_u32..200,
        ) {
            for share in Share::all(of) {
                let total = share.total_at(position);
                prop_assert_eq!(share.of_total(total), position + 1);
                prop_assert_eq!(share.of_total(total - 1), position);
            }
        }
    }
}
