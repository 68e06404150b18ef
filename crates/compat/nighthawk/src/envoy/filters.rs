//! HTTP filters, and their options.

use serde_json::{Map, Number, Value as Json};
use stillwell_plan::serve::{FilterSet, ResponseOptions};
use stillwell_text::{Keys, Node, Reader, Value, code};

use super::common::{ExtensionTypes, check_type, named, warn_unused};

const NAMES: &[&str] = &[
    "test-server",
    "dynamic-delay",
    "time-tracking",
    "envoy.filters.http.router",
    "envoy.router",
    FAULT[0],
    FAULT[1],
];

/// Filters by the message that configures them. In older files the options of `test-server` are those of all three.
const BY_TYPE: ExtensionTypes = &[
    (
        "ResponseOptions",
        "test-server",
        &["dynamic-delay", "time-tracking"],
    ),
    ("DynamicDelayConfiguration", "dynamic-delay", &[]),
    ("TimeTrackingConfiguration", "time-tracking", &[]),
    ("Router", "envoy.filters.http.router", &[]),
    ("HTTPFault", FAULT[0], &[]),
];

/// Messages that configure filters.
const TYPES: &[&str] = &[
    "ResponseOptions",
    "DynamicDelayConfiguration",
    "TimeTrackingConfiguration",
];

/// Options of filters, in both spellings of protocol buffers.
const OPTIONS: &[&str] = &[
    "@type",
    "response_body_size",
    "responseBodySize",
    "response_headers",
    "responseHeaders",
    "v3_response_headers",
    "v3ResponseHeaders",
    "echo_request_headers",
    "echoRequestHeaders",
    "static_delay",
    "staticDelay",
    "concurrency_based_linear_delay",
    "concurrencyBasedLinearDelay",
    "emit_previous_request_delta_in_response_header",
    "emitPreviousRequestDeltaInResponseHeader",
    "response_options",
    "responseOptions",
    "experimental_response_options",
    "experimentalResponseOptions",
];

/// Keys of options within options.
const NESTED: [&str; 4] = [
    "response_options",
    "responseOptions",
    "experimental_response_options",
    "experimentalResponseOptions",
];

/// Filter that delays a request by a header of its own.
const FAULT: [&str; 2] = ["envoy.filters.http.fault", "envoy.fault"];

/// Keys of that filter which state nothing else.
const FAULT_KEYS: &[&str] = &["@type", "delay", "max_active_faults"];

/// Reads the filters of a chain in front of the router, and their options. Filters behind
/// `test-server` never receive a request.
pub(super) fn read(reader: &Reader, node: &Node) -> Option<(FilterSet, ResponseOptions)> {
    let mut filters = FilterSet {
        test_server: false,
        dynamic_delay: false,
        header_delay: false,
        time_tracking: false,
    };
    let mut options = ResponseOptions::default();
    let mut has_router = false;
    for item in reader.list(node)? {
        let Some((name, config)) = named(reader, item, "HTTP filter", (NAMES, BY_TYPE)) else {
            continue;
        };
        if has_router {
            let message = format!("`{name}` comes after the router");
            let error = reader.error(code::WRONG_SHAPE, item.span, message);
            reader.report(error.label("the router comes last"));
        }
        if matches!(name, "envoy.filters.http.router" | "envoy.router") {
            has_router = true;
            if let Some(map) = config.and_then(|node| {
                reader.map(node, &Keys::new("router", &["@type", "dynamic_stats"]))
            }) {
                check_type(reader, &map, &["Router"]);
                map.ignore("dynamic_stats");
            }
            continue;
        }
        if filters.test_server {
            let message = format!("`{name}` comes after `test-server` and has no effect");
            reader.report(reader.warning(code::NO_EFFECT, item.span, message));
            continue;
        }
        if FAULT.contains(&name) {
            let delays = config.and_then(|node| read_fault(reader, node));
            filters.header_delay |= delays.is_some();
            continue;
        }
        match name {
            "test-server" => filters.test_server = true,
            "dynamic-delay" => filters.dynamic_delay = true,
            _ => filters.time_tracking = true,
        }
        if let Some(more) = config.and_then(|node| read_options(reader, node)) {
            options = options.merged(more);
        }
    }
    if !has_router {
        let error = reader.error(code::MISSING_KEY, node.span, "there is no router");
        reader.report(error.help("the last filter is `name: envoy.filters.http.router`"));
    }
    Some((filters, options))
}

/// Checks that a fault filter only delays by header, and every request; `None` if it delays none.
fn read_fault(reader: &Reader, node: &Node) -> Option<()> {
    let map = reader.map(node, &Keys::new("fault filter", FAULT_KEYS))?;
    check_type(reader, &map, &["HTTPFault"]);
    warn_unused(reader, &map, &["max_active_faults"]);
    let node = map.take("delay")?;
    let delay = reader.map(node, &Keys::new("delay", &["header_delay", "percentage"]))?;
    delay.ignore("header_delay");
    let percentage = delay.take("percentage");
    let keys = Keys::new("percentage", &["numerator", "denominator"]);
    let share = percentage.and_then(|node| reader.map(node, &keys));
    let numerator = share.as_ref().and_then(|map| map.take("numerator"));
    let numerator = numerator.and_then(|node| reader.whole(node, 0, u32::MAX));
    let denominators = [
        ("HUNDRED", 100),
        ("TEN_THOUSAND", 10_000),
        ("MILLION", 1_000_000),
    ];
    let denominator = match share.as_ref().and_then(|map| map.take("denominator")) {
        Some(node) => reader.word(node, "denominator", &denominators)?,
        None => 100,
    };
    if numerator != Some(denominator) {
        let message = "a delay by header must apply to 100 % of the requests";
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write `percentage: {numerator: 100}`"));
    }
    Some(())
}

fn read_options(reader: &Reader, node: &Node) -> Option<ResponseOptions> {
    let map = reader.map(node, &Keys::new("filter", OPTIONS))?;
    check_type(reader, &map, TYPES);
    for key in &OPTIONS[1..] {
        map.ignore(key);
    }
    let Json::Object(mut options) = json(node) else {
        return None;
    };
    options.remove("@type");
    // Older files of Nighthawk nest the options of a dynamic delay.
    for key in NESTED {
        if let Some(Json::Object(nested)) = options.remove(key) {
            options.extend(nested);
        }
    }
    let text = Json::Object(options).to_string();
    match ResponseOptions::from_json(text.as_bytes()) {
        Ok(options) => Some(options),
        Err(error) => {
            // A place in that text would mislead.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            reader.report(reader.error(code::BAD_VALUE, node.span, message));
            None
        }
    }
}

/// Returns `node` as JSON.
pub(super) fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => {
            let pairs = entries.iter();
            let pairs = pairs.map(|entry| (entry.key.text.clone(), json(&entry.value)));
            Json::Object(pairs.collect::<Map<_, _>>())
        }
        Value::Scalar { text, quoted } => match text.as_str() {
            "true" if !quoted => Json::Bool(true),
            "false" if !quoted => Json::Bool(false),
            text => match text.parse::<u64>() {
                Ok(number) if !quoted => Json::Number(Number::from(number)),
                _ if *quoted => Json::String(text.to_owned()),
                _ => fraction(text).map_or_else(|| Json::String(text.to_owned()), Json::Number),
            },
        },
    }
}

/// A number with a fraction, as it is written without quotes.
fn fraction(text: &str) -> Option<Number> {
    let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let number = text.bytes().all(is_number).then(|| text.parse().ok());
    Number::from_f64(number??)
}
