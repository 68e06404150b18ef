//! Stillwell's own test of a trend.

use stillwell_stats::change::{self, ChangeOptions};
use stillwell_units::float_from_u64;

use super::Trend;
use super::judge::Found;

/// More points are never said to be needed.
const POINTS_NEEDED_MAX: usize = 64;

/// Largest correlation of neighbouring ratios to an anchor that the alarm rate holds for. Ratios are
/// correlated where, for example, a layout or a kernel stays for several results.
const CORRELATION_MAX: f64 = 0.6;

/// Result of a test of a trend.
#[derive(Debug)]
pub(super) struct Tested {
    pub(super) result: Vec<Found>,
    pub(super) p_value: Option<f64>,
}

/// Each stretch is tested by itself, at the share of the alarm rate that it has
/// of the points: together they raise no more false alarms than that. All points count the
/// same: a result that looks changed runs more pairs, so weights would depend on the values.
pub(super) fn detect(trend: &Trend, alarm_rate: f64) -> Tested {
    let count = trend.points.len();
    let ends = trend.stretches.iter().skip(1).copied().chain([count]);
    let mut tested = Tested {
        result: Vec::new(),
        p_value: None,
    };
    for (&start, end) in trend.stretches.iter().zip(ends) {
        let points = &trend.points[start..end];
        let parts = float(count) / float(points.len());
        if points.len() < points_needed(alarm_rate / parts) {
            continue;
        }
        let options = ChangeOptions {
            alarm_rate: alarm_rate / parts,
            correlation_max: CORRELATION_MAX,
            ..ChangeOptions::default()
        };
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        // Numbers that cannot be tested show no change.
        let Ok(detection) = change::detect(&values, &options) else {
            continue;
        };
        let shared = |p_value: f64| (p_value * parts).min(1.0);
        tested
            .result
            .extend(detection.points.iter().map(|point| Found {
                index: start + point.index,
                p_value: shared(point.p_value),
                plain: None,
            }));
        let p_value = shared(detection.p_value);
        let least = tested.p_value.map_or(p_value, |right| p_value.min(right));
        tested.p_value = Some(least);
    }
    tested
}

/// The fewest points of a stretch in which this alarm rate lets anything be
/// found, however large a step in their middle is: with fewer, the points come
/// to that order, or its mirror image, by chance more often than that.
pub(super) fn points_needed(alarm_rate: f64) -> usize {
    let (mut points, mut halves) = (2, 2.0);
    // Alarm rates below any that can be meant come to an end, too.
    while (points < super::POINTS_MIN || 2.0 / halves > alarm_rate) && points < POINTS_NEEDED_MAX {
        points += 1;
        // In so many ways a half of them can be chosen.
        halves *= match points % 2 {
            0 => 2.0,
            _ => float(points) / float(points / 2 + 1),
        };
    }
    points
}

/// True if the latest stretch of the trend has as many points as that.
pub(super) fn can_report(trend: &Trend, alarm_rate: f64) -> bool {
    let count = trend.points.len();
    let ends = trend.stretches.iter().skip(1).copied().chain([count]);
    let lengths = trend
        .stretches
        .iter()
        .zip(ends)
        .map(|(start, end)| end - start);
    lengths
        .last()
        .is_some_and(|length| length >= points_needed(alarm_rate * float(length) / float(count)))
}

fn float(count: usize) -> f64 {
    float_from_u64(count as u64)
}
