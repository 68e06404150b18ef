//! The rates that are promised, by seeded simulation of whole experiments.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use stillwell_stats::{Level, PairedEffect, paired_power, pairs_needed};

const EXPERIMENTS: u32 = 20_000;

/// Simulated machines: what the two halves of a pair share, and what they do
/// not, both as standard deviations of the log.
const SHARED_NOISE: f64 = 0.02;
const HALF_NOISE: f64 = 0.01;

struct Noise(Xoshiro256PlusPlus);

impl Noise {
    fn seeded(number: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(number))
    }

    /// Uniform above 0 and up to 1, from the top 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn experiment(&mut self, pairs: usize, change: f64) -> PairedEffect {
        let pairs: Vec<_> = (0..pairs)
            .map(|_| {
                let level = 5e4 * (SHARED_NOISE * self.normal()).exp();
                let baseline = level * (HALF_NOISE * self.normal()).exp();
                let comparison = level * (1.0 + change) * (HALF_NOISE * self.normal()).exp();
                (baseline, comparison)
            })
            .collect();
        PairedEffect::from_pairs(&pairs, Level::NINETY_FIVE).unwrap()
    }
}

/// The share of simulated experiments of which `holds` is true.
fn share(seed: u64, pairs: usize, change: f64, holds: impl Fn(&PairedEffect) -> bool) -> f64 {
    let mut noise = Noise::seeded(seed);
    let count = (0..EXPERIMENTS)
        .filter(|_| holds(&noise.experiment(pairs, change)))
        .count();
    f64::from(u32::try_from(count).unwrap()) / f64::from(EXPERIMENTS)
}

/// The standard deviation of the log ratio of a simulated pair.
fn pair_noise() -> f64 {
    HALF_NOISE * 2.0_f64.sqrt()
}

#[test]
fn equal_versions_are_called_different_in_one_of_twenty() {
    for pairs in [6, 10] {
        let rate = share(11, pairs, 0.0, |effect| {
            assert_eq!(effect.p_value() < 0.05, effect.relative().excludes_zero());
            effect.p_value() < 0.05
        });
        assert!((rate - 0.05).abs() < 0.007, "{pairs} pairs: {rate}");
    }
}

#[test]
fn nineteen_of_twenty_intervals_hold_the_truth() {
    for (seed, change) in [(21, 0.0), (22, 0.03), (23, 0.05), (24, -0.05)] {
        for pairs in [4, 10] {
            let rate = share(seed, pairs, change, |effect| {
                effect.relative().contains(change)
            });
            assert!(
                (rate - 0.95).abs() < 0.007,
                "{change}, {pairs} pairs: {rate}"
            );
        }
    }
}

/// [`paired_power`] agrees with simulation, for changes for the better
/// and for the worse.
#[test]
fn changes_are_found_as_often_as_computed() {
    for (seed, pairs, change) in [(31, 10, 0.01), (32, 6, 0.02), (33, 4, -0.03)] {
        let result = share(seed, pairs, change, |effect| {
            effect.relative().excludes_zero() && (effect.mean().value > 0.0) == (change > 0.0)
        });
        let computed = paired_power(pairs, pair_noise(), change, Level::NINETY_FIVE).unwrap();
        assert!((result - computed).abs() < 0.012, "{result} for {computed}");
    }
}

#[test]
fn the_pairs_needed_reach_their_power() {
    for (seed, change, power) in [(41, 0.02, 0.8), (42, 0.03, 0.95)] {
        let pairs = pairs_needed(pair_noise(), change, power, Level::NINETY_FIVE).unwrap();
        let result = |seed, pairs| share(seed, pairs, change, |e| e.relative().excludes_zero());
        assert!(result(seed, pairs) > power - 0.01, "{pairs} pairs");
        assert!(result(seed, pairs - 1) < power + 0.01, "{pairs} pairs");
    }
}

/// A visible change is found in about four of five experiments. Each one
/// knows only the noise that it happened to see, so the average is judged; the
/// 0.84 of the normal distribution, used for few pairs, costs up to 5 points.
#[test]
fn the_smallest_visible_change_is_seen_four_times_in_five() {
    let mut noise = Noise::seeded(51);
    let mean: f64 = (0..2000)
        .map(|_| noise.experiment(10, 0.0).smallest_visible())
        .sum::<f64>()
        / 2000.0;
    let seen = share(52, 10, mean, |effect| effect.relative().excludes_zero());
    assert!((seen - 0.8).abs() < 0.05, "{seen}");
}
