//! Slope of a gauge, for any steps that it takes.

use stillwell_stats::Sample;
use stillwell_units::Moment;

/// Points that slopes are taken between: more are averaged in groups, so
/// the number of slopes stays bounded.
const POINTS_MAX: usize = 300;

/// Fewest points whose slope is reported.
const POINTS_MIN: usize = 4;

/// The growth of a gauge for each minute, as a share of its mean.
///
/// It is the median slope between all pairs of points (Theil and Sen): one step,
/// such as an allocator's, moves less than half of them and is not taken for a
/// leak, whereas a straight line through all points would be. `None` with fewer
/// than four points, and where the mean is not above zero.
pub(super) fn share_per_minute(points: &[(Moment, f64)]) -> Option<f64> {
    let points = thinned(points);
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    let mean = Sample::try_new(&values, POINTS_MIN).ok()?.mean();
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (index, (from, low)) in points.iter().enumerate() {
        for (to, high) in &points[index + 1..] {
            if to > from {
                slopes.push((high - low) / (to - from));
            }
        }
    }
    let slope = Sample::try_new(&slopes, 1).ok()?.median();
    (mean > 0.0).then(|| slope * 60.0 / mean)
}

/// At most [`POINTS_MAX`] points, as seconds from the first and values.
fn thinned(points: &[(Moment, f64)]) -> Vec<(f64, f64)> {
    let Some((start, _)) = points.first() else {
        return Vec::new();
    };
    let group = points.len().div_ceil(POINTS_MAX).max(1);
    let mean = |values: Vec<f64>| Sample::try_new(&values, 1).ok().map(|sample| sample.mean());
    let groups = points.chunks(group).filter_map(|points| {
        let times = points.iter().map(|(at, _)| at.since(*start).as_secs_f64());
        let values = points.iter().map(|(_, value)| *value);
        Some((mean(times.collect())?, mean(values.collect())?))
    });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use stillwell_units::float_from_u64;

    use super::*;

    fn reported(value: impl Fn(u64) -> f64, seconds: u64) -> Option<f64> {
        let points: Vec<(Moment, f64)> = (0..seconds)
            .map(|second| (Moment::new(second * 1_000_000_000), value(second)))
            .collect();
        share_per_minute(&points)
    }

    #[test]
    fn a_leak_is_reported_and_a_step_is_not() {
        let leak = reported(|second| 1e6 + 1e4 * float_from_u64(second), 101).unwrap();
        // 600 kB a minute of a mean of 1.5 MB.
        assert!((leak - 0.4).abs() < 1e-9, "{leak}");
        let step = |at: u64| reported(move |second| if second < at { 1e6 } else { 2e6 }, 60);
        for at in [1, 10, 20, 45, 59] {
            assert!(step(at).unwrap().abs() < 1e-12, "{at}");
        }
        assert_eq!(reported(|_| 5e6, 20), Some(0.0));
    }

    #[test]
    fn a_long_run_is_thinned_and_a_short_one_not_reported() {
        let leak = reported(|second| 1e6 + 100.0 * float_from_u64(second), 10_000).unwrap();
        // 6 kB a minute of a mean of 1.5 MB.
        assert!((leak / 0.004 - 1.0).abs() < 0.01, "{leak}");
        assert_eq!(reported(|_| 1.0, 3), None);
        assert_eq!(reported(|_| 0.0, 9), None);
        assert_eq!(share_per_minute(&[]), None);
    }
}
