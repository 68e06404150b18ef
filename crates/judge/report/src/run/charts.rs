//! Charts of one run.

use stillwell_capture::Capture;

use crate::document::{AxisScale, Curve};
use crate::suite::runs::lines::{self, QUANTITIES, RunLines, TimeSpan};

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
    percentiles([("latency", run)])
}

fn percentiles<'r>(runs: impl IntoIterator<Item = (&'r str, &'r RunLines)>) -> Option<Curve> {
    let lines = runs.into_iter().map(|(name, run)| {
        let points = run.percentiles.iter().enumerate();
        let points = points.map(|(place, value)| (lines::inverse(place), *value));
        (name.to_owned(), points.collect::<Vec<_>>())
    });
    let series: Vec<_> = lines.filter(|(_, points)| !points.is_empty()).collect();
    (!series.is_empty()).then(|| Curve {
        scales: (AxisScale::Percentiles, AxisScale::Log),
        x: ("percentile".to_owned(), ""),
        y: ("latency".to_owned(), "ns"),
        series,
        ..Curve::default()
    })
}

/// Returns charts with a line for each of the named runs, from the start of their loads. A run without a measured phase has no
/// lines.
#[must_use]
pub fn overlaid_runs(runs: &[(String, Capture)]) -> Vec<Curve> {
    let drawn = runs.iter().filter_map(|(name, capture)| {
        let (start, _) = lines::load_of(&capture.manifest)?;
        let span = TimeSpan::of(capture, POINTS_MAX)?;
        let lines = RunLines::of(capture, &span, start);
        Some((name.as_str(), span, lines))
    });
    let drawn: Vec<_> = drawn.collect();
    let mut curves: Vec<Curve> = Vec::new();
    for (place, quantity) in QUANTITIES.iter().enumerate() {
        // Sent bytes repeat the received ones, unless there is no sink.
        if !quantity.is_fallback || curves.is_empty() {
            curves.extend(overlaid(place, &drawn));
        }
    }
    curves.extend(percentiles(drawn.iter().map(|(name, _, run)| (*name, run))));
    curves
}

/// Returns the chart of one of [`QUANTITIES`].
fn overlaid(place: usize, runs: &[(&str, TimeSpan, RunLines)]) -> Option<Curve> {
    let quantity = &QUANTITIES[place];
    let lines = runs.iter().map(|(name, span, run)| {
        let line = run.lines[place].iter().enumerate();
        let points = line.filter_map(|(bin, value)| Some((span.middle(bin), (*value)?)));
        ((*name).to_owned(), points.collect::<Vec<_>>())
    });
    let series: Vec<_> = lines.filter(|(_, points)| !points.is_empty()).collect();
    // Phases of different lengths would shade each other's lines.
    let shades = runs.first().map(|(_, span, _)| span.shades.clone());
    let shades = shades.filter(|shades| {
        runs.iter()
            .all(|(_, span, _)| ends(&span.shades) == ends(shades))
    });
    (!series.is_empty()).then(|| Curve {
        scales: (AxisScale::Linear, quantity.scale),
        x: ("time".to_owned(), "s"),
        y: (quantity.name.to_owned(), quantity.unit),
        series,
        shades: shades.unwrap_or_default(),
        ..Curve::default()
    })
}

/// Returns names and ends of shades in tenths of a second: phases of equal plans differ by less.
fn ends(shades: &[(String, (f64, f64))]) -> Vec<(&str, String)> {
    let shades = shades.iter();
    shades
        .map(|(name, (start, end))| (name.as_str(), format!("{start:.1} {end:.1}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of `seconds` bins whose CPU line is `cpu`, and which warmed up for `warmup` seconds.
    fn run_of(warmup: f64, cpu: &[f64]) -> (TimeSpan, RunLines) {
        let shades = vec![("warm-up".to_owned(), (0.0, warmup))];
        let empty = vec![None; cpu.len()];
        let mut lines: [Vec<Option<f64>>; QUANTITIES.len()] =
            std::array::from_fn(|_| empty.clone());
        lines[4] = cpu.iter().copied().map(Some).collect();
        let run = RunLines {
            lines,
            percentiles: Vec::new(),
        };
        (TimeSpan::of_seconds(cpu.len(), shades), run)
    }

    #[test]
    fn runs_lie_over_each_other_and_are_shaded_if_their_phases_are_the_same() {
        let [a, b, c] = [
            run_of(1.02, &[0.5, 0.6, 0.7]),
            run_of(1.01, &[0.7, 0.8, 0.9]),
            run_of(2.0, &[0.9, 0.9]),
        ];
        assert!(overlaid(0, &[("a", a.0.clone(), run_of(1.0, &[1.0]).1)]).is_none());
        let same_phases = overlaid(4, &[("a", a.0.clone(), a.1), ("b", b.0, b.1)]).unwrap();
        let names = same_phases
            .series
            .iter()
            .map(|(name, points)| (name.as_str(), points.len()));
        assert_eq!(names.collect::<Vec<_>>(), [("a", 3), ("b", 3)]);
        assert_eq!(same_phases.shades, a.0.shades);
        let (span, run) = run_of(1.02, &[0.5, 0.6, 0.7]);
        let longer = overlaid(4, &[("a", span, run), ("c", c.0, c.1)]).unwrap();
        assert_eq!((longer.series.len(), longer.shades.len()), (2, 0));
    }
}
