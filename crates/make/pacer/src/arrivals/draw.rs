//! Numbers drawn from a seed.

use std::sync::Arc;

use stillwell_units::{Seed, float_from_u64};

/// The longest gap of a Zipf distribution, in ticks.
const ZIPF_MAX: u64 = 1000;

/// The distance between two states of the generator.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Draws one number after the other: the same for the same seed (`SplitMix64`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: &Seed, stream: u64) -> Self {
        let seed = seed.derive("arrivals", stream);
        let (words, _) = seed.bytes().as_chunks::<8>();
        Self(words.first().map_or(0, |word| u64::from_le_bytes(*word)))
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(INCREMENT);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Leaves out the next `count` numbers.
    pub(super) const fn skip(&mut self, count: u64) {
        self.0 = self.0.wrapping_add(INCREMENT.wrapping_mul(count));
    }

    /// From 0 to `most`, evenly, except 2⁻⁶⁴ of `most`.
    pub(super) fn up_to(&mut self, most: u64) -> u64 {
        let product = u128::from(self.next()) * (u128::from(most) + 1);
        u64::try_from(product >> 64).unwrap_or(most)
    }

    /// Above 0 and below 1, evenly.
    fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / float_from_u64(1 << 53);
        (float_from_u64(self.next() >> 11) + 0.5) * STEP
    }

    /// From an exponential distribution of mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

/// A Zipf distribution over 1 to 1000, scaled to a mean of 1.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    /// Probability to draw at most 1, 2 and so on.
    cumulative: Arc<[f64]>,
    mean: f64,
}

impl Zipf {
    pub(super) fn new(exponent: f64) -> Self {
        let weights: Vec<f64> = (1..=ZIPF_MAX)
            .map(|rank| float_from_u64(rank).powf(-exponent))
            .collect();
        let whole: f64 = weights.iter().sum();
        let ranked = (1..).map(float_from_u64).zip(&weights);
        let mean = ranked.map(|(rank, weight)| rank * weight).sum::<f64>() / whole;
        let mut sum = 0.0;
        let cumulative = weights.iter().map(|weight| {
            sum += weight / whole;
            sum
        });
        Self {
            cumulative: cumulative.collect(),
            mean,
        }
    }

    pub(super) fn gap(&self, draw: &mut Draw) -> f64 {
        let unit = draw.unit();
        let rank = self.cumulative.partition_point(|share| *share < unit) + 1;
        // Rounding may leave the last share a little below 1.
        float_from_u64((rank as u64).min(ZIPF_MAX)) / self.mean
    }
}
