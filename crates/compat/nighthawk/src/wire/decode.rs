//! Bytes to the JSON form of a message.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::bytes::{DEPTH_MAX, FieldReader, Raw, WireError};
use super::encode::is_default;
use super::known;
use super::schema::{Field, Kind, Message, Schema};

/// What becomes of fields that are not known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UnknownFields {
    /// They are refused: somebody asks for something that would not be done.
    Refuse,
    /// They are passed over: somebody tells more than is understood.
    PassOver,
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
        let decoder = Decoder::new(self, unknown);
        decoder.message(name, bytes, 0)
    }
}

pub(super) struct Decoder<'s> {
    schema: &'s Schema,
    unknown: UnknownFields,
}

impl<'s> Decoder<'s> {
    pub(super) const fn new(schema: &'s Schema, unknown: UnknownFields) -> Self {
        Self { schema, unknown }
    }
}

impl Decoder<'_> {
    pub(super) fn message(
        &self,
        name: &str,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, WireError> {
        if depth > DEPTH_MAX {
            return Err(WireError::Deep);
        }
        let message = self.schema.messages.get(name);
        let message = message.ok_or_else(|| WireError::NoSuch {
            name: name.to_owned(),
        })?;
        let mut found = Found {
            decoder: self,
            name,
            message,
            depth,
            values: Map::new(),
            nested: BTreeMap::new(),
        };
        let mut reader = FieldReader::new(bytes);
        while let Some((number, raw)) = reader.next()? {
            found.take(number, raw)?;
        }
        let fields = found.finish()?;
        known::decoded(self, name, fields, depth)
    }

    fn is_default(&self, kind: &Kind, value: &Value) -> bool {
        is_default(self.schema, kind, value)
    }

    /// The message of an `Any`, where its type is known.
    pub(super) fn any(
        &self,
        name: &str,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Option<Value>, WireError> {
        if !self.schema.messages.contains_key(name) {
            return Ok(None);
        }
        self.message(name, bytes, depth + 1).map(Some)
    }
}

/// The fields of one message that were read so far.
struct Found<'d, 's> {
    decoder: &'d Decoder<'s>,
    name: &'d str,
    message: &'d Message,
    depth: usize,
    values: Map<String, Value>,
    /// Bytes of messages by the field's number: several pieces are one message.
    nested: BTreeMap<u32, Vec<u8>>,
}

impl<'d> Found<'d, '_> {
    fn take(&mut self, number: u32, raw: Raw<'_>) -> Result<(), WireError> {
        let message = self.message;
        let Some(field) = message.by_number(number) else {
            return match self.decoder.unknown {
                UnknownFields::PassOver => Ok(()),
                UnknownFields::Refuse => Err(WireError::Unknown {
                    message: self.name.to_owned(),
                    number,
                }),
            };
        };
        self.choose(field);
        match (&field.kind, raw) {
            (Kind::Map(value), Raw::Bytes(bytes)) => self.entry(field, value, bytes),
            (Kind::Message(_), Raw::Bytes(bytes)) if !field.repeated => {
                self.nested
                    .entry(number)
                    .or_default()
                    .extend_from_slice(bytes);
                Ok(())
            }
            (Kind::Message(inner), Raw::Bytes(bytes)) => {
                let value = self.decoder.message(inner, bytes, self.depth + 1)?;
                self.push(field, value);
                Ok(())
            }
            (kind, Raw::Bytes(bytes)) if field.repeated && is_packable(kind) => {
                let mut reader = FieldReader::new(bytes);
                while !reader.is_empty() {
                    let raw = packed(kind, &mut reader)?;
                    let value = self.scalar(field, kind, raw)?;
                    self.push(field, value);
                }
                Ok(())
            }
            (kind, raw) => {
                let value = self.scalar(field, kind, raw)?;
                if field.repeated {
                    self.push(field, value);
                } else if field.choice.is_none() && self.decoder.is_default(kind, &value) {
                    // What is said is as good as unsaid.
                    self.values.remove(&field.name);
                } else {
                    self.values.insert(field.name.clone(), value);
                }
                Ok(())
            }
        }
    }

    /// Of fields of which there is one at most the last one counts.
    fn choose(&mut self, field: &Field) {
        let Some(choice) = field.choice else {
            return;
        };
        let others = self.message.fields.iter();
        for other in others.filter(|own| own.choice == Some(choice) && own.number != field.number) {
            self.values.remove(&other.name);
            self.nested.remove(&other.number);
        }
    }

    fn push(&mut self, field: &Field, value: Value) {
        let list = self.values.entry(&field.name);
        if let Value::Array(items) = list.or_insert_with(|| Value::Array(Vec::new())) {
            items.push(value);
        }
    }

    fn entry(&mut self, field: &Field, kind: &Kind, bytes: &[u8]) -> Result<(), WireError> {
        let (mut key, mut value) = (String::new(), self.missing(kind)?);
        let mut reader = FieldReader::new(bytes);
        while let Some((number, raw)) = reader.next()? {
            match (number, raw, kind) {
                (1, Raw::Bytes(bytes), _) => key = text(bytes, self.name, field)?,
                (2, Raw::Bytes(bytes), Kind::Message(inner)) => {
                    value = self.decoder.message(inner, bytes, self.depth + 1)?;
                }
                (2, raw, kind) => value = self.scalar(field, kind, raw)?,
                _ => {}
            }
        }
        let map = self.values.entry(&field.name);
        if let Value::Object(entries) = map.or_insert_with(|| Value::Object(Map::new())) {
            entries.insert(key, value);
        }
        Ok(())
    }

    /// What an entry of a map holds that does not say it.
    fn missing(&self, kind: &Kind) -> Result<Value, WireError> {
        match kind {
            Kind::Message(inner) => self.decoder.message(inner, &[], self.depth + 1),
            Kind::String | Kind::Bytes => Ok(Value::from("")),
            Kind::Uint64 | Kind::Int64 => Ok(Value::from("0")),
            Kind::Bool => Ok(Value::from(false)),
            _ => Ok(Value::from(0)),
        }
    }

    fn scalar(&self, field: &Field, kind: &Kind, raw: Raw<'_>) -> Result<Value, WireError> {
        let low = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
        Ok(match (kind, raw) {
            (Kind::Double, Raw::Eight(bytes)) => number(f64::from_le_bytes(bytes)),
            (Kind::Float, Raw::Four(bytes)) => number(f64::from(f32::from_le_bytes(bytes))),
            (Kind::Int32, Raw::Varint(value)) => Value::from(low(value).cast_signed()),
            (Kind::Int64, Raw::Varint(value)) => Value::from(value.cast_signed().to_string()),
            (Kind::Uint32, Raw::Varint(value)) => Value::from(low(value)),
            (Kind::Uint64, Raw::Varint(value)) => Value::from(value.to_string()),
            (Kind::Bool, Raw::Varint(value)) => Value::from(value != 0),
            (Kind::String, Raw::Bytes(bytes)) => Value::from(text(bytes, self.name, field)?),
            (Kind::Bytes, Raw::Bytes(bytes)) => Value::from(BASE64.encode(bytes)),
            (Kind::Enum(of), Raw::Varint(value)) => {
                let named = self.decoder.schema.enums.get(of);
                let name = named.and_then(|own| own.name(value));
                name.map_or_else(|| Value::from(low(value)), Value::from)
            }
            (kind, _) => {
                return Err(WireError::Shape {
                    message: self.name.to_owned(),
                    field: field.name.clone(),
                    expected: expected(kind),
                });
            }
        })
    }

    fn finish(mut self) -> Result<Map<String, Value>, WireError> {
        for (number, bytes) in std::mem::take(&mut self.nested) {
            if let Some(field) = self.message.by_number(number)
                && let Kind::Message(inner) = &field.kind
            {
                let value = self.decoder.message(inner, &bytes, self.depth + 1)?;
                self.values.insert(field.name.clone(), value);
            }
        }
        Ok(self.values)
    }
}

