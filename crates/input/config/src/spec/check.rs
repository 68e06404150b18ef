//! `checks`.

use stillwell_plan::CheckPlan;
use stillwell_text::{MapReader, Node, code};
use stillwell_units::{ByteSize, float_from_u64};

use super::ReadContext;
use super::series::parse_series;
use crate::element::{Element, Shape, optional, required};

const BOUND: Shape = Shape::Any(&[Shape::Number, Shape::Like("475 MiB")]);

pub(super) const CHECK: Element = Element::new(
    "check",
    "A bound that every run must keep.",
    &[
        required("name", Shape::Text, "Name in reports."),
        optional("description", Shape::Text, "Reason for the check."),
        required(
            "series",
            Shape::Like("avg(total_rss_bytes)"),
            "`name`, `name['id']`, or either within `avg(…)`.",
        ),
        optional("upper_bound", BOUND, "The largest value that is allowed."),
        optional("lower_bound", BOUND, "The smallest value that is allowed."),
    ],
);

pub(super) fn read_check(context: &ReadContext<'_>, node: &Node) -> Option<CheckPlan> {
    let reader = context.reader;
    let map = reader.map(node, &CHECK.keys())?;
    let name = map.required("name").and_then(|node| context.filled(node));
    let description = map.take("description").and_then(|node| reader.text(node));
    let series = map.required("series").and_then(|node| {
        let text = reader.text(node)?;
        let series = parse_series(text);
        if series.is_none() {
            let message = format!("`{text}` does not name a series");
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("write `name`, `name['id']` or `avg(name)`"));
        }
        series
    });
    let (upper, lower) = read_bounds(context, &map);
    Some(CheckPlan {
        name: name?.to_owned(),
        description: description.map(str::to_owned),
        series: series?,
        upper,
        lower,
    })
}

fn read_bounds(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> (Option<f64>, Option<f64>) {
    let reader = context.reader;
    let (upper_node, lower_node) = (map.take("upper_bound"), map.take("lower_bound"));
    let upper = upper_node.and_then(|node| read_bound(context, node));
    let lower = lower_node.and_then(|node| read_bound(context, node));
    if upper_node.is_none() && lower_node.is_none() {
        let error = reader.error(code::BAD_BOUNDS, map.span(), "a check without a bound");
        reader.report(error.label("expected `upper_bound` or `lower_bound`"));
    }
    if let (Some(upper), Some(lower), Some(node)) = (upper, lower, lower_node)
        && lower > upper
    {
        let message = "`lower_bound` is above `upper_bound`";
        reader.report(reader.error(code::BAD_BOUNDS, node.span, message));
    }
    (upper, lower)
}

fn read_bound(context: &ReadContext<'_>, node: &Node) -> Option<f64> {
    let text = context.reader.text(node)?;
    if let Ok(number) = text.parse::<f64>()
        && number.is_finite()
    {
        return Some(number);
    }
    match text.parse::<ByteSize>() {
        Ok(size) => Some(float_from_u64(size.bytes())),
        Err(_) => {
            let message = format!("`{text}` is not a bound");
            let error = context.reader.error(code::BAD_VALUE, node.span, message);
            context
                .reader
                .report(error.label("write a number, or a size such as `475 MiB`"));
            None
        }
    }
}
