//! Bytes to the JSON form of a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, ReflectMessage as _, Value as Field};
use serde_json::{Map, Value};

use super::error::{DEPTH_MAX, WireError};
use super::known;
use super::schema::Schema;

/// Treatment of unknown fields.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UnknownFields {
    /// They are an error: the client requests an unknown option.
    Refuse,
    /// They are ignored.
    Skip,
}

impl Schema {
    /// The message `name` that `bytes` hold, in the JSON form of protocol buffers:
    /// names as in the definition, 64-bit numbers as text. A message `Any` of a
    /// type that is not known keeps its bytes as `value`, in base64.
    ///
    /// # Errors
    /// [`WireError`] where they hold none.
    pub fn decode(
        &self,
        name: &str,
        bytes: &[u8],
        unknown: UnknownFields,
    ) -> Result<Value, WireError> {
        let decoder = Decoder {
            schema: self,
            unknown,
        };
        decoder.bytes(name, bytes, 0)
    }
}

/// Makes the JSON form of messages.
pub(super) struct Decoder<'s> {
    pub(super) schema: &'s Schema,
    pub(super) unknown: UnknownFields,
}

impl Decoder<'_> {
    /// The message `name` that `bytes` hold.
    pub(super) fn bytes(&self, name: &str, bytes: &[u8], depth: usize) -> Result<Value, WireError> {
        let message = DynamicMessage::decode(self.schema.message(name)?, bytes);
        let message = message.map_err(|error| {
            let problem = error.to_string();
            // The library follows messages a little further than is allowed here.
            match problem.contains("recursion limit") {
                true => WireError::Deep,
                false => WireError::Malformed { problem },
            }
        })?;
        self.message(&message, depth)
    }

    /// The JSON form of `message`.
    pub(super) fn message(
        &self,
        message: &DynamicMessage,
        depth: usize,
    ) -> Result<Value, WireError> {
        if depth > DEPTH_MAX {
            return Err(WireError::Deep);
        }
        let descriptor = message.descriptor();
        let name = descriptor.full_name();
        if self.unknown == UnknownFields::Refuse
            && let Some(field) = message.unknown_fields().next()
        {
            return Err(WireError::Unknown {
                message: name.to_owned(),
                number: field.number(),
            });
        }
        let mut fields = Map::new();
        for (field, value) in message.fields() {
            let value = self.field(&field, value, depth)?;
            fields.insert(field.name().to_owned(), value);
        }
        known::decoded(self, name, fields, depth)
    }

    fn field(
        &self,
        field: &FieldDescriptor,
        value: &Field,
        depth: usize,
    ) -> Result<Value, WireError> {
        match value {
            Field::List(items) => {
                let items = items.iter();
                let items = items.map(|item| self.value(&field.kind(), item, depth));
                Ok(Value::Array(items.collect::<Result<_, _>>()?))
            }
            Field::Map(entries) => {
                let kind = match field.kind() {
                    Kind::Message(entry) => entry.map_entry_value_field().kind(),
                    kind => kind,
                };
                let entries = entries.iter().map(|(key, value)| {
                    let key = key.as_str().unwrap_or_default().to_owned();
                    Ok((key, self.value(&kind, value, depth)?))
                });
                Ok(Value::Object(entries.collect::<Result<_, WireError>>()?))
            }
            value => self.value(&field.kind(), value, depth),
        }
    }

    fn value(&self, kind: &Kind, value: &Field, depth: usize) -> Result<Value, WireError> {
        Ok(match value {
            Field::Bool(content) => Value::from(*content),
            Field::I32(content) => Value::from(*content),
            Field::I64(content) => Value::from(content.to_string()),
            Field::U32(content) => Value::from(*content),
            Field::U64(content) => Value::from(content.to_string()),
            Field::F32(content) => number(f64::from(*content)),
            Field::F64(content) => number(*content),
            Field::String(content) => Value::from(content.as_str()),
            Field::Bytes(content) => Value::from(BASE64.encode(content)),
            Field::EnumNumber(content) => {
                let named = kind.as_enum().and_then(|values| values.get_value(*content));
                named.map_or_else(|| Value::from(*content), |value| Value::from(value.name()))
            }
            Field::Message(content) => self.message(content, depth + 1)?,
            // Neither is inside the other.
            Field::List(_) | Field::Map(_) => Value::Null,
        })
    }
}

/// JSON has no word for what is not finite; protocol buffers have texts.
fn number(value: f64) -> Value {
    if value.is_finite() {
        return Value::from(value);
    }
    let name = match value {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    };
    Value::from(name)
}
