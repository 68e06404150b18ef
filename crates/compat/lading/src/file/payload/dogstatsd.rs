//! Options of `dogstatsd` as earlier versions of lading spelt them.

use stillwell_config::shared::read_range;
use stillwell_plan::payload::{Between, DOGSTATSD_CONTEXTS_MAX, DogstatsdPlan};
use stillwell_text::{MapReader, Reader, code};

/// Ranges as they were spelt before: today's name, the two ends, and the name of
/// the range.
const OLD_RANGES: [[&str; 4]; 6] = [
    [
        "contexts",
        "contexts_minimum",
        "contexts_maximum",
        "contexts_range",
    ],
    [
        "name_length",
        "name_length_minimum",
        "name_length_maximum",
        "name_length_range",
    ],
    [
        "tags_per_msg",
        "tags_per_msg_minimum",
        "tags_per_msg_maximum",
        "tags_per_msg_range",
    ],
    [
        "multivalue_count",
        "multivalue_count_minimum",
        "multivalue_count_maximum",
        "multivalue_count_range",
    ],
    [
        "tag_key_length",
        "tag_key_length_minimum",
        "tag_key_length_maximum",
        "tag_key_length_range",
    ],
    [
        "tag_value_length",
        "tag_value_length_minimum",
        "tag_value_length_maximum",
        "tag_value_length_range",
    ],
];

/// The keys of earlier versions.
pub(super) fn keys() -> Vec<&'static str> {
    let ranges = OLD_RANGES.iter().flat_map(|names| &names[1..]).copied();
    let renamed = ["tag_key_length", "tag_value_length", "prefix_metric_names"];
    ranges.chain(renamed).collect()
}

/// Reads the keys of earlier versions into `plan`; false where something is wrong.
pub(super) fn read(reader: &Reader, map: &MapReader<'_, '_>, plan: &mut DogstatsdPlan) -> bool {
    let (mut key, mut value) = (None, None);
    let mut is_fine = true;
    for names in OLD_RANGES {
        let Some(range) = old_range(reader, map, names) else {
            continue;
        };
        let Some(range) = range else {
            is_fine = false;
            continue;
        };
        match names[0] {
            "contexts" => plan.contexts = range,
            "name_length" => plan.name_length = narrow(range),
            "tags_per_msg" => {
                let narrow_end = |end: u32| u8::try_from(end).unwrap_or(u8::MAX);
                plan.tags_per_message = Between::new(narrow_end(range.low), narrow_end(range.high));
            }
            "multivalue_count" => plan.multivalue_count = narrow(range),
            "tag_key_length" => key = Some(narrow(range)),
            _ => value = Some(narrow(range)),
        }
    }
    if key.is_some() || value.is_some() {
        // Key, colon and value now have one length.
        let (key, value) = (
            key.unwrap_or(Between::new(1, 49)),
            value.unwrap_or(Between::new(1, 50)),
        );
        let sum = |key: u16, value: u16| key.saturating_add(value).saturating_add(1);
        plan.tag_length = Between::new(sum(key.low, value.low), sum(key.high, value.high));
    }
    if let Some(node) = map.take("prefix_metric_names") {
        let message = "`prefix_metric_names` has no effect: names are random";
        let note = reader.warning(code::NO_EFFECT, node.span, message);
        reader.report(note.help("list complete names in `metric_names`"));
    }
    is_fine
}

/// Reads the range under one of its old names; the inner `None` if it is invalid.
fn old_range(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    [today, minimum, maximum, whole]: [&'static str; 4],
) -> Option<Option<Between<u32>>> {
    // Without contexts there would be no data.
    let least = u32::from(today == "contexts");
    let within = |node| reader.whole(node, least, DOGSTATSD_CONTEXTS_MAX);
    let is_separate = today.starts_with("tag_key") || today.starts_with("tag_value");
    let plain = if is_separate { map.take(today) } else { None };
    let (low, high) = (map.take(minimum), map.take(maximum));
    let node = plain.or_else(|| map.take(whole)).or(low).or(high)?;
    if !is_separate {
        let message = format!("read as `{today}`, the current name in lading");
        reader.report(reader.note(code::MEANING, node.span, message));
    }
    if let (Some(low), Some(high)) = (low, high) {
        let (from, to) = (within(low), within(high));
        return Some(
            from.zip(to)
                .map(|(from, to)| Between::new(from.min(to), to)),
        );
    }
    if low.is_some() || high.is_some() {
        return Some(within(node).map(Between::only));
    }
    Some(read_range(reader, node, least, DOGSTATSD_CONTEXTS_MAX))
}

fn narrow(range: Between<u32>) -> Between<u16> {
    let end = |end: u32| u16::try_from(end).unwrap_or(u16::MAX).max(1);
    Between::new(end(range.low), end(range.high))
}
