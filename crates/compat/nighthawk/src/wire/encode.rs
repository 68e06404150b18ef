//! The JSON form of a message to bytes.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use prost_reflect::prost::Message as _;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value as Field,
};
use serde_json::{Map, Value};

use super::error::{DEPTH_MAX, WireError, expected};
use super::known;
use super::schema::Schema;

impl Schema {
    /// The bytes of the message `name` that `value` says in the JSON form of
    /// protocol buffers, with the names of the definition. Entries of a map have no
    /// order.
    ///
    /// # Errors
    /// [`WireError`] names the field that the message does not have, or that holds
    /// something else.
    pub fn encode(&self, name: &str, value: &Value) -> Result<Vec<u8>, WireError> {
        let encoder = Encoder { schema: self };
        let message = encoder.message(&self.message(name)?, value, 0)?;
        Ok(message.encode_to_vec())
    }

    /// Returns `bytes` as text of the JSON form.
    #[must_use]
    pub fn bytes_text(bytes: &[u8]) -> String {
        BASE64.encode(bytes)
    }

    /// Returns the bytes of `text` in the JSON form.
    #[must_use]
    pub fn text_bytes(text: &str) -> Option<Vec<u8>> {
        BASE64.decode(text).ok()
    }
}

/// Makes messages of their JSON form.
pub(super) struct Encoder<'s> {
    pub(super) schema: &'s Schema,
}

impl Encoder<'_> {
    /// Returns the message of this type that `value` describes.
    pub(super) fn message(
        &self,
        descriptor: &MessageDescriptor,
        value: &Value,
        depth: usize,
    ) -> Result<DynamicMessage, WireError> {
        if depth > DEPTH_MAX {
            return Err(WireError::Deep);
        }
        let name = descriptor.full_name();
        if let Some(fields) = known::undone(self, name, value, depth)? {
            return self.fields(descriptor, &fields, depth);
        }
        let Value::Object(fields) = value else {
            return Err(WireError::Shape {
                message: name.to_owned(),
                field: "it".to_owned(),
                expected: "a message",
            });
        };
        self.fields(descriptor, fields, depth)
    }

    fn fields(
        &self,
        descriptor: &MessageDescriptor,
        fields: &Map<String, Value>,
        depth: usize,
    ) -> Result<DynamicMessage, WireError> {
        let mut message = DynamicMessage::new(descriptor.clone());
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let field = descriptor.get_field_by_name(key);
            let field = field.ok_or_else(|| WireError::NoSuch {
                name: format!("{}.{key}", descriptor.full_name()),
            })?;
            let value = match (value, field.kind()) {
                (Value::Object(entries), Kind::Message(entry)) if field.is_map() => {
                    let kind = entry.map_entry_value_field().kind();
                    let mut map = HashMap::new();
                    for (key, value) in entries {
                        let value = self.value(&field, &kind, value, depth)?;
                        map.insert(MapKey::String(key.clone()), value);
                    }
                    Field::Map(map)
                }
                (Value::Array(items), kind) if field.is_list() => {
                    let items = items.iter();
                    let items = items.map(|item| self.value(&field, &kind, item, depth));
                    Field::List(items.collect::<Result<_, _>>()?)
                }
                (_, kind) if field.is_list() || field.is_map() => {
                    return Err(shape(&field, &kind));
                }
                (value, kind) => self.value(&field, &kind, value, depth)?,
            };
            message.set_field(&field, value);
        }
        Ok(message)
    }

    fn value(
        &self,
        field: &FieldDescriptor,
        kind: &Kind,
        value: &Value,
        depth: usize,
    ) -> Result<Field, WireError> {
        if let Kind::Message(inner) = kind {
            return Ok(Field::Message(self.message(inner, value, depth + 1)?));
        }
        scalar(kind, value).ok_or_else(|| shape(field, kind))
    }
}

fn shape(field: &FieldDescriptor, kind: &Kind) -> WireError {
    WireError::Shape {
        message: field.parent_message().full_name().to_owned(),
        field: field.name().to_owned(),
        expected: expected(kind),
    }
}

/// Returns a value that is no message; `None` for a value of another kind.
fn scalar(kind: &Kind, value: &Value) -> Option<Field> {
    Some(match kind {
        Kind::Double => Field::F64(float(value)?),
        Kind::Float => Field::F32(float(value)?.to_string().parse().ok()?),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            Field::I32(i32::try_from(signed(value)?).ok()?)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Field::I64(signed(value)?),
        Kind::Uint32 | Kind::Fixed32 => Field::U32(u32::try_from(unsigned(value)?).ok()?),
        Kind::Uint64 | Kind::Fixed64 => Field::U64(unsigned(value)?),
        Kind::Bool => Field::Bool(value.as_bool()?),
        Kind::String => Field::String(value.as_str()?.to_owned()),
        Kind::Bytes => Field::Bytes(BASE64.decode(value.as_str()?).ok()?.into()),
        Kind::Enum(values) => {
            let named = value
                .as_str()
                .and_then(|name| values.get_value_by_name(name));
            let number = match named {
                Some(named) => named.number(),
                None => i32::try_from(value.as_i64()?).ok()?,
            };
            Field::EnumNumber(number)
        }
        Kind::Message(_) => return None,
    })
}

fn float(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some("NaN") => Some(f64::NAN),
        Some(text) => text.parse().ok(),
        None => value.as_f64(),
    }
}

fn signed(value: &Value) -> Option<i64> {
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| value.as_i64())
}

fn unsigned(value: &Value) -> Option<u64> {
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| value.as_u64())
}
