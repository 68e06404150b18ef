//! The measured phase of a capture: totals grown, means and quantiles.

use serde::{Deserialize, Serialize};
use stillwell_capture::{Capture, Point, Series, SeriesTable};
use stillwell_metric::{Labels, Metric, Value, decode_histogram, empty_histogram};
use stillwell_units::{Moment, Nanos, float_from_u64};

/// The measured phase, from the beat at its start to the beat at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    series: &'a SeriesTable,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
}

/// How far a counter grew, and in which time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) value: f64,
    pub(crate) length: Nanos,
}

/// Quantiles of a time over all that was recorded while measuring.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TimeQuantiles {
    /// How many times there are: at least one.
    pub count: u64,
    /// Half of them are at most this long.
    #[serde(rename = "p50_ns")]
    pub p50: Nanos,
    /// 99 of 100 are at most this long.
    #[serde(rename = "p99_ns")]
    pub p99: Nanos,
    /// 999 of 1000 are at most this long.
    #[serde(rename = "p999_ns")]
    pub p999: Nanos,
    /// The longest.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
}

impl<'a> Window<'a> {
    /// The window of a run, or why it has none.
    pub(crate) fn of(capture: &'a Capture) -> Result<Self, &'static str> {
        let (start, end) = capture
            .manifest
            .measured()
            .ok_or("the measured phase did not begin and end")?;
        let beat = |moment| {
            let points = capture.series.iter();
            let firsts = points.filter_map(|(_, _, series)| series.at_or_after(moment));
            firsts.map(|point| point.moment).min()
        };
        match (beat(start), beat(end)) {
            (Some(start), Some(end)) if start < end => Ok(Self {
                series: &capture.series,
                start,
                end,
            }),
            _ => Err("no samples were taken at both ends of the measured phase"),
        }
    }

    pub(crate) const fn length(&self) -> Nanos {
        self.end.since(self.start)
    }

    /// How far one series grew; `None` if it was not recorded at both ends, or
    /// fell.
    pub(crate) fn growth(&self, series: &Series) -> Option<Growth> {
        let from = series.at_or_after(self.start)?;
        let to = series.at_or_after(self.end)?;
        let value = match (&from.value, &to.value) {
            // Whole numbers, so that nothing is lost above 2^53.
            (Value::Int(from), Value::Int(to)) => float_from_u64(to.checked_sub(*from)?),
            (from, to) => to.number()? - from.number()?,
        };
        let length = to.moment.since(from.moment);
        (length > Nanos::ZERO && value.is_finite() && value >= 0.0)
            .then_some(Growth { value, length })
    }

    /// How far all series of `metric` with such labels grew together; `None` if
    /// there are none, or one of them has no growth.
    pub(crate) fn grown(&self, metric: Metric, wanted: impl Fn(&Labels) -> bool) -> Option<f64> {
        self.summed(metric, wanted, |growth| growth.value)
    }

    /// The same for each second.
    pub(crate) fn per_second(
        &self,
        metric: Metric,
        wanted: impl Fn(&Labels) -> bool,
    ) -> Option<f64> {
        self.summed(metric, wanted, |growth| {
            growth.value / growth.length.as_secs_f64()
        })
    }

    fn summed(
        &self,
        metric: Metric,
        wanted: impl Fn(&Labels) -> bool,
        part: impl Fn(Growth) -> f64,
    ) -> Option<f64> {
        let mut total = None;
        for (_, series) in self.series.of(metric).filter(|(labels, _)| wanted(labels)) {
            *total.get_or_insert(0.0) += part(self.growth(series)?);
        }
        total
    }

    /// Nanoseconds of `metric` as a share of the window.
    pub(crate) fn share(&self, metric: Metric) -> Option<f64> {
        Some(self.per_second(metric, |_| true)? / 1e9)
    }

    /// The mean of a gauge over time, between the beats by straight lines.
    pub(crate) fn mean(&self, metric: Metric) -> Option<f64> {
        let mut total = None;
        for (_, series) in self.series.of(metric) {
            *total.get_or_insert(0.0) += time_mean(self.points(series))?;
        }
        total
    }

    /// The largest value of a gauge.
    pub(crate) fn largest(&self, metric: Metric) -> Option<f64> {
        let series = self.series.of(metric);
        let points = series.flat_map(|(_, series)| self.points(series));
        points
            .filter_map(|point| point.value.number())
            .max_by(f64::total_cmp)
    }

    /// Points from the first beat to the last, both included.
    pub(crate) fn points<'s>(&self, series: &'s Series) -> &'s [Point] {
        series.between(self.start, self.end)
    }

    /// Quantiles of a histogram over all its series; `None` if nothing was
    /// recorded.
    pub(crate) fn quantiles(&self, metric: Metric) -> Option<TimeQuantiles> {
        self.quantiles_where(metric, |_| true)
    }

    pub(crate) fn quantiles_where(
        &self,
        metric: Metric,
        wanted: impl Fn(&Labels) -> bool,
    ) -> Option<TimeQuantiles> {
        let mut all = empty_histogram();
        for (_, series) in self.series.of(metric).filter(|(labels, _)| wanted(labels)) {
            // What the first beat took away was recorded before the window.
            for point in self.points(series).iter().filter(|p| p.moment > self.start) {
                if let Value::Histogram(bytes) = &point.value {
                    all.add(decode_histogram(bytes)?).ok()?;
                }
            }
        }
        let at = |quantile| Nanos::new(all.value_at_quantile(quantile));
        (!all.is_empty()).then(|| TimeQuantiles {
            count: all.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Nanos::new(all.max()),
        })
    }

    /// The longest time between two beats.
    pub(crate) fn longest_gap(&self) -> Nanos {
        let all = self.series.iter();
        let points = all.flat_map(|(_, _, series)| self.points(series));
        let mut moments: Vec<Moment> = points.map(|point| point.moment).collect();
        moments.sort_unstable();
        let gaps = moments.windows(2).map(|pair| pair[1].since(pair[0]));
        gaps.max().unwrap_or_else(|| self.length())
    }
}

fn time_mean(points: &[Point]) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    let length = last.moment.since(first.moment).as_secs_f64();
    if length <= 0.0 {
        return first.value.number();
    }
    let mut area = 0.0;
    for pair in points.windows(2) {
        let height = f64::midpoint(pair[0].value.number()?, pair[1].value.number()?);
        area += height * pair[1].moment.since(pair[0].moment).as_secs_f64();
    }
    Some(area / length)
}

/// The last value of all series of `metric` together: totals over the whole run.
pub(crate) fn last(series: &SeriesTable, metric: Metric) -> Option<f64> {
    let mut total = None;
    for (_, series) in series.of(metric) {
        *total.get_or_insert(0.0) += series.points.last()?.value.number()?;
    }
    total
}
