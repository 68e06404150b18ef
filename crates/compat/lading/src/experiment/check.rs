//! Bounds checks and the series they read.

use stillwell_config::shared::parse_series;
use stillwell_plan::CheckPlan;
use stillwell_plan::check::SeriesSelector;
use stillwell_units::float_from_u64;

use crate::file::parse_size;
use stillwell_text::{Keys, Node, Reader, code};

pub(super) fn read(reader: &Reader, node: &Node) -> Option<CheckPlan> {
    let map = reader.map(
        node,
        &Keys::new("check", &["name", "description", "bounds"]),
    )?;
    let name = map.required("name").and_then(|node| reader.text(node));
    let description = map.take("description").and_then(|node| reader.text(node));
    let bounds = map.required("bounds")?;
    let keys = Keys::new("bounds", &["series", "upper_bound", "lower_bound"]);
    let bounds_map = reader.map(bounds, &keys)?;
    let series = bounds_map
        .required("series")
        .and_then(|node| read_series(reader, node));
    let upper = bounds_map.take("upper_bound");
    let lower = bounds_map.take("lower_bound");
    if upper.is_none() && lower.is_none() {
        let error = reader.error(code::BAD_BOUNDS, bounds.span, "a check without a bound");
        reader.report(error.label("expected `upper_bound` or `lower_bound`"));
    }
    Some(CheckPlan {
        name: name?.to_owned(),
        description: description.map(str::to_owned),
        series: series?,
        upper: upper.and_then(|node| read_bound(reader, node)),
        lower: lower.and_then(|node| read_bound(reader, node)),
    })
}

fn read_series(reader: &Reader, node: &Node) -> Option<SeriesSelector> {
    let text = reader.text(node)?;
    let series = parse_series(text);
    if series.is_none() {
        let message = format!("`{text}` does not name a series");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write `name`, `name['id']` or `avg(name)`"));
    }
    series
}

fn read_bound(reader: &Reader, node: &Node) -> Option<f64> {
    let text = reader.text(node)?;
    let bound = parse_bound(text);
    if bound.is_none() {
        let message = format!("`{text}` is not a bound");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write a number, or a size such as `475 MiB`"));
    }
    bound
}

/// A bound as a plain number, or as a size in bytes.
#[must_use]
pub(super) fn parse_bound(text: &str) -> Option<f64> {
    let number = text.trim().parse::<f64>().ok();
    number
        .or_else(|| Some(float_from_u64(parse_size(text)?.bytes.bytes())))
        .filter(|bound| bound.is_finite())
}
