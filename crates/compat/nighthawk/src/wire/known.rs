//! Messages that have a form of their own in JSON: times, wrapped values, messages
//! of any type, and JSON itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use prost_reflect::prost::Message as _;
use serde_json::{Map, Value, json};
use stillwell_units::Nanos;

use super::decode::Decoder;
use super::encode::Encoder;
use super::error::WireError;
use crate::time::{duration_text, parse_duration, parse_timestamp, timestamp_text};

const SECOND: u64 = 1_000_000_000;

/// The JSON form of the message `name` with these fields.
pub(super) fn decoded(
    decoder: &Decoder<'_>,
    name: &str,
    mut fields: Map<String, Value>,
    depth: usize,
) -> Result<Value, WireError> {
    let Some(kind) = name.strip_prefix("google.protobuf.") else {
        return Ok(Value::Object(fields));
    };
    match kind {
        "Duration" => time(name, &fields).map(|time| Value::from(duration_text(time))),
        "Timestamp" => time(name, &fields).map(|time| Value::from(timestamp_text(time))),
        "Any" => any(decoder, &fields, depth),
        "Struct" => Ok(fields.remove("fields").unwrap_or_else(|| json!({}))),
        "ListValue" => Ok(fields.remove("values").unwrap_or_else(|| json!([]))),
        "Value" => {
            let is_null = fields.contains_key("null_value");
            let value = fields.into_iter().next().filter(|_| !is_null);
            Ok(value.map_or(Value::Null, |(_, value)| value))
        }
        "StringValue" | "BytesValue" => Ok(fields.remove("value").unwrap_or_else(|| json!(""))),
        "BoolValue" => Ok(fields.remove("value").unwrap_or(Value::Bool(false))),
        "Int64Value" | "UInt64Value" => Ok(fields.remove("value").unwrap_or_else(|| json!("0"))),
        _ => Ok(fields.remove("value").unwrap_or_else(|| json!(0))),
    }
}

fn shape(message: &str, expected: &'static str) -> WireError {
    WireError::Shape {
        message: message.to_owned(),
        field: "it".to_owned(),
        expected,
    }
}

/// Seconds and nanoseconds together, none of them negative.
fn time(name: &str, fields: &Map<String, Value>) -> Result<Nanos, WireError> {
    let part = |key: &str| match fields.get(key) {
        None => Some(0),
        Some(Value::String(text)) => text.parse::<u64>().ok(),
        Some(nanos) => nanos.as_u64(),
    };
    let total = || {
        let nanos = part("nanos").filter(|nanos| *nanos < SECOND)?;
        part("seconds")?.checked_mul(SECOND)?.checked_add(nanos)
    };
    let total = total().ok_or_else(|| shape(name, "a time that is not negative"))?;
    Ok(Nanos::new(total))
}

/// Returns true if the message `name` has a special JSON form, which may be no map.
pub(super) fn has_special_form(name: &str) -> bool {
    name.starts_with("google.protobuf.")
}

fn any(
    decoder: &Decoder<'_>,
    fields: &Map<String, Value>,
    depth: usize,
) -> Result<Value, WireError> {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    let (address, value) = (text("type_url"), text("value"));
    let name = address.rsplit('/').next().unwrap_or_default();
    // It was encoded a moment ago.
    let bytes = BASE64.decode(value).unwrap_or_default();
    let opened = match decoder.schema.has_message(name) {
        true => Some(decoder.bytes(name, &bytes, depth + 1)?),
        false => None,
    };
    let mut map = match opened {
        Some(Value::Object(map)) if !has_special_form(name) => map,
        Some(value) => Map::from_iter([("value".to_owned(), value)]),
        None if value.is_empty() => Map::new(),
        None => Map::from_iter([("value".to_owned(), Value::from(value))]),
    };
    if !address.is_empty() {
        map.insert("@type".to_owned(), Value::from(address));
    }
    Ok(Value::Object(map))
}

/// The fields of the message `name` whose JSON form is `value`; `None` where that
/// form is its own.
pub(super) fn undone(
    encoder: &Encoder<'_>,
    name: &str,
    value: &Value,
    depth: usize,
) -> Result<Option<Map<String, Value>>, WireError> {
    let Some(kind) = name.strip_prefix("google.protobuf.") else {
        return Ok(None);
    };
    let fields = match kind {
        "Duration" | "Timestamp" => {
            let text = value.as_str().unwrap_or_default();
            let length = match kind {
                "Duration" => parse_duration(text),
                _ => parse_timestamp(text),
            };
            let length = length.ok_or_else(|| shape(name, "a time"))?.as_u64();
            json!({ "seconds": (length / SECOND).to_string(), "nanos": length % SECOND })
        }
        "Any" => packed(encoder, value, depth)?,
        "Struct" => json!({ "fields": value }),
        "ListValue" => json!({ "values": value }),
        "Value" => match value {
            Value::Null => json!({ "null_value": 0 }),
            Value::Number(value) => json!({ "number_value": value.as_f64() }),
            Value::String(value) => json!({ "string_value": value }),
            Value::Bool(value) => json!({ "bool_value": value }),
            Value::Object(_) => json!({ "struct_value": value }),
            Value::Array(_) => json!({ "list_value": value }),
        },
        _ => json!({ "value": value }),
    };
    match fields {
        Value::Object(map) => Ok(Some(map)),
        _ => Ok(None),
    }
}

fn packed(encoder: &Encoder<'_>, value: &Value, depth: usize) -> Result<Value, WireError> {
    let Value::Object(map) = value else {
        return Err(shape("google.protobuf.Any", "a message"));
    };
    let mut map = map.clone();
    let address = map.remove("@type");
    let address = address.as_ref().and_then(Value::as_str).unwrap_or_default();
    let name = address.rsplit('/').next().unwrap_or_default();
    if name.is_empty() && map.is_empty() {
        return Ok(json!({}));
    }
    let inner = match has_special_form(name) {
        true => map.get("value").cloned().unwrap_or_default(),
        false => Value::Object(map.clone()),
    };
    let descriptor = encoder.schema.message(name);
    let packed = descriptor.and_then(|inner_type| encoder.message(&inner_type, &inner, depth + 1));
    let bytes = match packed {
        Ok(message) => message.encode_to_vec(),
        // A type that is not known keeps its bytes.
        Err(WireError::NoSuch { name: missing }) if missing == name && map.len() <= 1 => {
            let kept = map.get("value").and_then(Value::as_str).unwrap_or_default();
            let kept = BASE64.decode(kept);
            kept.map_err(|_| shape("google.protobuf.Any", "bytes"))?
        }
        Err(error) => return Err(error),
    };
    Ok(json!({ "type_url": address, "value": BASE64.encode(bytes) }))
}
