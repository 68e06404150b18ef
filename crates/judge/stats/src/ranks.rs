//! Ranks, and the exact distributions of sums of ranks.

use crate::number::float;

/// The ranks of some numbers, the smallest first; equal ones share the mean of
/// their ranks. All are kept doubled, so they are whole.
pub(crate) struct Ranks {
    /// Twice the rank of each number, in the order given.
    pub(crate) twice: Vec<usize>,
    /// Σ (t³ − t) over the groups of t equal numbers: 0 where there are none.
    pub(crate) ties: f64,
}

impl Ranks {
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
        let mut twice = vec![0; values.len()];
        let mut ties = 0.0;
        let mut before = 0;
        // −0 and 0 are sorted apart, and equal all the same.
        for group in order.chunk_by(|&left, &right| values[left] >= values[right]) {
            let size = float(group.len());
            ties += size * size * size - size;
            for &index in group {
                twice[index] = 2 * before + group.len() + 1;
            }
            before += group.len();
        }
        Self { twice, ties }
    }

    pub(crate) fn has_ties(&self) -> bool {
        self.ties > 0.0
    }
}

/// Probability of each sum is of a subset of `parts` to which every part belongs
/// with probability one half: the share at index s is that of sum s.
pub(crate) fn subset_sums(parts: &[usize]) -> Vec<f64> {
    let mut shares = vec![0.0; parts.iter().sum::<usize>() + 1];
    shares[0] = 1.0;
    let mut most = 0;
    for &part in parts {
        most += part;
        for sum in (0..=most).rev() {
            let with = if sum >= part { shares[sum - part] } else { 0.0 };
            shares[sum] = 0.5 * (shares[sum] + with);
        }
    }
    shares
}

/// Probability of each number of pairs (one of `left`, one of `right`) in which
/// the first is the larger, where all orders are equally probable.
pub(crate) fn wins(left: usize, right: usize) -> Vec<f64> {
    // Row by row over the first column: of the sizes i and j the largest number
    // belongs to the first with probability i / (i + j), and then wins j pairs.
    let mut rows: Vec<Vec<f64>> = vec![vec![1.0]; right + 1];
    for size in 1..=left {
        let mut row: Vec<Vec<f64>> = vec![vec![1.0]];
        for against in 1..=right {
            let share = float(size) / float(size + against);
            let (won, lost) = (&rows[against], &row[against - 1]);
            let mut shares = vec![0.0; size * against + 1];
            for (pairs, value) in won.iter().enumerate() {
                shares[pairs + against] += share * value;
            }
            for (pairs, value) in lost.iter().enumerate() {
                shares[pairs] += (1.0 - share) * value;
            }
            row.push(shares);
        }
        rows = row;
    }
    rows.pop().unwrap_or_default()
}

/// The two-sided p value of `result` under `shares`: twice the smaller tail.
pub(crate) fn two_sided(shares: &[f64], result: usize) -> f64 {
    let at_most: f64 = shares.iter().take(result + 1).sum();
    let at_least: f64 = shares.iter().skip(result).sum();
    (2.0 * at_most.min(at_least)).min(1.0)
}
