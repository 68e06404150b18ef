//! Wilcoxon's signed ranks, and the estimate that goes with them.

use crate::normal;
use crate::number::float;
use crate::ranks::{Ranks, subset_sums, two_sided};
use crate::sample::{Sample, Sorted};

/// Above this many numbers the normal approximation serves.
const EXACT_MAX: usize = 50;

/// Above this many it serves where some are equal or zero.
const EXACT_WITH_TIES_MAX: usize = 13;

/// Wilcoxon's signed-rank test: do some numbers lie around zero, by their ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wilcoxon {
    /// The smaller of the sums of the ranks of the positive and of the negative
    /// numbers, by distance from zero.
    pub statistic: f64,
    /// Probability that numbers that are as often above zero as below, at every
    /// distance, would give sums at least so different.
    pub p_value: f64,
    /// True if `p_value` is exact; else it is the normal approximation, without
    /// correction for continuity.
    pub exact: bool,
}

/// Wilcoxon's signed rank test of these differences or log ratios against zero,
/// on both sides, as SciPy's `wilcoxon` does by default: zeros are left out and
/// equal distances share their ranks. Exact for up to 50 numbers, with ties or
/// zeros for up to 13. Five numbers or fewer never give a p value below 0.05.
///
/// `None` for no number, and for one that is NaN or infinite.
#[must_use]
pub fn wilcoxon_signed_rank(values: &[f64]) -> Option<Wilcoxon> {
    Sample::try_new(values, 1).ok()?;
    let apart: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| value.abs() > 0.0)
        .collect();
    let distances: Vec<f64> = apart.iter().map(|value| value.abs()).collect();
    let ranks = Ranks::of(&distances);
    let signed = apart.iter().zip(&ranks.twice);
    let positive: usize = signed
        .filter(|(value, _)| **value > 0.0)
        .map(|(_, rank)| rank)
        .sum();
    let all: usize = ranks.twice.iter().sum();
    let plain = apart.len() == values.len() && !ranks.has_ties();
    let exact = values.len()
        <= if plain {
            EXACT_MAX
        } else {
            EXACT_WITH_TIES_MAX
        };
    let p_value = if apart.is_empty() {
        1.0
    } else if exact {
        two_sided(&subset_sums(&ranks.twice), positive)
    } else {
        approximate(apart.len(), &ranks, positive)
    };
    Some(Wilcoxon {
        statistic: 0.5 * float(positive.min(all - positive)),
        p_value,
        exact: exact || apart.is_empty(),
    })
}

fn approximate(count: usize, ranks: &Ranks, twice_positive: usize) -> f64 {
    let count = float(count);
    let expected = 0.25 * count * (count + 1.0);
    let squares = count * (count + 1.0) * (2.0 * count + 1.0) - 0.5 * ranks.ties;
    let deviations = (0.5 * float(twice_positive) - expected) / (squares / 24.0).sqrt();
    2.0 * normal::upper_tail(deviations.abs())
}

/// The Hodges–Lehmann estimate of the centre of these numbers: the median of the
/// means of all pairs of them, each with itself included. One odd number moves it
/// little. All n(n + 1)/2 means are in memory at a time.
///
/// `None` for no number, and for one that is NaN or infinite.
#[must_use]
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    walsh_means(values).map(|means| means.median())
}

fn walsh_means(values: &[f64]) -> Option<Sorted> {
    Sample::try_new(values, 1).ok()?;
    let rows = values.iter().enumerate();
    let means = rows.flat_map(|(index, value)| {
        let following = &values[index..];
        following
            .iter()
            .map(move |second| 0.5 * value + 0.5 * second)
    });
    Some(Sorted::of(means))
}

/// The smallest two-sided p value that so many numbers can reach: half of all 2ⁿ
/// signs are as far on either side as the furthest.
#[must_use]
pub fn wilcoxon_p_min(numbers: usize) -> f64 {
    2.0 * (-float(numbers)).exp2()
}
