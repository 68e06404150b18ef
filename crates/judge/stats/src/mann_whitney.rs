//! Mann and Whitney's test of two columns by their ranks.

use crate::normal;
use crate::number::float;
use crate::ranks::{Ranks, two_sided, wins};
use crate::sample::Sample;

/// With more than this many numbers in both columns the normal approximation
/// serves.
const EXACT_MAX: usize = 8;

/// The longer column may have so many for the exact distribution, which takes
/// milliseconds then.
const EXACT_LONGER_MAX: usize = 500;

/// Mann–Whitney test: do numbers of one column tend to be larger than those of the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// In how many pairs, one of the baseline and one of the comparison, the
    /// baseline's is the larger; equal ones count half.
    pub u: f64,
    /// Probability that two columns of the same origin would give a `u` at least so far
    /// from the middle, on either side.
    pub p_value: f64,
    /// True if `p_value` is exact; else it is the normal approximation with
    /// correction for continuity and ties.
    pub exact: bool,
}

/// Mann and Whitney's test on both sides, as SciPy's `mannwhitneyu` does by
/// default: exact where one column has at most eight numbers (and the other at
/// most 500) and no two are equal.
///
/// `None` where a column is empty or has a number that is NaN or infinite.
#[must_use]
pub fn mann_whitney(baseline: &[f64], comparison: &[f64]) -> Option<MannWhitney> {
    Sample::try_new(baseline, 1).ok()?;
    Sample::try_new(comparison, 1).ok()?;
    let all: Vec<f64> = baseline.iter().chain(comparison).copied().collect();
    let ranks = Ranks::of(&all);
    let (left, right) = (baseline.len(), comparison.len());
    let of_baseline: usize = ranks.twice.iter().take(left).sum();
    let twice_u = of_baseline - left * (left + 1);
    let (short, long) = (left.min(right), left.max(right));
    let exact = short <= EXACT_MAX && long <= EXACT_LONGER_MAX && !ranks.has_ties();
    let p_value = if exact {
        two_sided(&wins(short, long), twice_u / 2)
    } else {
        approximate(left, right, &ranks, twice_u)
    };
    Some(MannWhitney {
        u: 0.5 * float(twice_u),
        p_value,
        exact,
    })
}

fn approximate(left: usize, right: usize, ranks: &Ranks, twice_u: usize) -> f64 {
    let pairs = float(left) * float(right);
    let count = float(left + right);
    let variance = pairs / 12.0 * (count + 1.0 - ranks.ties / (count * (count - 1.0)));
    let distance = 0.5 * (float(twice_u) - pairs).abs() - 0.5;
    if variance > 0.0 {
        (2.0 * normal::upper_tail(distance / variance.sqrt())).min(1.0)
    } else {
        1.0
    }
}

/// The smallest two-sided p value that columns of these lengths can reach: two in
/// the number of ways to split them.
#[must_use]
pub fn mann_whitney_p_min(left: usize, right: usize) -> f64 {
    2.0 / splits(left, right)
}

/// Number of ways to split `left` and `right` numbers.
fn splits(left: usize, right: usize) -> f64 {
    let all = left.saturating_add(right);
    // Far before this many numbers there are more ways than any test needs.
    (0..left.min(right).min(20)).fold(1.0, |ways, at| ways * float(all - at) / float(at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_choose_are_those_of_the_binomial() {
        assert!((splits(3, 3) - 20.0).abs() < 1e-9);
        assert!((splits(4, 4) - 70.0).abs() < 1e-9);
        assert!((splits(2, 5) - 21.0).abs() < 1e-9);
        assert!((mann_whitney_p_min(3, 3) - 0.1).abs() < 1e-9);
    }
}
