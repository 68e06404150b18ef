//! Intervals of changes, one row each, with the band of the tolerance: a forest plot.

use maud::{Markup, html};
use stillwell_units::human::significant;

use super::{
    Axis, Drawing, WIDTH, at, change, columns, float, line, points, rectangle, shortened, text,
};
use crate::document::{Interval, IntervalChart, IntervalRow, Sign, escape};
use crate::words::size;

const ROW: f64 = 26.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 30.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = 550.0;

/// Largest reach of the axis, in tolerances: beyond it bands would not be visible.
const TOLERANCES_MAX: f64 = 12.0;

/// Returns the chart; `None` without an interval.
pub(crate) fn intervals(chart: &IntervalChart) -> Option<Drawing> {
    let rows = &chart.rows;
    let shown: Vec<(&IntervalRow, Interval)> = rows
        .iter()
        .filter_map(|row| Some((row, row.interval?)))
        .collect();
    if shown.is_empty() {
        return None;
    }
    let height = TOP + BOTTOM + ROW * float(shown.len());
    let axis = axis(chart);
    let foot = height - BOTTOM;
    let content = html! {
        (columns(&axis, 6, (TOP, foot), |tick| match chart.is_from_zero {
            true => significant(tick),
            false => change(tick),
        }))
        @for (index, (row, interval)) in shown.iter().enumerate() {
            (drawn(row, *interval, &axis, TOP + ROW * float(index)))
        }
        (line("zero", (axis.place(0.0), TOP), (axis.place(0.0), foot)))
    };
    let lines = shown.iter().map(|(row, _)| match chart.is_from_zero {
        true => format!("{}: {}", row.name, row.text),
        false => {
            let tolerance = size(row.scale, row.tolerance);
            format!("{}: {}, tolerance {tolerance}", row.name, row.text)
        }
    });
    let description = lines.collect::<Vec<_>>().join("; ");
    Some(Drawing {
        content,
        ..Drawing::new("forest", height, [&chart.title, &description])
    })
}

fn axis(chart: &IntervalChart) -> Axis {
    if chart.is_from_zero {
        let intervals = chart.rows.iter().filter_map(|row| row.interval);
        let ends = intervals.flat_map(|interval| [interval.estimate, interval.high]);
        let high = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
        return Axis::linear(0.0, high * 1.05, LEFT, RIGHT);
    }
    let reach = reach(&chart.rows);
    Axis::linear(-reach, reach, LEFT, RIGHT)
}

/// Returns the share at both ends of the axis.
fn reach(rows: &[IntervalRow]) -> f64 {
    let finite = |value: f64| if value.is_finite() { value.abs() } else { 0.0 };
    let largest =
        |values: &dyn Fn(&IntervalRow) -> f64| rows.iter().map(values).fold(0.0, f64::max);
    let tolerance = largest(&|row| finite(row.tolerance));
    let ends = largest(&|row| {
        row.interval.map_or(0.0, |interval| {
            finite(interval.low)
                .max(finite(interval.high))
                .max(finite(interval.estimate))
        })
    });
    let reach = (ends * 1.1).max(tolerance * 1.5);
    if tolerance > 0.0 {
        reach.min(tolerance * TOLERANCES_MAX)
    } else {
        reach.max(0.01)
    }
}

/// Returns one row whose upper end is at `top`.
fn drawn(row: &IntervalRow, interval: Interval, axis: &Axis, top: f64) -> Markup {
    let middle = top + ROW / 2.0;
    let (low, high) = (axis.place(interval.low), axis.place(interval.high));
    let band = (axis.place(-row.tolerance), axis.place(row.tolerance));
    let class = row.sign.map_or("unclear", Sign::class);
    html! {
        g class=(class) {
            title { (escape::terminal(&format!("{}: {}", row.name, row.text))) }
            (rectangle("band", (band.0, top + 3.0), (band.1, top + ROW - 3.0)))
            (line("interval", (low, middle), (high, middle)))
            (end(axis, interval.low, middle))
            (end(axis, interval.high, middle))
            @if axis.has(interval.estimate) {
                circle class="estimate" cx=(at(axis.place(interval.estimate))) cy=(at(middle)) r="4.5" {}
            }
            (text(if row.is_primary { "name primary" } else { "name" }, (LEFT - 12.0, middle + 4.0), "end", &shortened(&row.name, 34)))
            (text("value", (RIGHT + 12.0, middle + 4.0), "start", &shortened(&row.text, 34)))
        }
    }
}

/// Returns the end of an interval: a bar, or an arrow where it is beyond the axis.
fn end(axis: &Axis, value: f64, middle: f64) -> Markup {
    let x = axis.place(value);
    if axis.has(value) {
        return line("interval", (x, middle - 4.0), (x, middle + 4.0));
    }
    let tip = if x > f64::midpoint(LEFT, RIGHT) {
        6.0
    } else {
        -6.0
    };
    let corners = [(x, middle - 5.0), (x + tip, middle), (x, middle + 5.0)];
    html! { polygon class="arrow" points=(points(corners)) {} }
}

const _: () = assert!(RIGHT + 12.0 < WIDTH);
