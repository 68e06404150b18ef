//! Charts of a load: rates and latencies over time, and the distribution of latencies.

use hdrhistogram::Histogram;
use stillwell_metric::Outcome;
use stillwell_units::float_from_u64;

use super::course::{rate, whole};
use crate::document::{AxisScale, Block, Chart, Curve};
use crate::load::{LoadInterval, LoadReport, id, merge_histograms};
use crate::percentiles::percentile_chart;

/// Points of a line over time; longer series are merged to fit.
const POINTS_MAX: usize = 240;

type Points = Vec<(f64, f64)>;

/// Returns all charts that have data.
pub(super) fn charts(report: &LoadReport) -> Vec<Block> {
    let mut blocks = over_time(&report.intervals);
    blocks.extend(distribution(report));
    blocks
}

fn over_time(intervals: &[LoadInterval]) -> Vec<Block> {
    let intervals = whole(intervals);
    if intervals.len() < 2 {
        return Vec::new();
    }
    let steps: Vec<&[LoadInterval]> = intervals
        .chunks(intervals.len().div_ceil(POINTS_MAX))
        .collect();
    let begin = |step: &[LoadInterval]| step.first().map_or(0.0, |first| first.start.as_secs_f64());
    let line = |value: &dyn Fn(&[LoadInterval]) -> f64| -> Points {
        steps
            .iter()
            .map(|step| (begin(step), value(step)))
            .collect()
    };
    let mut rates = vec![("ended".to_owned(), line(&|step| rate(step, |_| true)))];
    let failed = line(&|step| rate(step, |outcome| outcome != Outcome::Ok));
    if failed.iter().any(|(_, rate)| *rate > 0.0) {
        rates.push(("not ok".to_owned(), failed));
    }
    let times: Vec<(f64, Histogram<u64>)> = steps
        .iter()
        .map(|step| {
            let times: Vec<_> = step
                .iter()
                .map(|second| second.response_time.unpack())
                .collect();
            (begin(step), merge_histograms(&times))
        })
        .filter(|(_, times)| !times.is_empty())
        .collect();
    let quantile = |share: f64| -> Points {
        let values = times.iter();
        values
            .map(|(begin, times)| {
                (
                    *begin,
                    float_from_u64(times.value_at_quantile(share).max(1)),
                )
            })
            .collect()
    };
    let latencies = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];
    let latencies = latencies.map(|(name, share)| (name.to_owned(), quantile(share)));
    vec![
        chart("requests per second", "", AxisScale::FromZero, rates),
        chart("latency", "ns", AxisScale::Log, latencies.into()),
    ]
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
