//! Charts of a load: rates and latencies over time, and the distribution of latencies.

use hdrhistogram::Histogram;
use stillwell_metric::Outcome;
use stillwell_units::float_from_u64;

use super::course::{rate, whole};
use crate::document::{AxisScale, Block, Chart, Curve};
use crate::load::intervals::steps;
use crate::load::{LoadInterval, LoadReport, PackedHistogram, id};
use crate::percentiles::percentile_chart;

/// Points of a line: seconds and values.
pub(in crate::load) type Points = Vec<(f64, f64)>;

/// Returns all charts that have data.
pub(super) fn charts(report: &LoadReport) -> Vec<Block> {
    let mut blocks = over_time(&report.intervals);
    blocks.extend(distribution(report));
    blocks
}

fn over_time(intervals: &[LoadInterval]) -> Vec<Block> {
    let course = LoadCourse::of(intervals);
    if course.0.len() < 2 {
        return Vec::new();
    }
    let mut rates = vec![("completed".to_owned(), course.rates(|_| true))];
    let failed = course.rates(|outcome| outcome != Outcome::Ok);
    if failed.iter().any(|(_, rate)| *rate > 0.0) {
        rates.push(("not ok".to_owned(), failed));
    }
    let latencies = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];
    let latencies = latencies.map(|(name, share)| (name.to_owned(), course.quantiles(share)));
    vec![
        rate_chart(rates),
        latency_chart("latency", latencies.into()),
    ]
}

/// The steps of a load over time: whole intervals, several in one if there are many.
pub(in crate::load) struct LoadCourse<'i>(Vec<&'i [LoadInterval]>);

impl<'i> LoadCourse<'i> {
    pub(in crate::load) fn of(intervals: &'i [LoadInterval]) -> Self {
        Self(steps(whole(intervals)).collect())
    }

    /// Returns the ended requests with these outcomes for each second.
    pub(in crate::load) fn rates(&self, is_counted: fn(Outcome) -> bool) -> Points {
        let steps = self.0.iter();
        steps
            .map(|step| (begin(step), rate(step, is_counted)))
            .collect()
    }

    /// Returns this quantile of the response time; steps without a response are left out.
    pub(in crate::load) fn quantiles(&self, share: f64) -> Points {
        let times = self.0.iter().map(|step| {
            let seconds = step.iter().map(|second| &second.response_time);
            (begin(step), PackedHistogram::merged(seconds))
        });
        let times = times.filter(|(_, times)| !times.is_empty());
        let value = |times: Histogram<u64>| times.value_at_quantile(share).max(1);
        times
            .map(|(begin, times)| (begin, float_from_u64(value(times))))
            .collect()
    }
}

fn begin(step: &[LoadInterval]) -> f64 {
    step.first().map_or(0.0, |first| first.start.as_secs_f64())
}

/// Returns a chart of rates over time.
pub(in crate::load) fn rate_chart(series: Vec<(String, Points)>) -> Block {
    chart("requests per second", "", AxisScale::FromZero, series)
}

/// Returns a chart of latencies over time.
pub(in crate::load) fn latency_chart(name: &str, series: Vec<(String, Points)>) -> Block {
    chart(name, "ns", AxisScale::Log, series)
}

fn chart(name: &str, unit: &'static str, up: AxisScale, series: Vec<(String, Points)>) -> Block {
    Block::Chart(Chart::Curve(Curve {
        scales: (AxisScale::Linear, up),
        x: ("time".to_owned(), "s"),
        y: (name.to_owned(), unit),
        series,
        ..Curve::default()
    }))
}

/// Returns latencies by percentile, from the intended time and from the sent time where they differ.
fn distribution(report: &LoadReport) -> Option<Block> {
    let times = |id: &str| Some(report.global.statistic(id)?.histogram.as_ref()?.unpack());
    let response = times(id::RESPONSE_TIME);
    let service = times(id::SERVICE_TIME).filter(|service| response.as_ref() != Some(service));
    let named = [("response time", &response), ("service time", &service)];
    let named = named.into_iter();
    let lines: Vec<_> = named
        .filter_map(|(name, times)| Some((name, times.as_ref()?)))
        .collect();
    percentile_chart(&lines)
}
