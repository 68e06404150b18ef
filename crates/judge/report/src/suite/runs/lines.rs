//! The lines of one run, in bins of equal length.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use stillwell_capture::{Capture, Manifest, Point, Series, SeriesTable};
use stillwell_metric::{
    Metric, Value, add_histogram, catalogue, decode_histogram, empty_histogram,
};
use stillwell_plan::Phase;
use stillwell_units::{Moment, Nanos, float_from_u64};

use crate::document::AxisScale;

/// Points of the latency distribution: up to p99.99 in steps of a sixth of a decade.
pub(crate) const PERCENTILES: usize = 25;

/// Samples that must be slower than the last percentile: one sample must not decide it.
const TAIL_MIN: f64 = 10.0;

/// A quantity over time.
pub(crate) struct Quantity {
    /// Name of the axis.
    pub(crate) name: &'static str,
    /// Unit of the axis.
    pub(crate) unit: &'static str,
    /// Scale of the axis.
    pub(crate) scale: AxisScale,
    /// True if it is only drawn when there is no line before.
    pub(crate) is_fallback: bool,
}

const fn quantity(name: &'static str, unit: &'static str) -> Quantity {
    Quantity {
        name,
        unit,
        scale: AxisScale::FromZero,
        is_fallback: false,
    }
}

/// All quantities, in the order of the charts and of [`RunLines::lines`].
pub(crate) const QUANTITIES: [Quantity; 6] = [
    quantity("received per second", "B"),
    Quantity {
        is_fallback: true,
        ..quantity("sent per second", "B")
    },
    Quantity {
        scale: AxisScale::Log,
        ..quantity("latency p50", "ns")
    },
    Quantity {
        scale: AxisScale::Log,
        ..quantity("latency p99", "ns")
    },
    quantity("CPU cores used by the target", ""),
    quantity("memory of the target", "B"),
];

/// Returns the start and the end of the load, drain included.
pub(crate) fn load_of(manifest: &Manifest) -> Option<(Moment, Moment)> {
    manifest.measured()?;
    let is_load = |phase: Phase| matches!(phase, Phase::Warmup | Phase::Measure | Phase::Drain);
    let marks = &manifest.phases;
    let first = marks.iter().position(|mark| is_load(mark.phase))?;
    let end = marks[first..].iter().find(|mark| !is_load(mark.phase));
    let end = end.or_else(|| marks.last())?.moment;
    (end > marks[first].moment).then_some((marks[first].moment, end))
}

/// The time axis of all runs of an experiment, from the start of the load.
#[derive(Clone, Debug)]
pub(crate) struct TimeSpan {
    length: Nanos,
    /// Number of bins.
    pub(crate) bins: usize,
    /// The phases, in seconds from the start.
    pub(crate) shades: Vec<(String, (f64, f64))>,
}

impl TimeSpan {
    /// Returns the axis that fits a run, with a bin for each sample up to `points_max`.
    pub(crate) fn of(capture: &Capture, points_max: usize) -> Option<Self> {
        let (start, end) = load_of(&capture.manifest)?;
        let samples = capture.series.iter();
        let samples = samples.map(|(_, _, series)| series.between(start, end).len());
        let bins = samples.max()?.saturating_sub(1).clamp(1, points_max.max(1));
        let marks = &capture.manifest.phases;
        let shades = marks.iter().zip(marks.iter().skip(1));
        let shades = shades.filter_map(|(mark, next)| {
            let name = match mark.phase {
                Phase::Warmup => "warm-up",
                Phase::Drain => "drain",
                _ => return None,
            };
            let second = |moment: Moment| moment.since(start).as_secs_f64();
            Some((name.to_owned(), (second(mark.moment), second(next.moment))))
        });
        Some(Self {
            length: end.since(start),
            bins,
            shades: shades.filter(|(_, (start, end))| end > start).collect(),
        })
    }

    /// Returns an axis with a bin for each second.
    #[cfg(test)]
    pub(crate) fn of_seconds(bins: usize, shades: Vec<(String, (f64, f64))>) -> Self {
        Self {
            length: Nanos::from_secs(bins as u64),
            bins,
            shades,
        }
    }

    /// Returns the middle of a bin, in seconds from the start.
    pub(crate) fn middle(&self, bin: usize) -> f64 {
        let bins = float_from_u64(self.bins as u64);
        (float_from_u64(bin as u64) + 0.5) * self.length.as_secs_f64() / bins
    }