/// JSON has no word for what is not finite; protocol buffers have texts.
pub(super) fn number(value: f64) -> Value {
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

fn text(bytes: &[u8], message: &str, field: &Field) -> Result<String, WireError> {
    let text = std::str::from_utf8(bytes).map_err(|_| WireError::Shape {
        message: message.to_owned(),
        field: field.name.clone(),
        expected: "text in UTF-8",
    });
    text.map(str::to_owned)
}

const fn is_packable(kind: &Kind) -> bool {
    !matches!(
        kind,
        Kind::String | Kind::Bytes | Kind::Message(_) | Kind::Map(_)
    )
}

/// The next of several numbers that stand one behind the other.
fn packed<'a>(kind: &Kind, reader: &mut FieldReader<'a>) -> Result<Raw<'a>, WireError> {
    match kind {
        Kind::Double => reader.array().map(Raw::Eight),
        Kind::Float => reader.array().map(Raw::Four),
        _ => reader.varint().map(Raw::Varint),
    }
}

pub(super) const fn expected(kind: &Kind) -> &'static str {
    match kind {
        Kind::Double | Kind::Float => "a number",
        Kind::Int32 | Kind::Int64 => "a whole number",
        Kind::Uint32 | Kind::Uint64 => "a whole number that is not negative",
        Kind::Bool => "true or false",
        Kind::String => "a text",
        Kind::Bytes => "bytes",
        Kind::Enum(_) => "one of the names that it can have",
        Kind::Message(_) | Kind::Map(_) => "a message",
    }
}
