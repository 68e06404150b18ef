//! Distance between the two sides of the clearest split of a segment.

use std::ops::Range;

use crate::number::float;

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
/// hide.
pub(super) fn clearest_split(values: &[f64], side_min: usize) -> Option<Split> {
    let count = values.len();
    let sums = PrefixSums::of(values);
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

/// Deviations from the mean, added up from the start.
struct PrefixSums(Vec<f64>);

impl PrefixSums {
    fn of(values: &[f64]) -> Self {
        let mut sums = Vec::with_capacity(values.len() + 1);
        let mut sum = 0.0;
        sums.push(sum);
        for deviation in deviations(values) {
            sum += deviation;
            sums.push(sum);
        }
        Self(sums)
    }

    /// The squared difference of the means before and after `index` over the sum
    /// of their squared errors, both up to the noise.
    fn squared_distance(&self, window: Range<usize>, index: usize) -> f64 {
        let stretch = |start: usize, end: usize| (float(end - start), self.0[end] - self.0[start]);
        let (before, sum_before) = stretch(window.start, index);
        let (after, sum_after) = stretch(index, window.end);
        let difference = sum_after / after - sum_before / before;
        difference * difference * before * after / (before + after)
    }
}

/// The deviations from the mean.
pub(super) fn deviations(values: &[f64]) -> Vec<f64> {
    let (mut count, mut mean) = (0.0, 0.0);
    for value in values {
        count += 1.0;
        mean += (value - mean) / count;
    }
    values.iter().map(|value| value - mean).collect()
}
