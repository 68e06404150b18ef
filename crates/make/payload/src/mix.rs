//! Values that follow from a number, so nothing need be kept.

use stillwell_plan::payload::Between;
use stillwell_units::Seed;

/// A short stream of words that follows from a start (`SplitMix64`, Steele, Lea
/// and Flood, 2014): the same thing can be drawn again and again instead of
/// being stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    state: u64,
}

impl Draw {
    /// The stream of number `index` under `key`.
    #[inline(always)]
    pub(crate) const fn new(key: u64, index: u64) -> Self {
        Self {
            state: key ^ spread(index),
        }
    }

    #[inline(always)]
    pub(crate) const fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        spread(self.state)
    }

    /// Evenly one of 0 to `bound` - 1, as even as 64 bits allow.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        share(self.word(), bound)
    }

    /// Evenly one of `range`.
    #[inline(always)]
    pub(crate) fn between<T: Into<u64> + Copy>(&mut self, range: Between<T>) -> u64 {
        let (low, high): (u64, u64) = (range.low.into(), range.high.into());
        low + self.below(high - low + 1)
    }
}

/// A probability, stored, so one comparison decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance {
    /// Of 2^32.
    threshold: u64,
}

impl Chance {
    /// `probability` from 0 to 1.
    pub(crate) fn new(probability: f64) -> Self {
        Self {
            threshold: stillwell_units::floor_to_u64(probability * 4_294_967_296.0),
        }
    }

    /// Decides for `word`, using its high half.
    #[inline(always)]
    pub(crate) const fn holds(self, word: u64) -> bool {
        word >> 32 < self.threshold
    }
}

/// Weighted choices, from 0.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// The sum of the weights up to each.
    ends: Vec<u64>,
}

impl Weights {
    /// One choice for each of `weights`, which are not all 0.
    pub(crate) fn new(weights: &[u8]) -> Self {
        let mut total = 0;
        let ends = weights.iter().map(|weight| {
            total += u64::from(*weight);
            total
        });
        Self {
            ends: ends.collect(),
        }
    }

    #[inline(always)]
    pub(crate) fn choose(&self, word: u64) -> usize {
        let point = share(word, self.ends.last().copied().unwrap_or(0));
        self.ends.iter().take_while(|end| **end <= point).count()
    }
}

/// Numbers from 0 to `count` - 1, each once in every pass, in an order that
/// changes from pass to pass.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    count: u64,
    step: u64,
    at: u64,
    left: u64,
    draw: Draw,
}

impl Order {
    /// `count` numbers, one at least: there is no order of none.
    pub(crate) const fn new(count: u64, seed: &Seed) -> Self {
        Self {
            count: if count == 0 { 1 } else { count },
            step: 0,
            at: 0,
            left: 0,
            draw: Draw::new(key(seed), 0),
        }
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        if self.left == 0 {
            self.begin();
        }
        self.left -= 1;
        self.at += self.step;
        if self.at >= self.count {
            self.at -= self.count;
        }
        self.at
    }

    /// Returns true if the next number is the first of a pass.
    pub(crate) const fn is_between(&self) -> bool {
        self.left == 0
    }

    /// A step without a common divisor reaches every number.
    #[cold]
    fn begin(&mut self) {
        self.left = self.count;
        self.at = self.draw.below(self.count);
        self.step = loop {
            let step = self.draw.below(self.count);
            if greatest_common_divisor(step, self.count) == 1 {
                break step;
            }
        };
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The first eight bytes of `seed`.
pub(crate) const fn key(seed: &Seed) -> u64 {
    match seed.bytes().first_chunk::<8>() {
        Some(first) => u64::from_le_bytes(*first),
        None => 0,
    }
}

/// `word` of 2^64 as a share of `whole`.
#[inline(always)]
pub(crate) const fn share(word: u64, whole: u64) -> u64 {
    ((word as u128 * whole as u128) >> 64) as u64
}

/// A number that is kept within memory as an index.
#[inline(always)]
pub(crate) fn index(number: u64) -> usize {
    usize::try_from(number).expect("an index lies within memory")
}

#[inline(always)]
const fn spread(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_counts_each_pass_has_every_number_once(count in 1_u64..500, seed: u64) {
            let mut order = Order::new(count, &Seed::from_number(seed));
            for _ in 0..3 {
                let pass: BTreeSet<u64> = (0..count).map(|_| order.next()).collect();
                prop_assert_eq!(pass, (0..count).collect());
            }
        }
    }

    #[test]
    fn weights_and_chances_are_kept() {
        let weights = Weights::new(&[0, 3, 0, 1]);
        let mut draw = Draw::new(7, 1);
        let mut counts = [0_u32; 4];
        let mut heads = 0_u32;
        for _ in 0..40_000 {
            counts[weights.choose(draw.word())] += 1;
            heads += u32::from(Chance::new(0.25).holds(draw.word()));
        }
        assert_eq!((counts[0], counts[2]), (0, 0));
        // Five deviations of a count with a variance of 7500.
        assert!(counts[3].abs_diff(10_000) < 433 && heads.abs_diff(10_000) < 433);
        assert!(!Chance::new(0.0).holds(0) && Chance::new(1.0).holds(u64::MAX));
    }
}
