//! Call stacks of one variant or two as a flame graph: the root at the top, wide where much is spent.

use maud::{Markup, html};
use stillwell_profile::FlameNode;

use super::{Drawing, WIDTH, at, float, shortened};
use crate::document::{FlameChart, escape};
use crate::words::{self, profile_amount, profile_change};

const ROW: f64 = 18.0;
const TOP: f64 = 2.0;

/// Frames narrower than this are left out.
const WIDTH_MIN: f64 = 1.5;

/// Average width of a character of a label.
const CHARACTER: f64 = 7.4;

/// Deepest row.
const DEPTH_MAX: usize = 40;

/// Changes below this share of the total have no colour.
const VISIBLE: f64 = 0.002;

/// A frame with its place.
struct Frame<'a> {
    name: &'a str,
    node: &'a FlameNode,
    depth: usize,
    left: f64,
    width: f64,
}

/// Returns the chart; `None` without an amount.
pub(crate) fn flame(chart: &FlameChart) -> Option<Drawing> {
    let total = chart.root.width();
    if total <= 0.0 || !total.is_finite() {
        return None;
    }
    let frames = frames(chart, total);
    let rows = frames.iter().map(|frame| frame.depth + 1).max()?;
    let content = html! {
        @for frame in &frames { (drawn(frame, chart)) }
    };
    let description = if chart.is_difference {
        let amounts = profile_change(chart.quantity, chart.root.amounts);
        format!(
            "All stacks: {amounts}. Widths show both variants together. Frames that grew are \
             marked as worse, frames that shrank as better."
        )
    } else {
        let amount = profile_amount(chart.quantity, chart.root.amounts[0]);
        format!("All stacks: {amount}. Widths show amounts.")
    };
    let height = TOP + ROW * float(rows);
    Some(Drawing {
        content,
        ..Drawing::new("flame", height, [&chart.title, &description])
    })
}

/// Returns the widest frames, each with its place.
fn frames(chart: &FlameChart, total: f64) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    let mut waiting = vec![(&chart.root, 0, 0.0)];
    while let Some((parent, depth, mut left)) = waiting.pop() {
        for (name, node) in &parent.callees {
            let width = node.width() / total * WIDTH;
            if width >= WIDTH_MIN && depth < DEPTH_MAX {
                frames.push(Frame {
                    name,
                    node,
                    depth,
                    left,
                    width,
                });
                waiting.push((node, depth + 1, left));
            }
            left += width.max(0.0);
        }
    }
    // A callee is never wider than its caller, so a kept frame has its callers.
    frames.sort_by(|a, b| b.width.total_cmp(&a.width).then(a.depth.cmp(&b.depth)));
    frames.truncate(chart.frames_max);
    frames
}

fn drawn(frame: &Frame<'_>, chart: &FlameChart) -> Markup {
    let top = TOP + ROW * float(frame.depth);
    let label_max = (frame.width - 6.0) / CHARACTER;
    let label = (label_max >= 3.0).then(|| shortened(frame.name, characters(label_max)));
    let name = escape::terminal(frame.name);
    let title = format!("{name}: {}", amounts(frame.node, chart));
    let class = match chart.is_difference {
        true => class(frame.node, chart.root.width()),
        false => "frame",
    };
    html! {
        g {
            title { (title) }
            rect class=(class) x=(at(frame.left)) y=(at(top))
                width=(at(frame.width)) height=(at(ROW - 1.0)) {}
            @if let Some(label) = label {
                text x=(at(frame.left + 3.0)) y=(at(top + 12.5)) { (label) }
            }
        }
    }
}

/// Returns the amounts of a frame: of both variants with their difference, or of one with its share of all stacks.
fn amounts(node: &FlameNode, chart: &FlameChart) -> String {
    let amounts = node
        .amounts
        .map(|amount| profile_amount(chart.quantity, amount));
    if chart.is_difference {
        let change = profile_change(chart.quantity, node.amounts);
        format!("{} → {}, {change}", amounts[0], amounts[1])
    } else {
        let share = words::percent(node.amounts[0] / chart.root.amounts[0]);
        format!("{}, {share} of all", amounts[0])
    }
}

/// Returns the number of whole characters.
fn characters(width: f64) -> usize {
    stillwell_units::as_usize(stillwell_units::floor_to_u64(width))
}

/// Returns the class of a frame by its change: how much of its amount is new or gone.
fn class(node: &FlameNode, total: f64) -> &'static str {
    let [baseline, comparison] = node.amounts;
    let change = comparison - baseline;
    if change.abs() < VISIBLE * total {
        return "frame";
    }
    match change / node.width() {
        share if share > 0.2 => "frame worse strong",
        share if share > 0.03 => "frame worse",
        share if share < -0.2 => "frame better strong",
        share if share < -0.03 => "frame better",
        _ => "frame",
    }
}

#[cfg(test)]
mod tests {
    use stillwell_profile::ProfileQuantity;

    use super::*;

    fn node(amounts: [f64; 2], callees: &[(&str, FlameNode)]) -> FlameNode {
        let callees = callees.iter();
        FlameNode {
            amounts,
            callees: callees
                .map(|(name, node)| ((*name).to_owned(), node.clone()))
                .collect(),
        }
    }

    fn chart(frames_max: usize) -> FlameChart {
        let hash = node([0.0, 40.0], &[]);
        let parse = node([50.0, 50.0], &[]);
        let serve = node([60.0, 100.0], &[("hash<u8>", hash), ("parse", parse)]);
        FlameChart {
            title: "CPU time per event by call stack".to_owned(),
            quantity: ProfileQuantity::CpuTime,
            is_difference: true,
            frames_max,
            root: node([60.0, 100.0], &[("serve", serve)]),
        }
    }

    #[test]
    fn the_frame_that_grew_is_marked_and_callees_stay_below_their_caller() {
        let text = flame(&chart(9)).unwrap().standalone();
        assert!(
            text.contains("hash&lt;u8&gt;: 0 ns → 40.0 ns, +40.0 ns (new)"),
            "{text}"
        );
        // `hash` is new, and `serve` grew with it.
        assert_eq!(text.matches("frame worse strong").count(), 2, "{text}");
        let chart = chart(9);
        let frames = frames(&chart, 160.0);
        let of = |name: &str| frames.iter().find(|frame| frame.name == name).unwrap();
        let (serve, parse) = (of("serve"), of("parse"));
        assert!((serve.width - WIDTH).abs() < 1e-9);
        assert!(parse.left >= serve.left && parse.left + parse.width <= serve.left + serve.width);
        assert_eq!((serve.depth, parse.depth), (0, 1));
    }

    #[test]
    fn frames_of_one_variant_have_their_share_and_no_colour() {
        let of_one = FlameChart {
            is_difference: false,
            root: node([200.0, 0.0], &[("serve", node([50.0, 0.0], &[]))]),
            ..chart(9)
        };
        let text = flame(&of_one).unwrap().standalone();
        assert!(text.contains("serve: 50.0 ns, 25.0 % of all"), "{text}");
        assert!(text.contains("\"frame\""), "{text}");
    }

    #[test]
    fn the_widest_frames_stay_if_there_are_too_many() {
        let chart = chart(2);
        let names: Vec<_> = frames(&chart, 160.0)
            .iter()
            .map(|frame| frame.name)
            .collect();
        assert_eq!(names, ["serve", "parse"]);
    }

    #[test]
    fn without_an_amount_there_is_no_chart() {
        let empty = FlameChart {
            root: FlameNode::default(),
            ..chart(9)
        };
        assert!(flame(&empty).is_none());
    }
}
