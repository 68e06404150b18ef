//! Lines over one axis.

use maud::{Markup, html};
use stillwell_units::human::{bytes, grouped, percent, significant, time};

use super::{
    Axis, Drawing, WIDTH, at, change, columns, float, grid, points, rectangle, shortened, text,
};
use crate::document::{AxisScale, Band, Curve, Sign};

/// Height of the plot itself.
const PLOT: f64 = 196.0;
/// Height below the plot: the labels and the name of the axis. The script of pages knows it.
const BELOW: f64 = 44.0;
const ABOVE: f64 = 14.0;
const LEGEND_ROW: f64 = 16.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = WIDTH - 20.0;

/// Number of line styles that the style sheet has.
const STYLES: usize = 6;

/// Names in a row of the legend.
const LEGEND_COLUMNS: usize = 4;

/// Upper and lower end of the plot, below as many rows of the legend as it needs.
#[derive(Clone, Copy)]
struct PlotEdges {
    top: f64,
    foot: f64,
}

impl PlotEdges {
    fn below_legend_of(series: usize) -> Self {
        let rows = series.div_ceil(LEGEND_COLUMNS).max(1);
        let top = LEGEND_ROW.mul_add(float(rows), ABOVE);
        Self {
            top,
            foot: top + PLOT,
        }
    }

    fn height(self) -> f64 {
        self.foot + BELOW
    }
}

/// Returns the chart; `None` without a finite point.
pub(crate) fn curve(curve: &Curve) -> Option<Drawing> {
    let all = values(curve);
    if all.is_empty() {
        return None;
    }
    let edges = PlotEdges::below_legend_of(curve.series.len());
    let axis = |scale: AxisScale, values: &dyn Fn(&(f64, f64)) -> f64, start: f64, end: f64| {
        let low = all.iter().map(values).fold(f64::INFINITY, f64::min);
        let high = all.iter().map(values).fold(f64::NEG_INFINITY, f64::max);
        match scale {
            AxisScale::FromZero => {
                Axis::linear(low.min(0.0) * 1.15, high.max(0.0) * 1.15, start, end)
            }
            AxisScale::Linear => Axis::linear(low, high, start, end),
            AxisScale::Numbers => Axis::linear(low, high, start, end).in_whole_numbers(),
            AxisScale::Log => Axis::log(low, high, start, end),
            AxisScale::Percentiles => Axis::log(1.0, high.max(10.0), start, end),
        }
    };
    let across = axis(curve.scales.0, &|point| point.0, LEFT, RIGHT);
    let up = axis(curve.scales.1, &|point| point.1, edges.foot, edges.top);
    let up = if curve.y.1 == "B" { up.in_bytes() } else { up };
    let content = html! {
        (shades(curve, &across, edges))
        (grid(&up, LEFT, RIGHT, |tick| label(curve.scales.1, curve.y.1, tick)))
        (columns(&across, 6, (edges.top, edges.foot), |tick| label(curve.scales.0, curve.x.1, tick)))
        @for index in 0..curve.series.len() { (series(curve, index, &across, &up)) }
        @for mark in curve.marks.iter().filter(|mark| is_finite(&(mark.x, mark.y))) {
            g class=(mark.sign.class()) {
                circle class=(mark_class(mark.sign)) cx=(at(across.place(mark.x))) cy=(at(up.place(mark.y))) r="4" {
                    title { (shortened(&mark.text, 100)) }
                }
            }
        }
        (text("tick", (f64::midpoint(LEFT, RIGHT), edges.height() - 8.0), "middle", &named(&curve.x)))
    };
    let (x_unit, y_unit) = (x_unit(curve), curve.y.1);
    let axes = format!("{};{};{x_unit};{y_unit}", across.facts(), up.facts());
    Some(Drawing {
        content,
        axes: Some(axes),
        ..Drawing::new(
            "curve",
            edges.height(),
            [&title(curve), &description(curve)],
        )
    })
}

/// Returns the class of a point: hollow for one that is worse, for readers who do not see colours.
const fn mark_class(sign: Sign) -> &'static str {
    match sign {
        Sign::Worse => "mark hollow",
        _ => "mark",
    }
}

/// Returns the name of a chart of lines.
pub(crate) fn title(curve: &Curve) -> String {
    let preposition = match curve.scales.0 {
        AxisScale::Percentiles => "by",
        _ => "over",
    };
    format!("{} {preposition} {}", curve.y.0, curve.x.0)
}

/// Returns the lines with their first and last values.
fn description(curve: &Curve) -> String {
    let lines = curve.series.iter().map(|(name, points)| {
        let value = |point: &(f64, f64)| {
            let x = label(curve.scales.0, curve.x.1, point.0);
            let y = label(AxisScale::Linear, curve.y.1, point.1);
            match curve.scales.0 {
                AxisScale::Percentiles => format!("{y} at {x}"),
                _ => format!("{y} at {x} {}", unit_word(curve.x.1)),
            }
        };
        let ends = points.first().zip(points.last());
        let ends = ends.map(|(first, last)| format!(": from {} to {}", value(first), value(last)));
        format!("{name}{}", ends.unwrap_or_default().trim_end())
    });
    let shades = curve.shades.iter();
    let shades = shades.map(|(name, _)| format!("shaded: {name}"));
    lines.chain(shades).collect::<Vec<_>>().join("; ") + "."
}

