//! Options of `dogstatsd`.

use stillwell_plan::payload::{
    DOGSTATSD_CONTEXTS_MAX, DogstatsdPlan, DogstatsdTimestamp, DogstatsdValue, expand_all,
};

use super::PayloadDialect;
use super::options::{range, set, share, share_range, weights};
use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};

/// Its keys.
pub(super) const DOGSTATSD_KEYS: &[&str] = &[
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

/// Reads them, and those of `dialect`.
pub(super) fn read(
    reader: &Reader,
    node: &Node,
    dialect: &dyn PayloadDialect,
) -> Option<DogstatsdPlan> {
    let mut keys = Keys::new("dogstatsd payload", DOGSTATSD_KEYS);
    keys.accepted.extend(dialect.dogstatsd_keys());
    let map = reader.map(node, &keys)?;
    let mut plan = DogstatsdPlan::default();
    let mut is_fine = dialect.read_dogstatsd(reader, &map, &mut plan);
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
            if key.starts_with("tag_") && reader.text(item).is_some_and(|text| text.contains(',')) {
                let message = "a comma ends a tag, so this text is several tags";
                reader.report(reader.warning(code::MEANING, item.span, message));
            }
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
    let usual = DogstatsdPlan::default().timestamp;
    Some(DogstatsdTimestamp {
        range: map.read_or("range", usual.range, |node| {
            range(reader, node, 0, u32::MAX)
        })?,
        probability: map.read_or("probability", usual.probability, |node| share(reader, node))?,
    })
}

/// Returns true if names and tags of these lengths give enough different contexts.
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
        "these names and tags give fewer than {} different contexts",
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
