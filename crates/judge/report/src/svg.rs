//! Charts as SVG: pure functions from data to elements.
//!
//! Colours come from the style sheet of the page, by class. Each chart has a title and a description for readers
//! who do not see it, and stays within its view box.

mod axis;
mod curve;
mod intervals;
mod pairs;
#[cfg(test)]
mod tests;

use maud::{Markup, html};
use stillwell_units::float_from_u64;
use stillwell_units::human::signed_percent;

use crate::document::escape;

pub(crate) use curve::curve;
pub(crate) use intervals::intervals;
pub(crate) use pairs::pairs;

use axis::Axis;

/// Width of every chart, in units of its view box.
const WIDTH: f64 = 760.0;

/// Returns `content` in an element with a title and a description.
fn figure(class: &str, height: f64, title: &str, description: &str, content: &Markup) -> Markup {
    let [title, description] = [title, description].map(escape::terminal);
    html! {
        figure {
            figcaption { (title) }
            svg class=(class) viewBox=(format!("0 0 {} {}", at(WIDTH), at(height))) role="img"
                aria-label=(title) {
                title { (title) }
                desc { (description) }
                (content)
            }
        }
    }
}

/// Returns a coordinate as text.
fn at(coordinate: f64) -> String {
    format!("{coordinate:.1}")
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
    html! { text class=(class) x=(at(point.0)) y=(at(point.1)) text-anchor=(anchor) { (text) } }
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
    html! {
        @for tick in axis.ticks(5) {
            @let y = axis.place(tick);
            (line("grid", (left, y), (right, y)))
            (text("tick", (left - 6.0, y + 4.0), "end", &label(tick)))
        }
    }
}

/// Returns a change as the label of a tick.
fn change(share: f64) -> String {
    if share.abs() < 1e-9 {
        "0".to_owned()
    } else {
        signed_percent(share)
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
