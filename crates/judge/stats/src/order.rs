//! Order of the halves of each pair.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The half of a pair that runs first.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum PairOrder {
    /// The baseline, then the comparison.
    BaselineFirst,
    /// The comparison, then the baseline.
    ComparisonFirst,
}

impl PairOrder {
    /// The other order.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::BaselineFirst => Self::ComparisonFirst,
            Self::ComparisonFirst => Self::BaselineFirst,
        }
    }
}

/// The orders of the first `pairs` pairs: see [`Orders`].
#[must_use]
pub fn balanced_order(seed: [u8; 32], pairs: usize) -> Vec<PairOrder> {
    Orders::new(seed).take(pairs).collect()
}

/// The orders of any number of pairs, random and balanced: within each block
/// of two pairs every order comes once, and a coin decides which comes first.
///
/// The order of a pair depends on the seed and its place alone, so that an
/// experiment that is resumed or extended keeps the orders of the pairs it has.
/// The coins are the top bits of xoshiro256++ seeded with these bytes.
#[derive(Clone, Debug)]
pub struct Orders {
    coins: Xoshiro256PlusPlus,
    rest_of_block: Option<PairOrder>,
}

impl Orders {
    /// The orders that follow from these 32 bytes.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            coins: Xoshiro256PlusPlus::from_seed(seed),
            rest_of_block: None,
        }
    }
}

impl Iterator for Orders {
    type Item = PairOrder;

    /// Never `None`.
    fn next(&mut self) -> Option<PairOrder> {
        if let Some(order) = self.rest_of_block.take() {
            return Some(order);
        }
        let heads = self.coins.next_u64() >> 63 == 1;
        let first = if heads {
            PairOrder::BaselineFirst
        } else {
            PairOrder::ComparisonFirst
        };
        self.rest_of_block = Some(first.reversed());
        Some(first)
    }
}
