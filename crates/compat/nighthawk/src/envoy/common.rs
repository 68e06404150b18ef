//! Fields that many messages of Envoy share.

use std::net::SocketAddr;

use stillwell_config::Diagnostics;
use stillwell_text::{Diagnostic, Keys, MapReader, Node, Reader, Value, code};
use stillwell_units::Nanos;

use crate::time::parse_duration;

/// Checks the type of a message, if it has one: one of `names`, of any version.
pub(super) fn check_type(reader: &Reader, map: &MapReader<'_, '_>, names: &[&str]) {
    let Some(node) = map.take("@type") else {
        return;
    };
    let Some(text) = reader.text(node) else {
        return;
    };
    let name = text.rsplit(['.', '/']).next().unwrap_or(text);
    if !names.contains(&name) {
        let message = format!("`{text}` is not accepted here");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(format!("expected a {}", names.join(" or "))));
    }
}

/// Types of messages, the extension that each configures, and names under which it configures another one.
pub(super) type ExtensionTypes = &'static [(&'static str, &'static str, &'static [&'static str])];

/// Reads the name, one of `names`, and the configuration of an extension of Envoy. A type of `by_type` decides, unless
/// the name is one of those beside it.
pub(super) fn named<'n>(
    reader: &Reader,
    node: &'n Node,
    what: &'static str,
    (names, by_type): (&[&'static str], ExtensionTypes),
) -> Option<(&'static str, Option<&'n Node>)> {
    let map = reader.map(node, &Keys::new(what, &["name", "typed_config", "config"]))?;
    let words: Vec<_> = names.iter().map(|name| (*name, *name)).collect();
    let name = map.required("name");
    let config = map.take("typed_config").or_else(|| map.take("config"));
    map.ignore("config");
    let name = name?;
    let text = reader.text(name).unwrap_or_default();
    let typed = type_of(config).and_then(|kind| by_type.iter().find(|(known, ..)| *known == kind));
    let name = match typed.filter(|(_, _, names)| !names.contains(&text)) {
        Some((_, name, _)) => name,
        None => reader.word(name, what, &words)?,
    };
    Some((name, config))
}

/// The type of a message, without its package.
fn type_of(config: Option<&Node>) -> Option<&str> {
    match &config?.entry("@type")?.value {
        Value::Scalar { text, .. } => text.rsplit(['.', '/']).next(),
        _ => None,
    }
}

/// Returns the configuration of an extension whose name has no meaning: its type decides.
pub(super) fn config_of<'n>(
    reader: &Reader,
    node: &'n Node,
    kind: &'static str,
) -> Option<&'n Node> {
    let map = reader.map(node, &Keys::new(kind, &["name", "typed_config", "config"]))?;
    map.ignore("name");
    let config = map.take("typed_config").or_else(|| map.take("config"));
    map.ignore("config");
    required(reader, node, config)
}

/// Warns of each of `keys` in `map`: keys of Envoy that do not change what a test server sends.
pub(super) fn warn_unused(reader: &Reader, map: &MapReader<'_, '_>, keys: &'static [&'static str]) {
    for key in keys {
        if let Some(span) = map.key_span(key) {
            map.ignore(key);
            let message = format!("`{key}` has no effect on the test server");
            reader.report(reader.warning(code::NO_EFFECT, span, message));
        }
    }
}

/// Returns the only item of a list; `what` is its name in messages.
pub(super) fn only<'n>(reader: &Reader, node: &'n Node, what: &str) -> Option<&'n Node> {
    let items = reader.list(node)?;
    if let [item] = items {
        return Some(item);
    }
    let message = format!("expected one {what}, found {}", items.len());
    reader.report(reader.error(code::WRONG_SHAPE, node.span, message));
    None
}

pub(super) fn read_address(reader: &Reader, node: &Node, protocol: &str) -> Option<SocketAddr> {
    let map = reader.map(node, &Keys::new("address", &["socket_address"]))?;
    read_socket_address(reader, map.required("socket_address")?, protocol)
}

/// Reads a socket address of `protocol`, `TCP` or `UDP`.
pub(super) fn read_socket_address(
    reader: &Reader,
    node: &Node,
    protocol: &str,
) -> Option<SocketAddr> {
    let keys = ["protocol", "address", "port_value"];
    let map = reader.map(node, &Keys::new("socket address", &keys))?;
    if let Some(node) = map.take("protocol") {
        reader.word(node, "protocol", &[(protocol, ())])?;
    }
    let host = map.required("address")?;
    let port = map
        .required("port_value")
        .and_then(|node| reader.whole(node, 0, u16::MAX));
    let text = reader.text(host)?;
    let Ok(ip) = text.parse() else {
        let message = format!("`{text}` is not an address");
        let error = reader.error(code::BAD_VALUE, host.span, message);
        reader.report(error.label("write one such as 127.0.0.1 or ::1"));
        return None;
    };
    Some(SocketAddr::new(ip, port?))
}

/// Reads a length of time: `5.5s`, or its fields `seconds` and `nanos`.
pub(super) fn read_duration(reader: &Reader, node: &Node) -> Option<Nanos> {
    if matches!(node.value, Value::Map(_)) {
        let map = reader.map(node, &Keys::new("time", &["seconds", "nanos"]))?;
        let field = |key, most: u32| map.read_or(key, 0, |node| reader.whole(node, 0, most));
        let seconds = Nanos::from_secs(field("seconds", u32::MAX)?.into());
        return Some(seconds + Nanos::new(field("nanos", 999_999_999)?.into()));
    }
    let text = reader.text(node)?;
    let length = parse_duration(text);
    if length.is_none() {
        let message = format!("`{text}` is not a time");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write a time such as 5.5s"));
    }
    length
}

/// Returns the configuration of an extension, which is required.
pub(super) fn required<'n>(
    reader: &Reader,
    node: &Node,
    config: Option<&'n Node>,
) -> Option<&'n Node> {
    if config.is_none() {
        let message = "`typed_config` is missing";
        reader.report(reader.error(code::MISSING_KEY, node.span, message));
    }
    config
}

/// Rewrites names in camel case with underscores: protocol buffers accept both.
pub(super) fn snake_keys(node: &mut Node) {
    match &mut node.value {
        Value::Null | Value::Scalar { .. } => {}
        Value::List(items) => items.iter_mut().for_each(snake_keys),
        Value::Map(entries) => {
            for entry in entries {
                entry.key.text = snake_case(&entry.key.text);
                snake_keys(&mut entry.value);
            }
        }
    }
}

pub(super) fn only_one(diagnostic: Diagnostic) -> Diagnostics {
    std::iter::once(diagnostic).collect()
}

/// Renames the keys of a message in JSON to those of its fields.
pub(crate) fn snake_json(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value as Json;
    match value {
        Json::Array(items) => items.into_iter().map(snake_json).collect(),
        Json::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(key, value)| (snake_case(&key), snake_json(value)));
            Json::Object(fields.collect())
        }
        other => other,
    }
}

fn snake_case(name: &str) -> String {
    let is_camel = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_camel {
        return name.to_owned();
    }
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
