//! Change points as Apache Otava 0.8.0 finds them.

use super::energy::{Candidate, best_split};
use super::{ChangeError, ChangePoint, describe};
use crate::number::float;
use crate::sample::Sample;
use crate::student::StudentT;

/// Otava's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtavaOptions {
    /// Values in a window (`--window`).
    pub window: usize,
    /// The p value that a change point stays below (`-P`).
    pub p_value: f64,
    /// The magnitude that a change point exceeds, as a share (`--magnitude`).
    pub magnitude: f64,
}

impl Default for OtavaOptions {
    /// Otava's own.
    fn default() -> Self {
        Self {
            window: 50,
            p_value: 0.001,
            magnitude: 0.0,
        }
    }
}

/// The change points that Otava 0.8.0 finds in this history, in order.
///
/// Windows that overlap by half are split by energy distance as long as a t test
/// of the two sides rejects at ten times the p value; then what does not hold in
/// the whole history is taken out again, the weakest first. Its quirks are kept:
/// standard deviations have divisor n, and the t test uses them unchanged.
///
/// # Errors
/// [`ChangeError`] for no values, values that are not finite, and a window below
/// two.
pub fn otava(values: &[f64], options: &OtavaOptions) -> Result<Vec<ChangePoint>, ChangeError> {
    Sample::try_new(values, 1)?;
    if options.window < 2 {
        let result = options.window;
        return Err(ChangeError::Window { actual: result });
    }
    let mut indices = weak_indices(values, options.window, relaxed(options.p_value));
    indices.sort_unstable();
    let mut points: Vec<ChangePoint> = Vec::new();
    for place in 0..indices.len() {
        points.push(judge(values, &indices, place));
    }
    while let Some(weakest) = weakest(&points, options) {
        points.remove(weakest);
        let indices: Vec<usize> = points.iter().map(|point| point.index).collect();
        // Otava looks again at the two that followed what went away, and leaves
        // the one before it as it was.
        for place in [weakest, weakest + 1] {
            if let Some(point) = points.get_mut(place) {
                *point = judge(values, &indices, place);
            }
        }
    }
    Ok(points)
}

/// The p value of the first pass.
fn relaxed(p_value: f64) -> f64 {
    if p_value < 0.05 {
        10.0 * p_value
    } else if p_value < 0.5 {
        2.0 * p_value
    } else {
        p_value
    }
}

/// Candidates from all windows, each once.
fn weak_indices(values: &[f64], window: usize, p_value: f64) -> Vec<usize> {
    let mut result: Vec<usize> = Vec::new();
    let mut start = 0;
    while start < values.len() {
        let end = (start + window).min(values.len());
        let indices = divide(&values[start..end], p_value);
        let last = indices.last().map_or(0, |index| start + index);
        for index in indices {
            if !result.contains(&(start + index)) {
                result.push(start + index);
            }
        }
        start = last.max(start + window / 2);
    }
    result
}

/// Divides a window as long as the best split of all its segments is
/// significant; the indices in order.
fn divide(values: &[f64], p_value: f64) -> Vec<usize> {
    let mut indices: Vec<usize> = Vec::new();
    while let Some((candidate, start, end)) = best_of_segments(values, &indices) {
        let split = candidate.index;
        let test = TwoSides::of(&values[start..split], &values[split..end]);
        // What is not a number is not significant.
        if test.p_value.is_nan() || test.p_value > p_value {
            break;
        }
        let place = indices.partition_point(|&index| index < split);
        indices.insert(place, split);
    }
    indices
}

/// The best split of the segments between these indices, with its segment.
fn best_of_segments(values: &[f64], indices: &[usize]) -> Option<(Candidate, usize, usize)> {
    let mut best: Option<(Candidate, usize, usize)> = None;
    let starts = std::iter::once(0).chain(indices.iter().copied());
    let ends = indices.iter().copied().chain([values.len()]);
    for (start, end) in starts.zip(ends) {
        let Some(candidate) = best_split(values, start..end) else {
            continue;
        };
        if best.is_none_or(|(best, ..)| candidate.distance > best.distance) {
            best = Some((candidate, start, end));
        }
    }
    best
}

/// The change point at `indices[place]`, between its neighbours.
fn judge(values: &[f64], indices: &[usize], place: usize) -> ChangePoint {
    let index = indices[place];
    let start = if place == 0 { 0 } else { indices[place - 1] };
    let end = indices.get(place + 1).copied().unwrap_or(values.len());
    let sides = TwoSides::of(&values[start..index], &values[index..end]);
    ChangePoint {
        index,
        mean_before: sides.means[0],
        standard_deviation_before: sides.deviations[0],
        mean_after: sides.means[1],
        standard_deviation_after: sides.deviations[1],
        p_value: sides.p_value,
    }
}

/// The change point goes next, if any: the one with the largest p value, and
/// where all of these hold, the one that changes least.
fn weakest(points: &[ChangePoint], options: &OtavaOptions) -> Option<usize> {
    let least_certain = first_by(points, |first, second| first.p_value > second.p_value)?;
    let p_value = points[least_certain].p_value;
    if p_value.is_nan() || p_value >= options.p_value {
        return Some(least_certain);
    }
    let smallest = first_by(points, |first, second| {
        first.magnitude() < second.magnitude()
    })?;
    (points[smallest].magnitude() <= options.magnitude).then_some(smallest)
}

/// The first that none after it is `beyond`.
fn first_by(
    points: &[ChangePoint],
    beyond: impl Fn(&ChangePoint, &ChangePoint) -> bool,
) -> Option<usize> {
    (0..points.len()).reduce(|best, next| {
        if beyond(&points[next], &points[best]) {
            next
        } else {
            best
        }
    })
}

/// Student's t test of equal variances, from standard deviations with divisor n.
struct TwoSides {
    means: [f64; 2],
    deviations: [f64; 2],
    p_value: f64,
}

impl TwoSides {
    fn of(left: &[f64], right: &[f64]) -> Self {
        let (left_mean, left_deviation) = describe(left, 0);
        let (right_mean, right_deviation) = describe(right, 0);
        let (first, second) = (float(left.len()), float(right.len()));
        let degrees = first + second - 2.0;
        let squares =
            (first - 1.0) * left_deviation.powi(2) + (second - 1.0) * right_deviation.powi(2);
        let error = (squares / degrees * (1.0 / first + 1.0 / second)).sqrt();
        let t = (left_mean - right_mean) / error;
        // No degrees, no verdict; beyond the most that there are, normal enough.
        let p_value = StudentT::try_new(degrees.min(1e5)).map_or(1.0, |student| {
            if t.is_infinite() {
                0.0
            } else {
                student.two_sided(t)
            }
        });
        Self {
            means: [left_mean, right_mean],
            deviations: [left_deviation, right_deviation],
            p_value,
        }
    }
}