    /// Returns the bin of the middle between two points.
    fn bin(&self, start: Moment, points: (&Point, &Point)) -> Option<usize> {
        let middle = points.0.moment.as_u64().midpoint(points.1.moment.as_u64());
        let after = u128::from(middle.checked_sub(start.as_u64())?);
        let bin = after * self.bins as u128 / u128::from(self.length.as_u64().max(1));
        usize::try_from(bin).ok().filter(|bin| *bin < self.bins)
    }
}

type Line = Vec<Option<f64>>;

/// The lines of one run.
#[derive(Debug)]
pub(crate) struct RunLines {
    /// A line for each of [`QUANTITIES`].
    pub(crate) lines: [Line; QUANTITIES.len()],
    /// Latencies at [`inverse`] of each place.
    pub(crate) percentiles: Vec<f64>,
}

impl RunLines {
    /// Returns the lines of a run whose load began at `start`.
    pub(crate) fn of(capture: &Capture, span: &TimeSpan, start: Moment) -> Self {
        let rates = |metric| growth(&capture.series, metric, span, start);
        let received = Some(rates(catalogue::BYTES_RECEIVED)).filter(has_points);
        let received = received.unwrap_or_else(|| rates(catalogue::TOTAL_BYTES_RECEIVED));
        let [times, response] = [catalogue::EVENT_LATENCY, catalogue::RESPONSE_TIME]
            .map(|metric| latencies(&capture.series, metric, span, start));
        let times = if times.1.is_empty() { response } else { times };
        let quantile = |share: f64| {
            let mut line = vec![None; span.bins];
            for (bin, times) in &times.0 {
                line[*bin] = Some(float_from_u64(times.value_at_quantile(share).max(1)));
            }
            line
        };
        let mut cpu = rates(catalogue::TARGET_CPU);
        for cores in cpu.iter_mut().flatten() {
            *cores /= 1e9;
        }
        Self {
            lines: [
                received,
                rates(catalogue::BYTES_WRITTEN),
                quantile(0.5),
                quantile(0.99),
                cpu,
                means(&capture.series, catalogue::TARGET_RSS, span, start),
            ],
            percentiles: percentiles(&times.1),
        }
    }
}

fn has_points(line: &Line) -> bool {
    line.iter().any(Option::is_some)
}

/// Calls `add` with the bin of each two neighbouring points until the end of the load. Part of the time between the
/// points around the end has no load, so a rate there is that of neither phase, and a line to a rate of the drain
/// would fall through the measured phase.
fn for_steps<'a>(
    series: &'a Series,
    span: &TimeSpan,
    start: Moment,
    mut add: impl FnMut(usize, &'a Point, &'a Point),
) {
    for (from, to) in series.points.iter().zip(series.points.iter().skip(1)) {
        let is_load = matches!(to.phase, Phase::Warmup | Phase::Measure);
        if let Some(bin) = span.bin(start, (from, to)).filter(|_| is_load) {
            add(bin, from, to);
        }
    }
}

/// Returns the sum over all series of a metric of `part` per second, for each bin with samples.
fn summed(
    table: &SeriesTable,
    metric: Metric,
    span: &TimeSpan,
    start: Moment,
    part: impl Fn(f64, f64, f64) -> f64,
) -> Line {
    let mut line = vec![None; span.bins];
    for (_, series) in table.of(metric) {
        let mut bins = vec![(0.0, 0.0); span.bins];
        for_steps(series, span, start, |bin, from, to| {
            let seconds = to.moment.since(from.moment).as_secs_f64();
            if let (Some(from), Some(to)) = (from.value.number(), to.value.number()) {
                bins[bin].0 += part(from, to, seconds);
                bins[bin].1 += seconds;
            }
        });
        for (total, (sum, seconds)) in line.iter_mut().zip(bins) {
            if seconds > 0.0 {
                *total.get_or_insert(0.0) += sum / seconds;
            }
        }
    }
    line
}

/// Returns the growth of a counter per second.
fn growth(table: &SeriesTable, metric: Metric, span: &TimeSpan, start: Moment) -> Line {
    summed(table, metric, span, start, |from, to, _| {
        (to - from).max(0.0)
    })
}

/// Returns the mean of a gauge over time.
fn means(table: &SeriesTable, metric: Metric, span: &TimeSpan, start: Moment) -> Line {
    summed(table, metric, span, start, |from, to, seconds| {
        f64::midpoint(from, to) * seconds
    })
}

