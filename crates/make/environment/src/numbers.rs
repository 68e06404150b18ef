//! Numbers and names for generators that send no payload.

use stillwell_units::Seed;

/// Numbers that follow from a seed (`SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: &Seed) -> Self {
        Self(u64::from_le_bytes(std::array::from_fn(|at| {
            seed.bytes()[at]
        })))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`; none where that is 0.
    pub(crate) fn below(&mut self, end: usize) -> Option<usize> {
        let number = usize::try_from(self.next() >> 32).unwrap_or(0);
        number.checked_rem(end)
    }

    /// Returns a name of lower-case letters and digits.
    pub(crate) fn name(&mut self, length: u32) -> String {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        let letters = (0..length.max(1)).map(|_| {
            let index = self.below(LETTERS.len()).unwrap_or(0);
            char::from(LETTERS[index])
        });
        letters.collect()
    }
}
