//! Options of `dogstatsd`.

use stillwell_plan::{
    Between, DOGSTATSD_CONTEXTS_MAX, DogstatsdPlan, DogstatsdTimestamp, DogstatsdValue, expand_all,
};

use super::options::{range, set, share, share_range, weights};
use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};

/// Its keys.
pub const DOGSTATSD_KEYS: &[&str] = &[
    "contexts",
    "service_check_names",
    "name_length",
    "tag_length",
    "tags_per_msg",
    "multivalue_pack_probability",
    "multivalue_count",
    "sampling_range",
    "sampling_probability",
    "kind_weights",
    "metric_weights",
    "value",
    "length_prefix_framed",
    "unique_tag_ratio",
    "metric_names",
    "tag_names",
    "tag_values",
    "container_ids",
    "external_data",
    "cardinality",
    "timestamp",
];

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

/// Reads them; `old` says whether spellings of earlier versions of lading are
/// accepted.
pub(super) fn read(reader: &Reader, node: &Node, old: bool) -> Option<DogstatsdPlan> {
    let mut keys = Keys::new("dogstatsd payload", DOGSTATSD_KEYS);
    if old {
        keys.accepted
            .extend(OLD_RANGES.iter().flat_map(|names| &names[1..]));
        keys.accepted
            .extend(["tag_key_length", "tag_value_length", "prefix_metric_names"]);
    }
    let map = reader.map(node, &keys)?;
    let mut plan = DogstatsdPlan::default();
    let mut is_fine = true;
    if old {
        is_fine &= read_old(reader, &map, &mut plan);
    }
    is_fine &= read_sizes(reader, &map, &mut plan);
    is_fine &= read_shares(reader, &map, &mut plan);
    is_fine &= read_weights(reader, &map, &mut plan);
    is_fine &= read_lists(reader, &map, &mut plan);
    is_fine &= set(&map, "value", &mut plan.value, |node| {
        read_value(reader, node)
    });
    is_fine &= set(&map, "timestamp", &mut plan.timestamp, |node| {
        read_timestamp(reader, node)
    });
    let framed = &mut plan.length_prefix_framed;
    is_fine &= set(&map, "length_prefix_framed", framed, |node| {
        reader.boolean(node)
    });
    (is_fine && check_contexts(reader, &map, node, &plan)).then_some(plan)
}

fn read_sizes(reader: &Reader, map: &MapReader<'_, '_>, plan: &mut DogstatsdPlan) -> bool {
    let contexts = set(map, "contexts", &mut plan.contexts, |node| {
        range(reader, node, 1, DOGSTATSD_CONTEXTS_MAX)
    });
    let names = set(
        map,
        "service_check_names",
        &mut plan.service_check_names,
        |node| range(reader, node, 1, u16::MAX),
    );
    let name = set(map, "name_length", &mut plan.name_length, |node| {
        range(reader, node, 1, 4096)
    });
    let tag = set(map, "tag_length", &mut plan.tag_length, |node| {
        range(reader, node, 1, 4096)
    });
    let tags = set(map, "tags_per_msg", &mut plan.tags_per_message, |node| {
        range(reader, node, 0, u8::MAX)
    });
    let values = set(
        map,
        "multivalue_count",
        &mut plan.multivalue_count,
        |node| range(reader, node, 1, u16::MAX),
    );
    contexts && names && name && tag && tags && values
}

fn read_shares(reader: &Reader, map: &MapReader<'_, '_>, plan: &mut DogstatsdPlan) -> bool {
    let pack = &mut plan.multivalue_probability;
    let pack = set(map, "multivalue_pack_probability", pack, |node| {
        share(reader, node)
    });
    let sampling = set(map, "sampling_range", &mut plan.sampling_range, |node| {
        share_range(reader, node)
    });
    let sampled = &mut plan.sampling_probability;
    let sampled = set(map, "sampling_probability", sampled, |node| {
        share(reader, node)
    });
    let unique = set(
        map,
        "unique_tag_ratio",
        &mut plan.unique_tag_ratio,
        |node| {
            let ratio = share(reader, node)?;
            if ratio < 0.01 {
                let message = "fewer than one tag in a hundred would be distinct";
                let error = reader.error(code::OUT_OF_RANGE, node.span, message);
                reader.report(error.label("write a number from 0.01 to 1"));
                return None;
            }
            Some(ratio)
        },
    );
    pack && sampling && sampled && unique
}

fn read_weights(reader: &Reader, map: &MapReader<'_, '_>, plan: &mut DogstatsdPlan) -> bool {
    let kinds = &mut plan.kind_weights;
    let kinds = map.take("kind_weights").is_none_or(|node| {
        let places = &mut [
            ("metric", &mut kinds.metric),
            ("event", &mut kinds.event),
            ("service_check", &mut kinds.service_check),
        ];
        weights(reader, node, "kind_weights", true, places)
    });
    let types = &mut plan.metric_weights;
    let types = map.take("metric_weights").is_none_or(|node| {
        let places = &mut [
            ("count", &mut types.count),
            ("gauge", &mut types.gauge),
            ("timer", &mut types.timer),
            ("distribution", &mut types.distribution),
            ("set", &mut types.set),
            ("histogram", &mut types.histogram),
        ];
        weights(reader, node, "metric_weights", true, places)
    });
    kinds && types
}