/// Returns the times of each bin, and those of the measured phase together.
fn latencies(
    table: &SeriesTable,
    metric: Metric,
    span: &TimeSpan,
    start: Moment,
) -> (BTreeMap<usize, Histogram<u64>>, Histogram<u64>) {
    let mut bins = BTreeMap::new();
    let mut measured = empty_histogram();
    for (_, series) in table.of(metric) {
        for_steps(series, span, start, |bin, from, to| {
            let Value::Histogram(bytes) = &to.value else {
                return;
            };
            let Some(times) = decode_histogram(bytes).filter(|times| !times.is_empty()) else {
                return;
            };
            add_histogram(bins.entry(bin).or_insert_with(empty_histogram), &times);
            if from.phase == Phase::Measure {
                add_histogram(&mut measured, &times);
            }
        });
    }
    (bins, measured)
}

/// Returns 1 / (1 − share) of the percentile at a place.
pub(crate) fn inverse(place: usize) -> f64 {
    10.0_f64.powf(float_from_u64(place as u64) / 6.0)
}

/// Returns the latencies at the percentiles that the samples can resolve.
fn percentiles(times: &Histogram<u64>) -> Vec<f64> {
    let count = float_from_u64(times.len());
    (0..PERCENTILES)
        .map(inverse)
        .take_while(|inverse| *inverse * TAIL_MIN <= count)
        .map(|inverse| float_from_u64(times.value_at_quantile(1.0 - 1.0 / inverse).max(1)))
        .collect()
}

#[cfg(test)]
mod tests {
    use stillwell_metric::{Kind, Labels, SeriesName, encode_histogram};

    use super::*;

    /// A span of four seconds in `bins` bins, and a table of samples at each second from 10 s on.
    fn table(metric: Metric, bins: usize, value: impl Fn(u64) -> Value) -> (SeriesTable, TimeSpan) {
        drained_table(metric, bins, 5, value)
    }

    /// The same; samples from the second `drain` on belong to the drain.
    fn drained_table(
        metric: Metric,
        bins: usize,
        drain: u64,
        value: impl Fn(u64) -> Value,
    ) -> (SeriesTable, TimeSpan) {
        let mut table = SeriesTable::default();
        for second in 0..=4 {
            let point = Point {
                moment: Moment::new((10 + second) * 1_000_000_000),
                phase: if second < drain {
                    Phase::Measure
                } else {
                    Phase::Drain
                },
                value: value(second),
            };
            let name = SeriesName::recorded(metric.name.to_owned());
            table.push(name, metric.kind, Labels::none(), point);
        }
        let span = TimeSpan {
            length: Nanos::from_secs(4),
            bins,
            shades: Vec::new(),
        };
        (table, span)
    }

    const START: Moment = Moment::new(10_000_000_000);

    #[test]
    fn a_counter_is_shown_as_its_rate() {
        let metric = catalogue::BYTES_RECEIVED;
        assert_eq!(metric.kind, Kind::Counter);
        let (table, span) = table(metric, 4, |second| Value::Int(second * second));
        let line = growth(&table, metric, &span, START);
        assert_eq!(line, [Some(1.0), Some(3.0), Some(5.0), Some(7.0)]);
        assert!((span.middle(1) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_rate_ends_with_the_load_and_does_not_fall_to_that_of_the_drain() {
        let metric = catalogue::BYTES_RECEIVED;
        let (table, span) = drained_table(metric, 4, 3, |second| Value::Int(second * 7));
        let line = growth(&table, metric, &span, START);
        assert_eq!(line, [Some(7.0), Some(7.0), None, None]);
    }

    #[test]
    fn a_gauge_is_shown_as_its_mean() {
        let metric = catalogue::TARGET_RSS;
        let (table, span) = table(metric, 2, |second| Value::Int(second * 10));
        let line = means(&table, metric, &span, START);
        assert_eq!(line, [Some(10.0), Some(30.0)]);
        // Samples before the start of a run's load are left out.
        let late = Moment::new(12_000_000_000);
        let line = means(&table, metric, &span, late);
        assert_eq!(line, [Some(30.0), None]);
    }

    #[test]
    fn latencies_keep_the_measured_phase_and_the_percentiles_that_samples_resolve() {
        let metric = catalogue::EVENT_LATENCY;
        let (table, span) = table(metric, 4, |second| {
            let mut times = empty_histogram();
            times.record_n(1_000 * (second + 1), 25).unwrap();
            Value::Histogram(encode_histogram(&times))
        });
        let (bins, measured) = latencies(&table, metric, &span, START);
        assert_eq!(bins.len(), 4);
        assert_eq!(bins[&0].max(), 2_000);
        assert_eq!(measured.len(), 100);
        let all = percentiles(&measured);
        // 10 of 100 samples are slower than p90, the last percentile shown.
        assert_eq!(all.len(), 7);
        assert!(all.is_sorted());
        assert!(percentiles(&empty_histogram()).is_empty());
    }
}
