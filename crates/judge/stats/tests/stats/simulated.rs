//! Simulated series for the tests of this crate.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) struct Noise(Xoshiro256PlusPlus);

impl Noise {
    pub(crate) fn seeded(number: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(number))
    }

    /// Uniform above 0 and up to 1, from the top 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A stationary autoregressive series of the first order with standard
    /// deviation 1.
    pub(crate) fn correlated(&mut self, count: usize, correlation: f64) -> Vec<f64> {
        let fresh = (1.0 - correlation * correlation).sqrt();
        let mut value = self.normal();
        (0..count)
            .map(|_| {
                let result = value;
                value = correlation * value + fresh * self.normal();
                result
            })
            .collect()
    }
}

/// The share of `count` trials that hold.
pub(crate) fn share(count: u32, mut holds: impl FnMut(u32) -> bool) -> f64 {
    let held = (0..count).filter(|&trial| holds(trial)).count();
    f64::from(u32::try_from(held).unwrap()) / f64::from(count)
}
