//! Ranges, shares and weights, as options of payloads have them.

use std::fmt::Display;
use std::str::FromStr;

use stillwell_plan::payload::Between;

use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};

/// Reads a range within `minimum` to `maximum`: `5`, `"5..10"`, `{constant: 5}`,
/// `{inclusive: {min: 5, max: 10}}` or `{min: 5, max: 10}`.
pub fn range<T>(reader: &Reader, node: &Node, minimum: T, maximum: T) -> Option<Between<T>>
where
    T: Copy + Display + FromStr + PartialOrd,
{
    range_by(reader, node, &|end| reader.whole(end, minimum, maximum))
}

/// Reads a range of shares, from 0 to 1.
pub(super) fn share_range(reader: &Reader, node: &Node) -> Option<Between<f64>> {
    range_by(reader, node, &|end| share(reader, end))
}

fn range_by<T: Copy + PartialOrd>(
    reader: &Reader,
    node: &Node,
    read: &impl Fn(&Node) -> Option<T>,
) -> Option<Between<T>> {
    if let Value::Scalar { text, .. } = &node.value {
        let Some((low, high)) = text.split_once("..") else {
            return read(node).map(Between::only);
        };
        let end = |text: &str| Node {
            span: node.span,
            value: Value::Scalar {
                text: text.trim().to_owned(),
                quoted: false,
            },
        };
        let (low, high) = (read(&end(low)), read(&end(high)));
        return ordered(reader, node, low?, high?);
    }
    let map = reader.map(
        node,
        &Keys::new("range", &["constant", "inclusive", "min", "max"]),
    )?;
    if map.key_span("min").is_some() || map.key_span("max").is_some() {
        return ends(reader, node, &map, read);
    }
    match map.one_of(&["constant", "inclusive"])? {
        ("constant", value) => read(value).map(Between::only),
        (_, inner) => {
            let map = reader.map(inner, &Keys::new("range", &["min", "max"]))?;
            ends(reader, inner, &map, read)
        }
    }
}

fn ends<T: Copy + PartialOrd>(
    reader: &Reader,
    node: &Node,
    map: &MapReader<'_, '_>,
    read: &impl Fn(&Node) -> Option<T>,
) -> Option<Between<T>> {
    let (low, high) = (map.required("min"), map.required("max"));
    let (low, high) = (low.and_then(read), high.and_then(read));
    ordered(reader, node, low?, high?)
}

fn ordered<T: Copy + PartialOrd>(
    reader: &Reader,
    node: &Node,
    low: T,
    high: T,
) -> Option<Between<T>> {
    if low > high {
        let message = "a range goes from its minimum to its maximum";
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        reader.report(error.label("its minimum is above its maximum"));
        return None;
    }
    Some(Between::new(low, high))
}

/// Reads a share from 0 to 1.
pub(super) fn share(reader: &Reader, node: &Node) -> Option<f64> {
    let text = reader.text(node)?;
    let value: Option<f64> = text.parse().ok();
    match value {
        Some(share) if (0.0..=1.0).contains(&share) => Some(share),
        _ => {
            let (code, message) = match value {
                Some(_) => (code::OUT_OF_RANGE, format!("`{text}` is out of range")),
                None => (code::BAD_VALUE, format!("`{text}` is not a number")),
            };
            let error = reader.error(code, node.span, message);
            reader.report(error.label("write a number from 0 to 1"));
            None
        }
    }
}

/// Sets `place` to what `read` makes of the value of `key`, if it is there;
/// false where there is something wrong with it.
pub(super) fn set<T>(
    map: &MapReader<'_, '_>,
    key: &'static str,
    place: &mut T,
    read: impl FnOnce(&Node) -> Option<T>,
) -> bool {
    let Some(node) = map.take(key) else {
        return true;
    };
    match read(node) {
        Some(value) => {
            *place = value;
            true
        }
        None => false,
    }
}

/// Reads weights into `places`; all of them where `all` says so, and not all 0.
pub(super) fn weights(
    reader: &Reader,
    node: &Node,
    what: &'static str,
    all: bool,
    places: &mut [(&'static str, &mut u8)],
) -> bool {
    let names: Vec<&'static str> = places.iter().map(|(name, _)| *name).collect();
    let Some(map) = reader.map(node, &Keys::new(what, &names)) else {
        return false;
    };
    let mut is_fine = true;
    for (name, place) in places.iter_mut() {
        let value = if all {
            map.required(name)
        } else {
            map.take(name)
        };
        match value.map(|node| reader.whole(node, 0, u8::MAX)) {
            Some(Some(weight)) => **place = weight,
            Some(None) => is_fine = false,
            None => is_fine &= !all,
        }
    }
    if is_fine && places.iter().all(|(_, weight)| **weight == 0) {
        let error = reader.error(code::OUT_OF_RANGE, node.span, "all weights are 0");
        reader.report(error.label("at least one must be above 0"));
        return false;
    }
    is_fine
}
