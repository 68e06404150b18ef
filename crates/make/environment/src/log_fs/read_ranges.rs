//! Ranges of a file that were read.

/// Largest number of separate ranges. Beyond it, the narrowest gap between two ranges counts as read.
const RANGES_MAX: usize = 1024;

/// Separate ranges of a file that were read, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadRanges {
    ranges: Vec<(u64, u64)>,
}

impl ReadRanges {
    /// The bytes from `from` to before `to` were read. Gives how many of them count as
    /// read that did not before.
    pub(super) fn insert(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let first = self.ranges.partition_point(|(_, end)| *end < from);
        let last = self.ranges.partition_point(|(begin, _)| *begin <= to);
        let touched = &self.ranges[first..last];
        let overlap: u64 = touched.iter().map(|(begin, end)| end - begin).sum();
        let begin = touched.first().map_or(from, |(begin, _)| from.min(*begin));
        let end = touched.last().map_or(to, |(_, end)| to.max(*end));
        self.ranges.splice(first..last, [(begin, end)]);
        let mut added = end - begin - overlap;
        if self.ranges.len() > RANGES_MAX {
            added += self.close_narrowest();
        }
        added
    }

    fn close_narrowest(&mut self) -> u64 {
        let gaps = self.ranges.windows(2).enumerate();
        let narrowest = gaps.min_by_key(|(_, pair)| pair[1].0 - pair[0].1);
        let Some(at) = narrowest.map(|(at, _)| at) else {
            return 0;
        };
        let (begin, end) = self.ranges.remove(at + 1);
        let before = &mut self.ranges[at];
        let gap = begin - before.1;
        before.1 = end;
        gap
    }

    /// Number of bytes that were read.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|(begin, end)| end - begin).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_byte_is_counted_once(
            reads in prop::collection::vec((0_u64..200, 0_u64..40), 0..80),
        ) {
            let mut ranges_read = ReadRanges::default();
            let mut bytes = [false; 240];
            for (from, length) in reads {
                let to = from + length;
                let before = bytes.iter().filter(|byte| **byte).count() as u64;
                for byte in from..to {
                    bytes[usize::try_from(byte).unwrap()] = true;
                }
                let after = bytes.iter().filter(|byte| **byte).count() as u64;
                prop_assert_eq!(ranges_read.insert(from, to), after - before);
                prop_assert_eq!(ranges_read.bytes(), after);
                let is_separate = ranges_read.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
                prop_assert!(is_separate);
            }
        }
    }

    #[test]
    fn however_many_stretches_there_are_the_account_holds() {
        let mut ranges_read = ReadRanges::default();
        let mut counted = 0;
        for at in 0..5000_u64 {
            counted += ranges_read.insert(at * 10, at * 10 + 1 + at % 7);
            assert!(ranges_read.ranges.len() <= RANGES_MAX);
            assert_eq!(counted, ranges_read.bytes());
        }
        assert_eq!(ranges_read.insert(0, 50_000), 50_000 - counted);
    }
}
