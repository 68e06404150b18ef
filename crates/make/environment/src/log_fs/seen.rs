//! Which bytes of a file somebody has read.

/// Stretches that are kept apart at most. Where there are more, the narrowest gap
/// between two of them counts as read.
const STRETCHES_MAX: usize = 1024;

/// Stretches of a file that were read, in order, apart from each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    stretches: Vec<(u64, u64)>,
}

impl Seen {
    /// The bytes from `from` to before `to` were read. Gives how many of them count as
    /// read that did not before.
    pub(super) fn insert(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let first = self.stretches.partition_point(|(_, end)| *end < from);
        let last = self.stretches.partition_point(|(begin, _)| *begin <= to);
        let touched = &self.stretches[first..last];
        let known: u64 = touched.iter().map(|(begin, end)| end - begin).sum();
        let begin = touched.first().map_or(from, |(begin, _)| from.min(*begin));
        let end = touched.last().map_or(to, |(_, end)| to.max(*end));
        self.stretches.splice(first..last, [(begin, end)]);
        let mut more = end - begin - known;
        if self.stretches.len() > STRETCHES_MAX {
            more += self.close_narrowest();
        }
        more
    }

    fn close_narrowest(&mut self) -> u64 {
        let gaps = self.stretches.windows(2).enumerate();
        let narrowest = gaps.min_by_key(|(_, pair)| pair[1].0 - pair[0].1);
        let Some(at) = narrowest.map(|(at, _)| at) else {
            return 0;
        };
        let (begin, end) = self.stretches.remove(at + 1);
        let before = &mut self.stretches[at];
        let gap = begin - before.1;
        before.1 = end;
        gap
    }

    /// How many bytes were read.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.stretches.iter().map(|(begin, end)| end - begin).sum()
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
            let mut seen = Seen::default();
            let mut bytes = [false; 240];
            for (from, length) in reads {
                let to = from + length;
                let before = bytes.iter().filter(|byte| **byte).count() as u64;
                for byte in from..to {
                    bytes[usize::try_from(byte).unwrap()] = true;
                }
                let after = bytes.iter().filter(|byte| **byte).count() as u64;
                prop_assert_eq!(seen.insert(from, to), after - before);
                prop_assert_eq!(seen.bytes(), after);
                let apart = seen.stretches.windows(2).all(|pair| pair[0].1 < pair[1].0);
                prop_assert!(apart);
            }
        }
    }

    #[test]
    fn however_many_stretches_there_are_the_account_holds() {
        let mut seen = Seen::default();
        let mut counted = 0;
        for at in 0..5000_u64 {
            counted += seen.insert(at * 10, at * 10 + 1 + at % 7);
            assert!(seen.stretches.len() <= STRETCHES_MAX);
            assert_eq!(counted, seen.bytes());
        }
        assert_eq!(seen.insert(0, 50_000), 50_000 - counted);
    }
}
