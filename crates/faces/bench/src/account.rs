//! The set of events that arrived.

use std::ops::RangeInclusive;
use stillwell_units::as_usize;

/// A set of event numbers: one bit for each up to the latest.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    words: Vec<u64>,
}

impl Numbers {
    /// Adds `number`; whether it is new. It must be below
    /// [`EVENTS_LIMIT`](crate::EVENTS_LIMIT).
    pub(crate) fn add(&mut self, number: u64) -> bool {
        let (word, bit) = place(number);
        if word >= self.words.len() {
            self.grow(word);
        }
        let word = &mut self.words[word];
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    #[cold]
    fn grow(&mut self, word: usize) {
        // Doubles the length each time, so this is rare.
        let length = (word + 1).next_power_of_two();
        self.words.resize(length, 0);
    }

    /// Adds all of `other`.
    pub(crate) fn join(&mut self, other: &Self) {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, added) in self.words.iter_mut().zip(&other.words) {
            *word |= added;
        }
    }

    /// Size of the set.
    pub(crate) fn count(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The first `most` ranges of numbers below `end` that are missing, and how many
    /// there are in all.
    pub(crate) fn missing(&self, end: u64, most: usize) -> (Vec<RangeInclusive<u64>>, u64) {
        let (mut ranges, mut count) = (Vec::new(), 0);
        let mut next = 0;
        while next < end {
            // Whole words at once: most of them are full.
            let (word, _) = place(next);
            if next.is_multiple_of(64) && self.words.get(word) == Some(&u64::MAX) {
                next += 64;
                continue;
            }
            if self.has(next) {
                next += 1;
                continue;
            }
            let first = next;
            while next < end && !self.has(next) {
                next += 1;
            }
            count += 1;
            if ranges.len() < most {
                ranges.push(first..=next - 1);
            }
        }
        (ranges, count)
    }
}

/// The word that holds a number, and its bit there.
fn place(number: u64) -> (usize, u64) {
    let word = as_usize(number / 64);
    (word, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For all numbers in any order, at two sinks: the set is the union, and
        /// what is missing lies between.
        #[test]
        fn it_is_a_set(
            here in proptest::collection::vec(0_u64..300, 0..200),
            there in proptest::collection::vec(0_u64..500, 0..200),
            end in 0_u64..600,
        ) {
            let (mut numbers, mut more) = (Numbers::default(), Numbers::default());
            let mut all = BTreeSet::new();
            for number in &here {
                prop_assert_eq!(numbers.add(*number), all.insert(*number));
            }
            there.iter().for_each(|number| { more.add(*number); });
            all.extend(&there);
            numbers.join(&more);
            prop_assert_eq!(numbers.count(), all.len() as u64);
            let (ranges, count) = numbers.missing(end, usize::MAX);
            prop_assert_eq!(ranges.len() as u64, count);
            let missing: Vec<u64> = ranges.into_iter().flatten().collect();
            let expected: Vec<u64> = (0..end).filter(|number| !all.contains(number)).collect();
            prop_assert_eq!(missing, expected);
        }
    }
}
