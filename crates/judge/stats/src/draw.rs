//! Random draws that follow from a seed, for null distributions.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of draws: xoshiro256++ seeded with one number.
#[derive(Clone, Debug)]
pub(crate) struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// The stream that follows from `seed`.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform above 0 and up to 1, from the top 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// An index below `bound`; 0 where `bound` is 0.
    ///
    /// The high half of a product of 64 by 64 bits: its bias is `bound` in 2⁶⁴.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the high half of the product is below `bound`, a usize"
    )]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Puts `values` into a random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}
