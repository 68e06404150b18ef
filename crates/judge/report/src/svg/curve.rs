//! Lines over one axis.

use maud::{Markup, html};
use stillwell_units::human::{bytes, grouped, significant, time};

use super::{Axis, WIDTH, change, figure, grid, line, points, rectangle, shortened, text};
use crate::document::{AxisScale, Band, Curve};

const HEIGHT: f64 = 270.0;
const TOP: f64 = 30.0;
const FOOT: f64 = HEIGHT - 44.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = WIDTH - 20.0;

/// Number of line styles that the style sheet has.
const STYLES: usize = 4;

/// Returns the chart; `None` without a finite point.
pub(crate) fn curve(curve: &Curve) -> Option<Markup> {
    let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
    let all: Vec<(f64, f64)> = curve
        .series
        .iter()
        .flat_map(|(_, points)| points.iter().filter(finite))
        .copied()
        .chain(curve.bands.iter().flat_map(|band| {
            let points = band.points.iter();
            points.flat_map(|(x, low, high)| [(*x, *low), (*x, *high)])
        }))
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    if all.is_empty() {
        return None;
    }
    let axis = |scale: AxisScale, values: &dyn Fn(&(f64, f64)) -> f64, start: f64, end: f64| {
        let low = all.iter().map(values).fold(f64::INFINITY, f64::min);
        let high = all.iter().map(values).fold(f64::NEG_INFINITY, f64::max);
        match scale {
            AxisScale::FromZero => Axis::linear(low.min(0.0), high * 1.05, start, end),
            AxisScale::Linear => Axis::linear(low, high, start, end),
            AxisScale::Log => Axis::log(low, high, start, end),
            AxisScale::Percentiles => Axis::log(1.0, high.max(10.0), start, end),
        }
    };
    let across = axis(curve.scales.0, &|point| point.0, LEFT, RIGHT);
    let up = axis(curve.scales.1, &|point| point.1, FOOT, TOP);
    let up = if curve.y.1 == "B" { up.in_bytes() } else { up };
    let label = |scale: AxisScale, unit: &str, value: f64| match (scale, unit) {
        (AxisScale::Percentiles, _) => percentile(value),
        (_, "ns") => time(value),
        (_, "B") => bytes(value),
        (_, "share") => change(value),
        _ if value.abs() >= 1000.0 => grouped(value),
        _ => significant(value),
    };
    let content = html! {
        @for (name, (from, to)) in &curve.shades {
            @let (from, to) = (across.place(*from), across.place(*to));
            (rectangle("shade", (from, TOP), (to, FOOT)))
            @if to - from > 40.0 {
                (text("tick", (f64::midpoint(from, to), TOP + 14.0), "middle", name))
            }
        }
        (grid(&up, LEFT, RIGHT, |tick| label(curve.scales.1, curve.y.1, tick)))
        @for tick in across.ticks(6) {
            @let x = across.place(tick);
            (line("grid", (x, TOP), (x, FOOT)))
            (text("tick", (x, FOOT + 16.0), "middle", &label(curve.scales.0, curve.x.1, tick)))
        }
        @for (index, (name, series)) in curve.series.iter().enumerate() {
            @let class = format!("series{}", index % STYLES);
            @let line = series.iter().filter(finite).map(|(x, y)| (across.place(*x), up.place(*y)));
            g class=(class) {
                title { (shortened(name, 100)) }
                @for band in curve.bands.iter().filter(|band| band.series == index) {
                    polygon class="area" points=(outline(band, &across, &up)) {}
                }
                polyline class="series" points=(points(line)) {}
                @let x = LEFT + 170.0 * super::float(index % STYLES);
                (super::line("series", (x, TOP - 16.0), (x + 22.0, TOP - 16.0)))
                (text("tick", (x + 28.0, TOP - 12.0), "start", &shortened(name, 20)))
            }
        }
        (text("tick", (f64::midpoint(LEFT, RIGHT), HEIGHT - 8.0), "middle", &named(&curve.x)))
    };
    let title = format!("{} over {}", curve.y.0, curve.x.0);
    let names: Vec<&str> = curve.series.iter().map(|(name, _)| name.as_str()).collect();
    let description = format!("Lines: {}.", names.join(", "));
    Some(figure("curve", HEIGHT, &title, &description, &content))
}

/// Returns the corners of a band: the upper bound from left to right, and the lower one back.
fn outline(band: &Band, across: &Axis, up: &Axis) -> String {
    let finite = band.points.iter();
    let finite =
        finite.filter(|(x, low, high)| [x, low, high].iter().all(|value| value.is_finite()));
    let upper = finite
        .clone()
        .map(|(x, _, high)| (across.place(*x), up.place(*high)));
    let lower = finite
        .rev()
        .map(|(x, low, _)| (across.place(*x), up.place(*low)));
    points(upper.chain(lower))
}

/// Returns the percentile whose inverse tail is `value`: `p99` for 100.
fn percentile(value: f64) -> String {
    let percent = 100.0 - 100.0 / value;
    let text = format!("{percent:.6}");
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the name of an axis with its unit; times have theirs at each tick.
fn named((name, unit): &(String, &'static str)) -> String {
    match *unit {
        "" | "ns" => name.clone(),
        unit => format!("{name} ({unit})"),
    }
}
