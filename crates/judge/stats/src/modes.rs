//! Test for run means that fall into two groups.

use crate::draw::Draws;
use crate::number::float;
use crate::sample::{Sample, Sorted};

/// With fewer runs no gap is wide enough to be distinguished from chance.
const VALUES_MIN: usize = 6;

/// The runs that make a group: one alone is an outlier, not a mode.
const GROUP_MIN: usize = 2;

/// Draws from the null distribution; the p value is a multiple of 1 / 2000.
const DRAWS: usize = 1999;

/// The widest gap between neighbours in a handful of run means, and how often
/// chance alone leaves one this wide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// The value below the gap.
    pub lower: f64,
    /// The value above it.
    pub upper: f64,
    /// Number of values lie below it.
    pub below: usize,
    /// Number of lie above it.
    pub above: usize,
    /// The gap times √(below · above), over the standard deviation of all.
    pub statistic: f64,
    /// Probability that values from one normal distribution have a gap whose statistic
    /// is at least this.
    pub p_value: f64,
}

/// True if these values, one a run, have two modes: the gap between neighbours
/// with at least two runs on each side that is the widest when weighted by how
/// evenly it divides them (Wainer and Schacht, 1978).
///
/// The null is as many values from one normal distribution, simulated from
/// `seed`; the alarm rate is the p value at which one alarms, for any
/// the mean and the deviation. Heavy tails alarm less often, since they widen
/// the deviation more than the gaps; a drift over time alarms no more than its
/// shape does, so judge values that are free of it (log ratios of pairs, say).
///
/// `None` below six values, where one is not finite, and where all are equal.
#[must_use]
pub fn gap_test(values: &[f64], seed: u64) -> Option<Gap> {
    let sample = Sample::try_new(values, VALUES_MIN).ok()?;
    let gap = widest_gap(sample)?;
    let mut draws = Draws::seeded(seed);
    let mut null = vec![0.0; values.len()];
    let mut at_least = 1;
    for _ in 0..DRAWS {
        null.fill_with(|| draws.normal());
        let drawn = Sample::try_new(&null, VALUES_MIN).ok().and_then(widest_gap);
        if drawn.is_some_and(|drawn| drawn.statistic >= gap.statistic) {
            at_least += 1;
        }
    }
    let p_value = float(at_least) / float(DRAWS + 1);
    Some(Gap { p_value, ..gap })
}

/// The widest weighted gap, with a p value still to come.
fn widest_gap(sample: Sample<'_>) -> Option<Gap> {
    let deviation = sample.standard_deviation()?;
    if deviation <= 0.0 {
        return None;
    }
    let sorted: Sorted = sample.sorted();
    let values = sorted.values();
    (GROUP_MIN..=values.len() - GROUP_MIN)
        .map(|below| {
            let (lower, upper) = (values[below - 1], values[below]);
            let above = values.len() - below;
            let weight = (float(below) * float(above)).sqrt();
            Gap {
                lower,
                upper,
                below,
                above,
                statistic: weight * (upper - lower) / deviation,
                p_value: 1.0,
            }
        })
        .max_by(|left, right| left.statistic.total_cmp(&right.statistic))
}
