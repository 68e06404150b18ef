//! Places that divide a segment, and the windows in which they are looked for.

use std::ops::Range;

/// Windows shorter than this show nothing that longer ones do not.
const WINDOW_MIN: usize = 10;

/// A place that divides a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// The first value of the second side, counted from the segment's start.
    pub(super) index: usize,
    /// Likelihood ratio of the step, as a normal score.
    pub(super) distance: f64,
}

/// The whole segment, and windows of half, a quarter and so on of its length that overlap by half
/// (after the seeded intervals of Kovács and others, 2023), so a step that is taken back later does
/// not hide.
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

/// The deviations from the mean.
pub(super) fn deviations(values: &[f64]) -> Vec<f64> {
    let (mut count, mut mean) = (0.0, 0.0);
    for value in values {
        count += 1.0;
        mean += (value - mean) / count;
    }
    values.iter().map(|value| value - mean).collect()
}
