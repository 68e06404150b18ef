//! Charts of a load: rates and latencies over time, and the distribution of latencies.

use hdrhistogram::Histogram;
use stillwell_metric::Outcome;
use stillwell_units::float_from_u64;

use super::course::{rate, whole};
use crate::document::{AxisScale, Block, Chart, Curve};
use crate::load::{LoadInterval, LoadReport, id, merge_histograms};

/// Points of a line over time; longer series are merged to fit.
const POINTS_MAX: usize = 240;

/// Points of a percentile curve for each decade.
const POINTS_OF_DECADE: u32 = 12;

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
    let curve = |name: &str, id: &str| {
        let histogram = report.global.statistic(id)?.histogram.as_ref()?.unpack();
        (!histogram.is_empty()).then(|| (name.to_owned(), percentiles(&histogram)))
    };
    let response = curve("response time", id::RESPONSE_TIME);
    let service = curve("service time", id::SERVICE_TIME);
    let service = service.filter(|(_, points)| {
        response
            .as_ref()
            .is_none_or(|(_, response)| response != points)
    });
    let series: Vec<_> = response.into_iter().chain(service).collect();
    (!series.is_empty()).then(|| {
        Block::Chart(Chart::Curve(Curve {
            scales: (AxisScale::Percentiles, AxisScale::Log),
            x: ("percentile".to_owned(), ""),
            y: ("latency".to_owned(), "ns"),
            series,
            ..Curve::default()
        }))
    })
}

/// Returns latencies over 1 / (1 − share), up to the resolution of the samples.
fn percentiles(histogram: &Histogram<u64>) -> Points {
    let count = float_from_u64(histogram.len());
    (0..=POINTS_OF_DECADE * 9)
        .map(|point| 10.0_f64.powf(f64::from(point) / f64::from(POINTS_OF_DECADE)))
        .take_while(|inverse| *inverse <= count)
        .map(|inverse| {
            let value = histogram.value_at_quantile(1.0 - 1.0 / inverse);
            (inverse, float_from_u64(value.max(1)))
        })
        .collect()
}
