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

/// The orders of the first `pairs` pairs: see [`Orders`].
#[must_use]
pub fn balanced_order(seed: [u8; 32], pairs: usize) -> Vec<PairOrder> {
    Orders::new(seed).take(pairs).collect()
}

/// The orders of any number of pairs, random and balanced: within each block of four
/// pairs each half runs first twice, and all six arrangements are equally likely.
///
/// A disturbance whose period is four runs moves both pairs of a block of two the same
/// way, so blocks are longer than that (docs/internals/calibration.md).
///
/// The order of a pair depends on the seed and its place alone, so an
/// experiment that is resumed or extended keeps the orders of the pairs it has.
/// An arrangement follows from the top 32 bits of xoshiro256++ seeded with these bytes.
#[derive(Clone, Debug)]
pub struct Orders {
    draws: Xoshiro256PlusPlus,
    block: [PairOrder; BLOCK],
    /// Pairs of `block` that are given out.
    used: usize,
}

/// Number of pairs in a balanced block.
const BLOCK: usize = 4;

const B: PairOrder = PairOrder::BaselineFirst;
const C: PairOrder = PairOrder::ComparisonFirst;

/// All balanced blocks.
const ARRANGEMENTS: [[PairOrder; BLOCK]; 6] = [
    [B, B, C, C],
    [B, C, B, C],
    [B, C, C, B],
    [C, B, B, C],
    [C, B, C, B],
    [C, C, B, B],
];

impl Orders {
    /// The orders that follow from these 32 bytes.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            draws: Xoshiro256PlusPlus::from_seed(seed),
            block: ARRANGEMENTS[0],
            used: BLOCK,
        }
    }
}

impl Iterator for Orders {
    type Item = PairOrder;

    /// Never `None`.
    fn next(&mut self) -> Option<PairOrder> {
        if self.used == BLOCK {
            // The high half of a product: below 6.
            let drawn = ((self.draws.next_u64() >> 32) * 6) >> 32;
            let place = usize::try_from(drawn).unwrap_or(0);
            self.block = ARRANGEMENTS[place];
            self.used = 0;
        }
        self.used += 1;
        Some(self.block[self.used - 1])
    }
}
