//! Bounds checks and the series they read.

use stillwell_config::shared::parse_series;
use stillwell_plan::CheckPlan;
use stillwell_plan::check::{Aggregation, SeriesSelector};
use stillwell_units::float_from_u64;

use crate::file::{parse_size, warn_of_bits};
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
    let Some(mut series) = parse_series(text) else {
        let message = format!("`{text}` does not name a series");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write `name`, `name['id']` or `avg(name)`"));
        return None;
    };
    // SMP holds the largest sample against both bounds.
    if series.aggregation == Aggregation::Each {
        series.aggregation = Aggregation::Largest;
    }
    Some(series)
}

/// Reads a bound: a plain number, or a size in bytes.
fn read_bound(reader: &Reader, node: &Node) -> Option<f64> {
    let text = reader.text(node)?;
    let number = text.trim().parse::<f64>().ok();
    let bound = number.or_else(|| {
        let size = parse_size(text)?;
        warn_of_bits(reader, node, text, size);
        Some(float_from_u64(size.bytes.bytes()))
    });
    let bound = bound.filter(|bound| bound.is_finite());
    if bound.is_none() {
        let message = format!("`{text}` is not a bound");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write a number, or a size such as `475 MiB`"));
    }
    bound
}
