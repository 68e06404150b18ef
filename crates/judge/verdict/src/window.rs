//! The measured phase of a capture: totals grown, means and quantiles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stillwell_capture::{Capture, Point, Series, SeriesTable};
use stillwell_metric::{Labels, Metric, Value, catalogue, decode_histogram, empty_histogram};
use stillwell_plan::Phase;
use stillwell_units::{Moment, Nanos, float_from_u64};

/// The measured phase, from the beat at its start to the beat at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    series: &'a SeriesTable,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    /// Seconds in which there was load, where that is not all of it.
    active: Option<f64>,
}

/// Growth of a counter, and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) value: f64,
    pub(crate) length: Nanos,
}

/// Quantiles of a time over all that was recorded while measuring.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TimeQuantiles {
    /// Number of times there are: at least one.
    pub count: u64,
    /// Half of them are at most this long.
    #[serde(rename = "p50_ns")]
    pub p50: Nanos,
    /// 90 of 100 are at most this long.
    #[serde(default, rename = "p90_ns")]
    pub p90: Nanos,
    /// 99 of 100 are at most this long.
    #[serde(rename = "p99_ns")]
    pub p99: Nanos,
    /// 999 of 1000 are at most this long.
    #[serde(rename = "p999_ns")]
    pub p999: Nanos,
    /// Their mean; 0 in summaries of older versions.
    #[serde(default, rename = "mean_ns")]
    pub mean: Nanos,
    /// The longest.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
}

impl Growth {
    /// `None` if `value` is no growth, or there was no time.
    fn of(value: f64, length: Nanos) -> Option<Self> {
        (length > Nanos::ZERO && value.is_finite() && value >= 0.0)
            .then_some(Self { value, length })
    }
}

impl<'a> Window<'a> {
    /// The window of a run whose first `warmup` of load is left out, or why it
    /// has none.
    pub(crate) fn of(capture: &'a Capture, warmup: Nanos) -> Result<Self, &'static str> {
        let (start, end) = capture
            .manifest
            .measured()
            .ok_or("the measured phase did not begin and end")?;
        // The stated warm-up lies before the measured phase already.
        let more = warmup.saturating_sub(capture.manifest.plan.phases.warmup);
        let start = Moment::new(start.as_u64().saturating_add(more.as_u64()));
        let (start, end) = Self::beats_at(&capture.series, start, end)?;
        let mut window = Self {
            series: &capture.series,
            start,
            end,
            active: None,
        };
        // Several workers may report the same time: it is not a sum.
        let active = window.series.of(catalogue::ACTIVE_TIME);
        let active = active.filter_map(|(_, series)| window.growth(series));
        let active = active.map(|growth| growth.value / 1e9).fold(0.0, f64::max);
        window.active = (active > 0.0).then_some(active);
        Ok(window)
    }

    /// The stretch from the start of the warm-up to the end of what is measured.
    pub(crate) fn of_load(&self, capture: &'a Capture) -> Option<Self> {
        let mut marks = capture.manifest.phases.iter();
        let mark = marks.find(|mark| mark.phase == Phase::Warmup)?;
        let (start, end) = Self::beats_at(&capture.series, mark.moment, self.end).ok()?;
        Some(Self {
            series: self.series,
            start,
            end,
            active: None,
        })
    }

    fn beats_at(
        series: &SeriesTable,
        start: Moment,
        end: Moment,
    ) -> Result<(Moment, Moment), &'static str> {
        let beat = |moment| {
            let points = series.iter();
            let firsts = points.filter_map(|(_, _, series)| series.at_or_after(moment));
            firsts.map(|point| point.moment).min()
        };
        match (beat(start), beat(end)) {
            (Some(start), Some(end)) if start < end => Ok((start, end)),
            _ => Err("no samples were taken at both ends of the measured phase"),
        }
    }

