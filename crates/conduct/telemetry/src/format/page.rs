//! All counts up to now.

use stillwell_metric::{Histogram, Metric};
use stillwell_units::{Nanos, RunId, float_from_u64};

/// Upper ends of the buckets into which times are sorted for formats that want
/// buckets; longer ones are in one more.
pub(crate) const BOUNDS: [Nanos; 22] = bounds();

/// Quantiles for formats without buckets.
pub(crate) const RECENT_QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)];

/// 1, 2 and 5 of every power of ten from 10 µs to 100 s.
const fn bounds() -> [Nanos; 22] {
    let mut bounds = [Nanos::ZERO; 22];
    let (mut index, mut power) = (0, 10_000);
    while index < bounds.len() {
        let factor = match index % 3 {
            0 => 1,
            1 => 2,
            _ => 5,
        };
        bounds[index] = Nanos::new(factor * power);
        if index % 3 == 2 {
            power *= 10;
        }
        index += 1;
    }
    bounds
}

/// Origin of counts and traces.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Origin {
    /// Distinguishes them from those of another load.
    pub(crate) run: RunId,
    /// Stillwell's version.
    pub(crate) version: &'static str,
    /// Labels that all series carry, beside our own.
    pub(crate) labels: Vec<(String, String)>,
}

/// All that has been counted until one moment. The points of all pages of one
/// load are the same ones in the same order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricsPage {
    /// When counting began, since 1970.
    pub(crate) started: Nanos,
    /// When this was so, since 1970.
    pub(crate) taken: Nanos,
    /// The points.
    pub(crate) points: Vec<MetricPoint>,
    /// The same for receivers of statsd with names of their own, if there are any.
    pub(crate) named: Vec<NamedPoint>,
}

/// A series of one worker under a given name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NamedPoint {
    /// Number of the worker.
    pub(crate) worker: usize,
    /// Its name.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: NamedValue,
}

/// The value of a series under a given name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum NamedValue {
    /// A total that never falls.
    Counter(u64),
    /// Times.
    Times {
        /// Number of times since the beginning.
        count: u64,
        /// Those since the last flush, each with its number.
        recent: Vec<(Nanos, u64)>,
    },
}

impl NamedPoint {
    /// Total of a counter, number of times.
    pub(crate) const fn total(&self) -> u64 {
        match &self.value {
            NamedValue::Counter(total) => *total,
            NamedValue::Times { count, .. } => *count,
        }
    }
}

/// One series and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricPoint {
    /// The metric.
    pub(crate) metric: Metric,
    /// The labels that distinguish this series from others of the metric.
    pub(crate) labels: Vec<(String, String)>,
    /// Its value.
    pub(crate) value: PointValue,
}

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PointValue {
    /// A total that never falls.
    Counter(u64),
    /// A value that rises and falls, in the unit of the metric.
    Gauge(f64),
    /// Times.
    Times(Box<Times>),
}

/// Times since the beginning, sorted into buckets, and the quantiles of the
/// latest of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Times {
    /// Number of values.
    pub(crate) count: u64,
    /// Their sum in seconds.
    pub(crate) sum_seconds: f64,
    /// The number of are in each bucket alone; the last holds what is beyond all ends.
    pub(crate) buckets: [u64; BOUNDS.len() + 1],
    /// The shortest and the longest; nothing where there are none.
    pub(crate) extremes: Option<[Nanos; 2]>,
    /// [`RECENT_QUANTILES`] of those since the last flush; nothing where there
    /// are none.
    pub(crate) recent: Option<[Nanos; RECENT_QUANTILES.len()]>,
}

impl MetricPoint {
    /// Returns the labels as text.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.labels.iter();
        labels.map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

impl Times {
    /// `all` since the beginning, `recent` since the last flush.
    pub(crate) fn new(all: &Histogram<u64>, recent: &Histogram<u64>) -> Self {
        let mut buckets = [0; BOUNDS.len() + 1];
        let mut sum = 0.0;
        for cell in all.iter_recorded() {
            let value = cell.value_iterated_to();
            // A cell that reaches beyond a bound begins at it.
            let least = Nanos::new(all.lowest_equivalent(value));
            let bucket = BOUNDS.partition_point(|bound| *bound < least);
            buckets[bucket] += cell.count_at_value();
            let middle = float_from_u64(all.median_equivalent(value));
            sum += middle * float_from_u64(cell.count_at_value());
        }
        let quantiles =
            RECENT_QUANTILES.map(|(_, quantile)| Nanos::new(recent.value_at_quantile(quantile)));
        Self {
            count: all.len(),
            sum_seconds: sum / 1e9,
            buckets,
            extremes: (!all.is_empty()).then(|| [all.min(), all.max()].map(Nanos::new)),
            recent: (!recent.is_empty()).then_some(quantiles),
        }
    }

    /// The ends of the buckets in seconds, each with how many times are up to it.
    pub(crate) fn up_to(&self) -> impl Iterator<Item = (f64, u64)> + use<'_> {
        let mut count = 0;
        BOUNDS
            .iter()
            .zip(&self.buckets)
            .map(move |(bound, in_bucket)| {
                count += in_bucket;
                (bound.as_secs_f64(), count)
            })
    }
}

#[cfg(test)]
mod tests {
    use stillwell_metric::empty_histogram;

    use super::*;

    #[test]
    fn bounds_rise_from_ten_microseconds_to_a_hundred_seconds() {
        assert!(BOUNDS.is_sorted());
        assert_eq!(BOUNDS[0], Nanos::new(10_000));
        assert_eq!(BOUNDS[1], Nanos::new(20_000));
        assert_eq!(BOUNDS[3], Nanos::new(100_000));
        assert_eq!(BOUNDS[21], Nanos::from_secs(100));
    }

    #[test]
    fn every_time_is_in_one_bucket_and_those_at_an_end_within_it() {
        let mut all = empty_histogram();
        for value in [1, 10_000, 10_020, 1_000_000, 200_000_000_000] {
            all.record(value).unwrap();
        }
        let mut recent = empty_histogram();
        recent.record(1_000_000).unwrap();
        let times = Times::new(&all, &recent);
        let up_to: Vec<u64> = times.up_to().map(|(_, count)| count).collect();
        assert_eq!(up_to[..3], [2, 3, 3]);
        assert_eq!(up_to[6], 4, "1 ms and less");
        assert_eq!(times.buckets.iter().sum::<u64>(), times.count);
        assert!((times.sum_seconds - 200.001_020_021).abs() < 0.1);
        let recent = times.recent.unwrap();
        assert!(
            recent
                .iter()
                .all(|time| time.as_u64().abs_diff(1_000_000) < 1000)
        );
        assert_eq!(
            Times::new(&empty_histogram(), &empty_histogram()).extremes,
            None
        );
    }
}
