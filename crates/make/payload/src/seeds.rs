//! Seeds and shares from which the set of one worker follows.

use stillwell_units::{Nanos, Seed};

/// Seeds and shares of a set.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// Seed of the worker.
    pub worker: Seed,
    /// That of all workers of a generator: what they have in common follows
    /// from it, such as the contexts of their metrics.
    pub common: Seed,
    /// The worker's part of the shared series, where a series has times, which a store accepts only
    /// in their order.
    pub part: Part,
    /// The time after which all times of the set are: [`BlockSet::ended`](crate::BlockSet::ended)
    /// of the worker's set before, or the beginning of events in the plan. `None`: a time that
    /// follows from the seed.
    pub after: Option<Nanos>,
    /// Position of the exporter of flow records from which the set continues:
    /// [`BlockSet::exporter`](crate::BlockSet::exporter) of the worker's set before. `None`: an
    /// exporter that starts.
    pub exporter: Option<ExporterPosition>,
}

/// Position of an exporter of flow records behind the last packet of a set. Numbers of one
/// exporter have no gap (RFC 3954, 5.1; RFC 7011, 3.1), and its clock does not jump.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExporterPosition {
    /// Start of the exporter, in milliseconds since 1970.
    pub(crate) began: u64,
    /// Time of the last packet, in nanoseconds since 1970.
    pub(crate) nanos: u64,
    /// Records sent so far.
    pub(crate) flows: u32,
    /// Packets sent so far.
    pub(crate) packets: u32,
}

impl From<Seed> for Seeds {
    /// A worker that shares nothing.
    fn from(seed: Seed) -> Self {
        Self {
            worker: seed,
            common: seed,
            part: Part::WHOLE,
            after: None,
            exporter: None,
        }
    }
}

/// One worker's part of what all have in common: every so many of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Part {
    /// The worker's number, from 0.
    pub index: u32,
    /// Number of workers, at least one.
    pub of: u32,
}

impl Part {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Returns how many of `all` belong to the worker, at least one: workers share where there are
    /// too few.
    pub(crate) fn count(self, all: u64) -> u64 {
        let (index, of) = (u64::from(self.index), u64::from(self.of));
        all.saturating_sub(index).div_ceil(of).max(1)
    }

    /// The number among `all` of the worker's `place`th, from 0.
    #[inline(always)]
    pub(crate) fn number(self, place: u64, all: u64) -> u64 {
        let number = u64::from(self.index) + place * u64::from(self.of);
        if number < all {
            number
        } else {
            number % all.max(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For all numbers of workers: each has something, all together have all, and
        /// no two the same where there is enough.
        #[test]
        fn parts_make_up_the_whole(all in 1_u64..300, of in 1_u32..40) {
            let parts = (0..of).map(|index| Part { index, of });
            let mut numbers: Vec<u64> = parts
                .flat_map(|part| (0..part.count(all)).map(move |place| part.number(place, all)))
                .collect();
            numbers.sort_unstable();
            if u64::from(of) <= all {
                prop_assert_eq!(&numbers, &(0..all).collect::<Vec<u64>>());
            }
            numbers.dedup();
            prop_assert_eq!(numbers, (0..all).collect::<Vec<u64>>());
        }
    }
}
