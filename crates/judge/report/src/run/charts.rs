//! Charts of one run.

use stillwell_capture::Capture;

use crate::document::{AxisScale, Curve};
use crate::suite::runs::lines::{self, RunLines, TimeSpan};

/// Maximum number of points of a line over time.
const POINTS_MAX: usize = 240;

/// Lines of one chart over time: its name, unit and scale, and the lines by their places in [`RunLines::lines`].
type Plot = (
    &'static str,
    &'static str,
    AxisScale,
    &'static [(&'static str, usize)],
);

const PLOTS: [Plot; 4] = [
    (
        "throughput per second",
        "B",
        AxisScale::FromZero,
        &[("received", 0), ("sent", 1)],
    ),
    ("latency", "ns", AxisScale::Log, &[("p50", 2), ("p99", 3)]),
    (
        "CPU cores used by the target",
        "",
        AxisScale::FromZero,
        &[("CPU", 4)],
    ),
    (
        "memory of the target",
        "B",
        AxisScale::FromZero,
        &[("memory", 5)],
    ),
];

/// Returns charts of the run in a capture, over time and by percentile; none without a measured phase.
#[must_use]
pub fn run_curves(capture: &Capture) -> Vec<Curve> {
    let Some((start, _)) = lines::load_of(&capture.manifest) else {
        return Vec::new();
    };
    let Some(span) = TimeSpan::of(capture, POINTS_MAX) else {
        return Vec::new();
    };
    let run = RunLines::of(capture, &span, start);
    let mut curves: Vec<Curve> = PLOTS
        .iter()
        .filter_map(|plot| over_time(plot, &run, &span))
        .collect();
    curves.extend(by_percentile(&run));
    curves
}

fn over_time((name, unit, scale, parts): &Plot, run: &RunLines, span: &TimeSpan) -> Option<Curve> {
    let lines = parts.iter().map(|(name, place)| {
        let line = run.lines[*place].iter().enumerate();
        let points = line.filter_map(|(bin, value)| Some((span.middle(bin), (*value)?)));
        ((*name).to_owned(), points.collect::<Vec<_>>())
    });
    let series: Vec<_> = lines.filter(|(_, points)| !points.is_empty()).collect();
    (!series.is_empty()).then(|| Curve {
        scales: (AxisScale::Linear, *scale),
        x: ("time".to_owned(), "s"),
        y: ((*name).to_owned(), unit),
        series,
        shades: span.shades.clone(),
        ..Curve::default()
    })
}

fn by_percentile(run: &RunLines) -> Option<Curve> {
    let points = run.percentiles.iter().enumerate();
    let points: Vec<_> = points
        .map(|(place, value)| (lines::inverse(place), *value))
        .collect();
    (!points.is_empty()).then(|| Curve {
        scales: (AxisScale::Percentiles, AxisScale::Log),
        x: ("percentile".to_owned(), ""),
        y: ("latency".to_owned(), "ns"),
        series: vec![("latency".to_owned(), points)],
        ..Curve::default()
    })
}