/// Returns the unit behind a number of the horizontal axis; times have theirs in the label.
fn unit_word(unit: &'static str) -> &'static str {
    match unit {
        "ns" | "B" | "share" | "ratio" => "",
        unit => unit,
    }
}

fn x_unit(curve: &Curve) -> &'static str {
    match curve.scales.0 {
        AxisScale::Percentiles => "percentile",
        _ => curve.x.1,
    }
}

fn is_finite(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

/// Returns all points that the axes must show.
fn values(curve: &Curve) -> Vec<(f64, f64)> {
    let lines = curve.series.iter().flat_map(|(_, points)| points).copied();
    let bands = curve.bands.iter().flat_map(|band| {
        let points = band.points.iter();
        points.flat_map(|(x, low, high)| [(*x, *low), (*x, *high)])
    });
    let marks = curve.marks.iter().map(|mark| (mark.x, mark.y));
    lines.chain(bands).chain(marks).filter(is_finite).collect()
}

/// Returns a value as the label of a tick, without zeros at the end of a fraction.
fn label(scale: AxisScale, unit: &str, value: f64) -> String {
    let text = match (scale, unit) {
        (AxisScale::Percentiles, _) => percentile(value),
        (_, "ns") => time(value),
        (_, "B") => bytes(value),
        (_, "share") => change(value),
        (_, "ratio") => percent(value),
        _ if value.abs() >= 1000.0 => grouped(value),
        _ => significant(value),
    };
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    if !number.contains('.') {
        return text;
    }
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number} {unit}").trim_end().to_owned()
}

/// Returns the shaded ranges of the horizontal axis.
fn shades(curve: &Curve, across: &Axis, edges: PlotEdges) -> Markup {
    html! {
        @for (name, (from, to)) in &curve.shades {
            @let (from, to) = (across.place(*from), across.place(*to));
            (rectangle("shade", (from, edges.top), (to, edges.foot)))
            @if to - from > 40.0 {
                (text("tick", (f64::midpoint(from, to), edges.top + 14.0), "middle", name))
            }
        }
    }
}

/// Returns one line with its band and its name.
fn series(curve: &Curve, index: usize, across: &Axis, up: &Axis) -> Markup {
    let (name, values) = &curve.series[index];
    let class = format!("series{}", index % STYLES);
    let line = values.iter().filter(|point| is_finite(point));
    let line = line.map(|(x, y)| (across.place(*x), up.place(*y)));
    let line: Vec<(f64, f64)> = line.collect();
    // A line of one point has no length.
    let single = match line.as_slice() {
        [point] => Some(*point),
        _ => None,
    };
    let x = LEFT + 170.0 * float(index % LEGEND_COLUMNS);
    let y = ABOVE + LEGEND_ROW * float(index / LEGEND_COLUMNS);
    let label_max = if curve.series.len() == 1 { 90 } else { 20 };
    html! {
        g class=(class) data-name=(shortened(name, 40)) {
            title { (shortened(name, 100)) }
            @for band in curve.bands.iter().filter(|band| band.series == index) {
                polygon class="area" points=(outline(band, across, up)) {}
            }
            polyline class="series" points=(points(line)) {}
            @if let Some((cx, cy)) = single {
                circle class="mark" cx=(at(cx)) cy=(at(cy)) r="3" {}
            }
            (super::line("series", (x, y), (x + 22.0, y)))
            (text("tick", (x + 28.0, y + 4.0), "start", &shortened(name, label_max)))
        }
    }
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
    // Whole coordinates are enough for an area, and shorter.
    let whole = upper.chain(lower).map(|(x, y)| (x.round(), y.round()));
    points(whole)
}

/// Returns the percentile whose inverse tail is `value`: `p99` for 100. The tail has two significant digits.
fn percentile(value: f64) -> String {
    let tail = 100.0 / value;
    let digits = (0..6).find(|digits| tail * 10f64.powi(*digits) >= 10.0);
    let digits = usize::try_from(digits.unwrap_or(6)).unwrap_or(6);
    let text = format!("{:.digits$}", 100.0 - tail);
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("p{text}")
}

/// Returns the name of an axis with its unit; times have theirs at each tick.
fn named((name, unit): &(String, &'static str)) -> String {
    match *unit {
        "" | "ns" => name.clone(),
        unit => format!("{name} ({unit})"),
    }
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_have_no_more_digits_than_their_tail_needs() {
        for (tails, text) in [
            (1.0, "p0"),
            (2.0, "p50"),
            (10.0, "p90"),
            (100.0, "p99"),
            (1000.0, "p99.9"),
            (4642.0, "p99.978"),
            (1e5, "p99.999"),
        ] {
            assert_eq!(percentile(tails), text);
        }
    }
}
