//! Points of percentile curves.

use hdrhistogram::Histogram;
use stillwell_units::float_from_u64;

use crate::document::{AxisScale, Block, Chart, Curve};

/// Points of a percentile curve for each decade.
const POINTS_OF_DECADE: u32 = 12;

/// Returns a chart of latencies by percentile with a line for each histogram that is not empty; `None` without one.
pub(crate) fn percentile_chart(histograms: &[(&str, &Histogram<u64>)]) -> Option<Block> {
    let filled = histograms.iter().filter(|(_, times)| !times.is_empty());
    let series: Vec<_> = filled
        .map(|(name, times)| ((*name).to_owned(), points(times)))
        .collect();
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
fn points(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
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
