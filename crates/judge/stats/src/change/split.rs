//! Distance between the two sides of the clearest split of a segment.

use std::ops::Range;

/// Windows shorter than this show nothing that longer ones do not.
const WINDOW_MIN: usize = 10;

/// A place that divides a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// The first value of the second side, counted from the segment's start.
    pub(super) index: usize,
    /// Distance by which the levels of both sides lie apart, in standard errors up to a
    /// factor that is the same for all splits of all orders of the segment.
    pub(super) distance: f64,
}

/// The clearest split of a segment, each side having at least `side_min` (1 or
/// more) values; the first of equals. `None` where there is none, or all values
/// are the same.
///
/// Splits are looked for in the whole segment and in windows of half, a quarter
/// and so on of its length that overlap by half (after the seeded intervals of
/// Kovács and others, 2023), so a step that is taken back later does not
/// hide. `weights` are inverse variances, up to a factor.
pub(super) fn clearest_split(values: &[f64], weights: &[f64], side_min: usize) -> Option<Split> {
    let count = values.len();
    let sums = PrefixSums::of(values, weights);
    let mut best = Split {
        index: 0,
        distance: 0.0,
    };
    for window in windows(count, side_min) {
        for index in window.start + side_min..=window.end - side_min {
            let distance = sums.squared_distance(window.clone(), index);
            if distance > best.distance {
                best = Split { index, distance };
            }
        }
    }
    (best.distance > 0.0).then(|| Split {
        distance: best.distance.sqrt(),
        ..best
    })
}

/// The whole segment, and windows of half, a quarter and so on of its length that overlap by half.
pub(super) fn windows(count: usize, side_min: usize) -> Vec<Range<usize>> {
    let mut result = Vec::new();
    let mut window = count;
    while window >= 2 * side_min && (window == count || window >= WINDOW_MIN) {
        let step = window.div_ceil(2);
        for start in (0..=count - window).step_by(step) {
            // The last window reaches to the end of the segment.
            let left = count - (start + window);
            let end = if left < step { count } else { start + window };
            result.push(start..end);
        }
        window /= 2;
    }
    result
}

/// Weights and weighted deviations from the mean, added up from the start.
struct PrefixSums(Vec<(f64, f64)>);

impl PrefixSums {
    fn of(values: &[f64], weights: &[f64]) -> Self {
        let (_, mean) = weighted_mean(values, weights);
        let mut sums = Vec::with_capacity(values.len() + 1);
        let (mut weight, mut sum) = (0.0, 0.0);
        sums.push((weight, sum));
        for (value, item) in values.iter().zip(weights) {
            weight += item;
            sum += item * (value - mean);
            sums.push((weight, sum));
        }
        Self(sums)
    }

    /// The squared difference of the means before and after `index` over the sum
    /// of their squared errors, both up to the noise.
    fn squared_distance(&self, window: Range<usize>, index: usize) -> f64 {
        let stretch = |start: usize, end: usize| {
            let (left, right) = (self.0[start], self.0[end]);
            (right.0 - left.0, right.1 - left.1)
        };
        let (before, sum_before) = stretch(window.start, index);
        let (after, sum_after) = stretch(index, window.end);
        let difference = sum_after / after - sum_before / before;
        difference * difference * before * after / (before + after)
    }
}

/// The sum of the weights, and the mean.
fn weighted_mean(values: &[f64], weights: &[f64]) -> (f64, f64) {
    let (mut weight, mut mean) = (0.0, 0.0);
    for (value, item) in values.iter().zip(weights) {
        weight += item;
        mean += item / weight * (value - mean);
    }
    (weight, mean)
}

/// The deviations from the mean, in units of what each value's own should be.
pub(super) fn standardised(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let (_, mean) = weighted_mean(values, weights);
    values
        .iter()
        .zip(weights)
        .map(|(value, weight)| (value - mean) * weight.sqrt())
        .collect()
}