fn read_lists(reader: &Reader, map: &MapReader<'_, '_>, plan: &mut DogstatsdPlan) -> bool {
    let lists = [
        ("metric_names", &mut plan.metric_names),
        ("tag_names", &mut plan.tag_names),
        ("tag_values", &mut plan.tag_values),
        ("container_ids", &mut plan.container_ids),
        ("external_data", &mut plan.external_data),
        ("cardinality", &mut plan.cardinality),
    ];
    let mut is_fine = true;
    for (key, place) in lists {
        let Some(node) = map.take(key) else {
            continue;
        };
        *place = reader.texts(node);
        if key == "container_ids" && matches!(&node.value, Value::List(items) if items.is_empty()) {
            // Who writes an empty list wants none, and not those of our own.
            place.push(String::new());
        }
        for item in reader.list(node).unwrap_or_default() {
            if let Some(text) = reader.text(item)
                && let Err(problem) = expand_all(&[text.to_owned()])
            {
                let error = reader.error(code::BAD_VALUE, item.span, problem.to_string());
                reader.report(error);
                is_fine = false;
            }
        }
    }
    is_fine
}

fn read_value(reader: &Reader, node: &Node) -> Option<DogstatsdValue> {
    let map = reader.map(node, &Keys::new("value", &["float_probability", "range"]))?;
    let floats = map
        .required("float_probability")
        .and_then(|node| share(reader, node));
    let values = map
        .required("range")
        .and_then(|node| range(reader, node, i64::MIN, i64::MAX));
    Some(DogstatsdValue {
        float_probability: floats?,
        range: values?,
    })
}

fn read_timestamp(reader: &Reader, node: &Node) -> Option<DogstatsdTimestamp> {
    let map = reader.map(node, &Keys::new("timestamp", &["range", "probability"]))?;
    let times = map
        .required("range")
        .and_then(|node| range(reader, node, 0, u32::MAX));
    let often = map
        .required("probability")
        .and_then(|node| share(reader, node));
    Some(DogstatsdTimestamp {
        range: times?,
        probability: often?,
    })
}

/// Whether names and tags of these lengths tell so many contexts apart.
fn check_contexts(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    node: &Node,
    plan: &DogstatsdPlan,
) -> bool {
    // Patterns were looked at before.
    let Ok(room) = plan.context_room() else {
        return false;
    };
    let most = room.contexts();
    if u64::from(plan.contexts.high) <= most {
        return true;
    }
    let span = map.key_span("contexts").unwrap_or(node.span);
    let message = format!(
        "{} contexts cannot be told apart by these names and tags",
        plan.contexts.high
    );
    let error = reader.error(code::OUT_OF_RANGE, span, message);
    reader.report(
        error
            .label(format!("at most {most} here"))
            .help("allow longer names, more names, or tags with more values"),
    );
    false
}

/// Spellings of earlier versions.
fn read_old(reader: &Reader, map: &MapReader<'_, '_>, plan: &mut DogstatsdPlan) -> bool {
    let (mut key, mut value) = (None, None);
    let mut is_fine = true;
    for names in OLD_RANGES {
        let Some(found) = old_range(reader, map, names) else {
            continue;
        };
        let Some(found) = found else {
            is_fine = false;
            continue;
        };
        match names[0] {
            "contexts" => plan.contexts = found,
            "name_length" => plan.name_length = narrow(found),
            "tags_per_msg" => {
                let most = |end: u32| u8::try_from(end).unwrap_or(u8::MAX);
                plan.tags_per_message = Between::new(most(found.low), most(found.high));
            }
            "multivalue_count" => plan.multivalue_count = narrow(found),
            "tag_key_length" => key = Some(narrow(found)),
            _ => value = Some(narrow(found)),
        }
    }
    if key.is_some() || value.is_some() {
        // Key, colon and value have one length together today.
        let (key, value) = (
            key.unwrap_or(Between::new(1, 49)),
            value.unwrap_or(Between::new(1, 50)),
        );
        let sum = |key: u16, value: u16| key.saturating_add(value).saturating_add(1);
        plan.tag_length = Between::new(sum(key.low, value.low), sum(key.high, value.high));
    }
    if let Some(node) = map.take("prefix_metric_names") {
        let message = "`prefix_metric_names` has no effect: names are drawn";
        let note = reader.warning(code::NO_EFFECT, node.span, message);
        reader.report(note.help("give whole names by `metric_names`"));
    }
    is_fine
}

/// The range under one of its old names; the inner none where it is wrong.
fn old_range(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    [today, minimum, maximum, whole]: [&'static str; 4],
) -> Option<Option<Between<u32>>> {
    // Without contexts there would be nothing to send.
    let least = u32::from(today == "contexts");
    let within = |node| reader.whole(node, least, DOGSTATSD_CONTEXTS_MAX);
    let is_separate = today.starts_with("tag_key") || today.starts_with("tag_value");
    let plain = if is_separate { map.take(today) } else { None };
    let (low, high) = (map.take(minimum), map.take(maximum));
    let node = plain.or_else(|| map.take(whole)).or(low).or(high)?;
    if !is_separate {
        let message = format!("read as `{today}`, which lading calls it today");
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
    Some(range(reader, node, least, DOGSTATSD_CONTEXTS_MAX))
}

fn narrow(range: Between<u32>) -> Between<u16> {
    let end = |end: u32| u16::try_from(end).unwrap_or(u16::MAX).max(1);
    Between::new(end(range.low), end(range.high))
}