    /// All series of the capture.
    pub(crate) const fn table(&self) -> &'a SeriesTable {
        self.series
    }

    pub(crate) const fn length(&self) -> Nanos {
        self.end.since(self.start)
    }

    /// Time with load, where that is not all of it.
    pub(crate) fn active(&self) -> Option<Nanos> {
        self.active.map(Nanos::from_secs_f64)
    }

    /// Growth of one series; `None` if it was not recorded at both ends, or
    /// is smaller at the end.
    pub(crate) fn growth(&self, series: &Series) -> Option<Growth> {
        let from = series.at_or_after(self.start)?;
        let to = series.at_or_after(self.end)?;
        let value = grown_between(&from.value, &to.value)?;
        Growth::of(value, to.moment.since(from.moment))
    }

    /// Growth of a counter that begins again at 0 with its process: after a fall, the new value
    /// is growth. One that `is_new` was at 0 at the start of the window.
    pub(crate) fn growth_over_restarts(&self, series: &Series, is_new: bool) -> Option<Growth> {
        let from = series.at_or_after(self.start)?;
        let to = series.at_or_after(self.end)?;
        let (mut value, length) = match is_new {
            true => (from.value.number()?, self.length()),
            false => (0.0, to.moment.since(from.moment)),
        };
        let mut last = from;
        for point in series.between(from.moment, to.moment) {
            // A page may have a series twice: the first one counts, here as at both ends.
            if point.moment > last.moment {
                let grown = grown_between(&last.value, &point.value)?;
                value += if grown < 0.0 {
                    point.value.number()?
                } else {
                    grown
                };
                last = point;
            }
        }
        Growth::of(value, length)
    }

    /// Growth of all series of `metric` with such labels together; `None` if
    /// there are none, or one of them has no growth.
    pub(crate) fn grown(&self, metric: Metric, wanted: impl Fn(&Labels) -> bool) -> Option<f64> {
        self.summed(metric, wanted, |growth| growth.value)
    }

    /// The same for each second of load.
    pub(crate) fn per_second(
        &self,
        metric: Metric,
        wanted: impl Fn(&Labels) -> bool,
    ) -> Option<f64> {
        self.summed(metric, wanted, |growth| self.rate(growth))
    }

    /// A growth for each second of load.
    pub(crate) fn rate(&self, growth: Growth) -> f64 {
        let secs = growth.length.as_secs_f64();
        growth.value / self.active.map_or(secs, |active| active.min(secs))
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

    /// Nanoseconds of `metric` as a share of the window by the wall clock: of
    /// what the host does, for any load.
    pub(crate) fn share(&self, metric: Metric) -> Option<f64> {
        let part = |growth: Growth| growth.value / float_from_u64(growth.length.as_u64());
        self.summed(metric, |_| true, part)
    }

    /// Nanoseconds of `metric` as a share of the time with load.
    pub(crate) fn share_of_load(&self, metric: Metric) -> Option<f64> {
        Some(self.per_second(metric, |_| true)? / 1e9)
    }

    /// The sum of all series of `metric` at each beat at which one has a number.
    pub(crate) fn beats(
        &self,
        metric: &str,
        wanted: impl Fn(&Labels) -> bool,
    ) -> Vec<(Moment, f64)> {
        let mut beats: BTreeMap<Moment, f64> = BTreeMap::new();
        let all = self.series.named(metric);
        for (_, series) in all.filter(|(labels, _)| wanted(labels)) {
            for point in self.points(series) {
                // A target may say that a value is no number: nothing to judge.
                if let Some(value) = point.value.number().filter(|value| !value.is_nan()) {
                    *beats.entry(point.moment).or_insert(0.0) += value;
                }
            }
        }
        beats.into_iter().collect()
    }

    /// The number of beats before `moment`, by the series that has most of them.
    pub(crate) fn beats_before(&self, moment: Moment) -> usize {
        let beats = self.series.iter().map(|(_, _, series)| {
            let points = self.points(series);
            points.partition_point(|point| point.moment < moment)
        });
        beats.max().unwrap_or(0)
    }

    /// The mean of a gauge over time, between the beats by straight lines.
    pub(crate) fn mean(&self, metric: Metric) -> Option<f64> {
        let mut total = None;
        for (_, series) in self.series.of(metric) {
            *total.get_or_insert(0.0) += time_mean(self.points(series))?;
        }
        total
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
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            mean: Nanos::from_secs_f64(all.mean() / 1e9),
            max: Nanos::new(all.max()),
        })
    }

    /// Median of a histogram over all its series, at each beat that recorded something; `None` if one
    /// cannot be read.
    pub(crate) fn medians(&self, metric: Metric) -> Option<Vec<f64>> {
        let mut beats = BTreeMap::new();
        for (_, series) in self.series.of(metric) {
            for point in self.points(series).iter().filter(|p| p.moment > self.start) {
                if let Value::Histogram(bytes) = &point.value {
                    let beat = beats.entry(point.moment).or_insert_with(empty_histogram);
                    beat.add(decode_histogram(bytes)?).ok()?;
                }
            }
        }
        let recorded = beats.values().filter(|histogram| !histogram.is_empty());
        let medians = recorded.map(|histogram| float_from_u64(histogram.value_at_quantile(0.5)));
        Some(medians.collect())
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

/// Growth from one value of a counter to a later one; negative if it fell.
fn grown_between(from: &Value, to: &Value) -> Option<f64> {
    Some(match (from, to) {
        // Whole numbers, so nothing is lost above 2^53.
        (Value::Int(from), Value::Int(to)) => {
            let grown = float_from_u64(to.abs_diff(*from));
            if to < from { -grown } else { grown }
        }
        (from, to) => to.number()? - from.number()?,
    })
}

pub(crate) fn time_mean(points: &[Point]) -> Option<f64> {
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

/// The largest value of all series of `metric` together at one beat of the whole run.
pub(crate) fn largest(series: &SeriesTable, metric: Metric) -> Option<f64> {
    let mut beats: BTreeMap<Moment, f64> = BTreeMap::new();
    for (_, series) in series.of(metric) {
        for point in &series.points {
            if let Some(value) = point.value.number().filter(|value| !value.is_nan()) {
                *beats.entry(point.moment).or_insert(0.0) += value;
            }
        }
    }
    beats.into_values().max_by(f64::total_cmp)
}
