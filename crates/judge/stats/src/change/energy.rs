//! The energy distance between the two sides of a split.

use std::ops::Range;

use crate::number::float;

/// The place in a segment whose two sides differ most by energy distance, where
/// the second side may end anywhere (Matteson and James, 2014).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// The first value of the second side.
    pub(super) index: usize,
    /// The scaled energy distance.
    pub(super) distance: f64,
}

/// The best split of a segment of at least two values; the first of equals.
///
/// For n values x before and m values y after, the scaled energy distance is
/// 2/(m+n)·Σ|x−y| − 2m/((m+n)(n−1))·Σ|x−x′| − 2n/((m+n)(m−1))·Σ|y−y′|, each
/// sum over pairs once, and a side of one value has no last term.
pub(super) fn best_split(values: &[f64], segment: Range<usize>) -> Option<Candidate> {
    let values = &values[segment.clone()];
    let mut best: Option<Candidate> = None;
    let sums = EnergySums::of(values);
    for split in 1..values.len() {
        for end in split + 1..=values.len() {
            let distance = sums.distance(split, end);
            if best.is_none_or(|best| distance > best.distance) {
                let index = segment.start + split;
                best = Some(Candidate { index, distance });
            }
        }
    }
    best
}

/// EnergySums of |a − b| over all pairs within any stretch, each pair once.
struct EnergySums {
    count: usize,
    /// Row `start`, column `end`: the pairs within `start..end`.
    within: Vec<f64>,
}

impl EnergySums {
    /// A stretch has the pairs of the one that lacks its first value, those of
    /// the one that lacks its last, less what both have, and the pair of the
    /// ends.
    fn of(values: &[f64]) -> Self {
        let count = values.len();
        let width = count + 1;
        let mut within = vec![0.0; width * width];
        for start in (0..count).rev() {
            let mut from_first = 0.0;
            for end in start + 2..=count {
                from_first += (values[start] - values[end - 1]).abs();
                within[start * width + end] = within[(start + 1) * width + end] + from_first;
            }
        }
        Self { count, within }
    }

    fn pairs(&self, start: usize, end: usize) -> f64 {
        self.within[start * (self.count + 1) + end]
    }

    fn distance(&self, split: usize, end: usize) -> f64 {
        let (before, after) = (float(split), float(end - split));
        let all = float(end);
        let (first, second) = (self.pairs(0, split), self.pairs(split, end));
        let across = self.pairs(0, end) - first - second;
        let mut distance = 2.0 / all * across;
        if split > 1 {
            distance -= 2.0 * after / (all * (before - 1.0)) * first;
        }
        if end - split > 1 {
            distance -= 2.0 * before / (all * (after - 1.0)) * second;
        }
        distance
    }
}
