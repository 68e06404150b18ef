//! Random picks, several from each 64-bit word.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use stillwell_units::Seed;

/// A stream of random bits. The generator is Xoshiro256++ (Blackman and Vigna,
/// 2019), whose output is defined in 64-bit words: no draw depends on the width
/// of `usize` or on byte order.
///
/// Writers draw from a copy of their own and put it back at the end of an event:
/// what is only a local lives in registers, which is what makes it fast.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    source: Xoshiro256PlusPlus,
    /// Bits not used yet, the next one lowest.
    pool: u64,
    pool_bits: u32,
}

impl Random {
    pub(crate) fn new(seed: Seed) -> Self {
        Self {
            source: Xoshiro256PlusPlus::from_seed(*seed.bytes()),
            pool: 0,
            pool_bits: 0,
        }
    }

    /// 64 random bits; leaves the pool alone.
    #[inline(always)]
    pub(crate) fn word(&mut self) -> u64 {
        self.source.next_u64()
    }

    /// `count` random bits, at most 16.
    #[inline(always)]
    pub(crate) fn bits(&mut self, count: u32) -> u16 {
        if self.pool_bits < count {
            self.pool = self.source.next_u64();
            self.pool_bits = 64;
        }
        let taken = low_16(self.pool) & low_16((1_u64 << count) - 1);
        self.pool >>= count;
        self.pool_bits -= count;
        taken
    }

    /// Eight random bits.
    #[inline(always)]
    pub(crate) fn byte(&mut self) -> u8 {
        let [low, _] = self.bits(8).to_le_bytes();
        low
    }

    /// Evenly one of 0 to `bound` - 1, as even as 16 bits allow.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u16) -> u16 {
        low_16((u64::from(self.bits(16)) * u64::from(bound)) >> 16)
    }

    /// Evenly one of `low` to `high`, both included, as even as 63 bits allow.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        let width = u128::from(high.saturating_sub(low)) + 1;
        let offset = (u128::from(self.word()) * width) >> 64;
        low + u64::try_from(offset).expect("a product of 128 bits has a high half of 64")
    }

    /// One entry of `table`, whose length is a power of two up to 2^16.
    #[inline(always)]
    pub(crate) fn choose<'t, T, const N: usize>(&mut self, table: &'t [T; N]) -> &'t T {
        const { assert!(N.is_power_of_two() && N <= 1 << 16) };
        &table[usize::from(self.bits(N.trailing_zeros())) & (N - 1)]
    }

    /// True once in 2^`bits` times.
    #[inline(always)]
    pub(crate) fn one_in_power_of_two(&mut self, bits: u32) -> bool {
        self.bits(bits) == 0
    }
}

/// The lowest 16 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "dropping the high bits is what this function is for"
)]
const fn low_16(word: u64) -> u16 {
    word as u16
}
