//! Charts as SVG: pure functions from data to elements.
//!
//! Colours come from the style sheet of the page, by class. Each chart has a title and a description for readers
//! who do not see it, and stays within its view box.

mod axis;
mod curve;
mod flame;
mod intervals;
mod pairs;
#[cfg(test)]
mod tests;

use maud::{Markup, PreEscaped, html};
use stillwell_units::float_from_u64;
use stillwell_units::human::signed_percent;

use crate::document::{Chart, Curve, escape};

pub(crate) use curve::title as curve_title;

use axis::Axis;

/// Style sheet of charts, in pages and in files.
pub(crate) const STYLE: &str = include_str!("svg/chart.css");

/// Width of every chart, in units of its view box.
const WIDTH: f64 = 760.0;

/// Returns the drawing of a chart; `None` without data.
pub(crate) fn drawn(chart: &Chart) -> Option<Drawing> {
    match chart {
        Chart::Intervals(chart) => intervals::intervals(chart),
        Chart::Curve(curve) => curve::curve(curve),
        Chart::Pairs(series) => pairs::pairs(series),
        Chart::Flame(chart) => flame::flame(chart),
    }
}

/// Returns a chart of lines as a part of a page with [`page_style`](crate::page_style); `None` without a finite point.
#[must_use]
pub fn curve_figure(curve: &Curve) -> Option<String> {
    curve::curve(curve).map(|drawing| drawing.figure().into_string())
}

/// A chart that is ready for a page or a file.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    class: &'static str,
    height: f64,
    /// One line about the content, in full.
    pub(crate) title: String,
    description: String,
    content: Markup,
    /// Both axes, for a script that reads values at the pointer.
    axes: Option<String>,
}

impl Drawing {
    /// Returns a drawing without axes that a script can read.
    fn new(class: &'static str, height: f64, [title, description]: [&str; 2]) -> Self {
        Self {
            class,
            height,
            title: escape::terminal(title),
            description: escape::terminal(description),
            content: Markup::default(),
            axes: None,
        }
    }

    /// Returns the drawing as a part of a page, with its title above it.
    pub(crate) fn figure(&self) -> Markup {
        html! {
            figure {
                figcaption { (self.title) }
                svg class=(self.class) viewBox=(self.view()) role="img"
                    data-axes=[&self.axes] {
                    title { (self.title) }
                    desc { (self.description) }
                    (self.content)
                }
            }
        }
    }

    /// Returns the drawing as a file of its own, with the colours of light and dark pages.
    pub(crate) fn standalone(&self) -> String {
        let markup = html! {
            svg xmlns="http://www.w3.org/2000/svg" class=(self.class) viewBox=(self.view())
                width=(at(WIDTH)) height=(at(self.height)) role="img" {
                title { (self.title) }
                desc { (self.description) }
                style { (PreEscaped(STYLE)) }
                rect class="page" width=(at(WIDTH)) height=(at(self.height)) {}
                (self.content)
            }
        };
        markup.into_string() + "\n"
    }

    fn view(&self) -> String {
        format!("0 0 {} {}", at(WIDTH), at(self.height))
    }
}

/// Returns a coordinate as text.
fn at(coordinate: f64) -> String {
    let text = format!("{coordinate:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Returns a count as a number of a chart.
fn float(count: usize) -> f64 {
    float_from_u64(count as u64)
}

/// Returns a line between two points.
fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> Markup {
    html! { line class=(class) x1=(at(from.0)) y1=(at(from.1)) x2=(at(to.0)) y2=(at(to.1)) {} }
}

/// Returns a rectangle between two corners, in any order.
fn rectangle(class: &str, corner: (f64, f64), opposite: (f64, f64)) -> Markup {
    let (x, y) = (corner.0.min(opposite.0), corner.1.min(opposite.1));
    let (width, height) = ((corner.0 - opposite.0).abs(), (corner.1 - opposite.1).abs());
    html! { rect class=(class) x=(at(x)) y=(at(y)) width=(at(width)) height=(at(height)) {} }
}

/// Returns text at a point; `anchor` is `start`, `middle` or `end`.
fn text(class: &str, point: (f64, f64), anchor: &str, text: &str) -> Markup {
    let anchor = (anchor != "start").then_some(anchor);
    html! { text class=(class) x=(at(point.0)) y=(at(point.1)) text-anchor=[anchor] { (escape::terminal(text)) } }
}

/// Returns points for the attribute of a line or an area.
fn points(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let points = points
        .into_iter()
        .map(|(x, y)| format!("{},{}", at(x), at(y)));
    points.collect::<Vec<_>>().join(" ")
}

/// Returns the horizontal grid lines of a vertical axis, with their labels left of `left`.
fn grid(axis: &Axis, left: f64, right: f64, label: impl Fn(f64) -> String) -> Markup {
    let ticks: Vec<(f64, String)> = axis
        .ticks(5)
        .into_iter()
        .map(|tick| (axis.place(tick), label(tick)))
        .collect();
    let lines = ticks
        .iter()
        .map(|(y, _)| format!("M{} {}H{}", at(left), at(*y), at(right)));
    html! {
        path class="grid" d=(lines.collect::<String>()) {}
        g class="tick" text-anchor="end" {
            @for (y, label) in &ticks {
                text x=(at(left - 6.0)) y=(at(y + 4.0)) { (label) }
            }
        }
    }
}

/// Returns the vertical grid lines of a horizontal axis between two heights, with their labels below.
fn columns(
    axis: &Axis,
    count: u32,
    (top, foot): (f64, f64),
    label: impl Fn(f64) -> String,
) -> Markup {
    let ticks: Vec<(f64, String)> = axis
        .ticks(count)
        .into_iter()
        .map(|tick| (axis.place(tick), label(tick)))
        .collect();
    let lines = ticks
        .iter()
        .map(|(x, _)| format!("M{} {}V{}", at(*x), at(top), at(foot)));
    html! {
        path class="grid" d=(lines.collect::<String>()) {}
        g class="tick" text-anchor="middle" {
            @for (x, label) in &ticks {
                text x=(at(*x)) y=(at(foot + 16.0)) { (label) }
            }
        }
    }
}

/// Returns a change as the label of a tick.
fn change(share: f64) -> String {
    if share.abs() < 1e-9 {
        "0".to_owned()
    } else {
        signed_percent(share).replace(".0 %", " %")
    }
}

/// Returns the first `max` characters of a text, and an ellipsis if there are more.
fn shortened(text: &str, max: usize) -> String {
    let text = escape::terminal(text);
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
