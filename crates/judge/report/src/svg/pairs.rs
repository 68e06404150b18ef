//! Changes of pairs in the order of their runs, with the interval of the mean so far.

use maud::{Markup, html};
use stillwell_plan::goal::Scale;

use super::{Axis, Drawing, WIDTH, at, change, float, grid, line, points, rectangle, text};
use crate::document::{Interval, PairSeries, PairStage};
use crate::words::{change_size, size};

const HEIGHT: f64 = 230.0;
const TOP: f64 = 14.0;
const FOOT: f64 = HEIGHT - 40.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 14.0;

/// Returns the chart; `None` without a pair.
pub(crate) fn pairs(series: &PairSeries) -> Option<Drawing> {
    let count: usize = series.stages.iter().map(|stage| stage.changes.len()).sum();
    if count == 0 {
        return None;
    }
    let across = Axis::linear(0.5, float(count) + 0.5, LEFT, RIGHT);
    let (low, high) = bounds(series);
    let up = Axis::linear(low, high, FOOT, TOP);
    let band = (up.place(series.tolerance), up.place(-series.tolerance));
    let mut before = 0;
    let stages: Vec<Markup> = series
        .stages
        .iter()
        .map(|stage| {
            let drawn = drawn(stage, before, series.scale, (&across, &up));
            before += stage.changes.len();
            drawn
        })
        .collect();
    let content = html! {
        (rectangle("band", (LEFT, band.0), (RIGHT, band.1)))
        (grid(&up, LEFT, RIGHT, |tick| match series.scale {
            Scale::Ratio => change(tick),
            Scale::Difference => change(tick).replace('%', "points"),
        }))
        (line("zero", (LEFT, up.place(0.0)), (RIGHT, up.place(0.0))))
        @for stage in &stages { (stage) }
        (text("tick", (f64::midpoint(LEFT, RIGHT), HEIGHT - 6.0), "middle", "pair, in the order of the runs"))
    };
    let changes = series.stages.iter().map(|stage| {
        let changes = stage.changes.iter();
        let changes = changes.map(|change| change_size(series.scale, *change));
        format!("{}: {}", stage.name, changes.collect::<Vec<_>>().join(", "))
    });
    let description = format!(
        "{}; tolerance {}. Filled dots are the pairs that the verdict uses.",
        changes.collect::<Vec<_>>().join("; "),
        size(series.scale, series.tolerance)
    );
    Some(Drawing {
        content,
        ..Drawing::new("pairs", HEIGHT, [&title(series), &description])
    })
}

/// Returns the caption of the chart.
fn title(series: &PairSeries) -> String {
    format!(
        "{}: dots are changes per pair; line and band are the mean so far with a 95 % interval that is not \
         corrected for repeated checks",
        series.name
    )
}

/// Returns the range of the vertical axis: all pairs and the tolerance; early intervals may be cut.
fn bounds(series: &PairSeries) -> (f64, f64) {
    let changes = || {
        series
            .stages
            .iter()
            .flat_map(|stage| &stage.changes)
            .copied()
    };
    let finite = || changes().filter(|change| change.is_finite());
    let low = finite().fold(-series.tolerance, f64::min);
    let high = finite().fold(series.tolerance, f64::max);
    let margin = (high - low) * 0.15;
    (low - margin, high + margin)
}

/// Returns the dots and the running interval of a stage that follows `before` pairs.
fn drawn(stage: &PairStage, before: usize, scale: Scale, (across, up): (&Axis, &Axis)) -> Markup {
    let x = |index: usize| across.place(float(before + index + 1));
    let running: Vec<(f64, Interval)> = stage
        .running
        .iter()
        .enumerate()
        .filter_map(|(index, interval)| Some((x(index), (*interval)?)))
        .collect();
    let upper = running
        .iter()
        .map(|(x, interval)| (*x, up.place(interval.high)));
    let lower = running
        .iter()
        .rev()
        .map(|(x, interval)| (*x, up.place(interval.low)));
    let means = running
        .iter()
        .map(|(x, interval)| (*x, up.place(interval.estimate)));
    html! {
        @if running.len() > 1 {
            polygon class="running" points=(points(upper.chain(lower))) {}
            polyline class="mean" points=(points(means)) {}
        }
        @if before > 0 {
            @let edge = across.place(float(before) + 0.5);
            (line("edge", (edge, TOP), (edge, FOOT)))
        }
        @for (index, change) in stage.changes.iter().enumerate() {
            circle class=(class(stage, index)) cx=(at(x(index))) cy=(at(up.place(*change))) r="4" {
                title { (stage.name) " " (index + 1) ": " (change_size(scale, *change)) }
            }
        }
        @if !stage.changes.is_empty() {
            (text("tick", (x(0), FOOT + 16.0), "middle", "1"))
            @if stage.changes.len() > 1 {
                @let last = stage.changes.len();
                (text("tick", (x(last - 1), FOOT + 16.0), "middle", &last.to_string()))
            }
            (text("tick", (f64::midpoint(x(0), x(stage.changes.len() - 1)), TOP - 3.0), "middle", stage.name))
        }
    }
}

/// Returns the class of a dot.
const fn class(stage: &PairStage, index: usize) -> &'static str {
    match (index < stage.used, stage.is_fresh) {
        (false, _) => "unused",
        (true, false) => "dot",
        (true, true) => "fresh",
    }
}
