//! The page of metrics that lading's `http` blackhole can be.

use stillwell_plan::sink::OpenmetricsPlan;

use stillwell_text::{Keys, Node, Reader, Value, code};

/// Largest number of families of one type, so a page is written quickly.
const FAMILIES_MAX: u32 = 100_000;

/// lading's names of labels, and Stillwell's.
const LABELS: [(&str, &str); 5] = [
    ("services", "service"),
    ("regions", "region"),
    ("methods", "method"),
    ("status_classes", "status_class"),
    ("consumers", "consumer"),
];

/// The page that `options` describe.
pub(super) fn read(reader: &Reader, options: Option<&Node>) -> Option<OpenmetricsPlan> {
    let mut plan = OpenmetricsPlan {
        prefix: "lading_openmetrics".to_owned(),
        ..OpenmetricsPlan::default()
    };
    let Some(options) = options.filter(|node| !matches!(node.value, Value::Null)) else {
        return Some(plan);
    };
    let accepted = [
        "metric_name_prefix",
        "include_help",
        "include_type",
        "counters",
        "gauges",
        "histograms",
        "summaries",
        "labels",
    ];
    let map = reader.map(options, &Keys::new("openmetrics body", &accepted))?;
    if let Some(node) = map.take("metric_name_prefix") {
        plan.prefix = read_name(reader, node)?;
    }
    for (key, place) in [
        ("include_help", &mut plan.has_help),
        ("include_type", &mut plan.has_type),
    ] {
        if let Some(node) = map.take(key) {
            *place = reader.boolean(node)?;
        }
    }
    for (key, count, values) in [
        ("counters", &mut plan.counters, None),
        ("gauges", &mut plan.gauges, None),
        (
            "histograms",
            &mut plan.histograms,
            Some(("buckets", &mut plan.buckets)),
        ),
        (
            "summaries",
            &mut plan.summaries,
            Some(("quantiles", &mut plan.quantiles)),
        ),
    ] {
        if let Some(node) = map.take(key) {
            read_families(reader, node, count, values)?;
        }
    }
    if let Some(node) = map.take("labels") {
        read_labels(reader, node, &mut plan)?;
    }
    Some(plan)
}

fn read_families(
    reader: &Reader,
    node: &Node,
    count: &mut u32,
    values: Option<(&'static str, &mut Vec<String>)>,
) -> Option<()> {
    let mut accepted = vec!["count"];
    accepted.extend(values.as_ref().map(|(key, _)| *key));
    let map = reader.map(node, &Keys::new("families", &accepted))?;
    if let Some(node) = map.take("count") {
        *count = reader.whole(node, 0, FAMILIES_MAX)?;
    }
    if let Some((key, texts)) = values
        && let Some(node) = map.take(key)
    {
        let numbers = reader.texts(node);
        let is_number = |text: &String| text.parse::<f64>().is_ok_and(f64::is_finite);
        if !numbers.iter().all(is_number) {
            let message = format!("`{key}` must be a list of finite numbers");
            reader.report(reader.error(code::BAD_VALUE, node.span, message));
            return None;
        }
        *texts = numbers;
    }
    Some(())
}

fn read_labels(reader: &Reader, node: &Node, plan: &mut OpenmetricsPlan) -> Option<()> {
    let mut accepted: Vec<&'static str> = LABELS.iter().map(|(key, _)| *key).collect();
    accepted.push("route_count");
    let map = reader.map(node, &Keys::new("labels", &accepted))?;
    for (key, name) in LABELS {
        let Some(node) = map.take(key) else {
            continue;
        };
        let values = reader.texts(node);
        if values.is_empty() || values.iter().any(|text| text.contains(['"', '\\', '\n'])) {
            let message =
                format!("`{key}` must be one or more strings without `\"`, `\\` or line breaks");
            reader.report(reader.error(code::BAD_VALUE, node.span, message));
            return None;
        }
        if let Some(label) = plan.labels.iter_mut().find(|(label, _)| label == name) {
            label.1 = values;
        }
    }
    if let Some(node) = map.take("route_count") {
        plan.routes = reader.whole(node, 1, 1_000_000)?;
    }
    Some(())
}

fn read_name(reader: &Reader, node: &Node) -> Option<String> {
    let text = reader.text(node)?;
    let is_name = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        text.bytes().all(plain) && text.starts_with(|first: char| !first.is_ascii_digit())
    };
    if !is_name(text) {
        let message = format!("`{text}` cannot begin the name of a metric");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("letters, digits and `_`, no digit first"));
        return None;
    }
    Some(text.to_owned())
}
