//! The JSON form of a message to bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::bytes::{DEPTH_MAX, WireError, put_bytes, put_double, put_float, put_number};
use super::decode::expected;
use super::known;
use super::schema::{Field, Kind, Schema};

impl Schema {
    /// The bytes of the message `name` that `value` says in the JSON form of
    /// protocol buffers, with the names of the definition.
    ///
    /// # Errors
    /// [`WireError`] names the field that the message does not have, or that holds
    /// something else.
    pub fn encode(&self, name: &str, value: &Value) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::new();
        Encoder::new(self).message(name, value, 0, &mut out)?;
        Ok(out)
    }

    /// The text that stands for `bytes` in the JSON form.
    #[must_use]
    pub fn bytes_text(bytes: &[u8]) -> String {
        BASE64.encode(bytes)
    }

    /// The bytes that `text` stands for in the JSON form.
    #[must_use]
    pub fn text_bytes(text: &str) -> Option<Vec<u8>> {
        BASE64.decode(text).ok()
    }
}

pub(super) struct Encoder<'s> {
    schema: &'s Schema,
}

impl<'s> Encoder<'s> {
    pub(super) const fn new(schema: &'s Schema) -> Self {
        Self { schema }
    }
}

impl Encoder<'_> {
    pub(super) fn message(
        &self,
        name: &str,
        value: &Value,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        if depth > DEPTH_MAX {
            return Err(WireError::Deep);
        }
        if let Some(fields) = known::undone(self, name, value, depth)? {
            return self.fields(name, &fields, depth, out);
        }
        let Value::Object(fields) = value else {
            return Err(WireError::Shape {
                message: name.to_owned(),
                field: "it".to_owned(),
                expected: "a message",
            });
        };
        self.fields(name, fields, depth, out)
    }

    fn fields(
        &self,
        name: &str,
        fields: &Map<String, Value>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let no_such = |name: String| WireError::NoSuch { name };
        let message = self.schema.messages.get(name);
        let message = message.ok_or_else(|| no_such(name.to_owned()))?;
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let field = message.by_name(key);
            let field = field.ok_or_else(|| no_such(format!("{name}.{key}")))?;
            let site = Site {
                message: name,
                field,
                depth,
            };
            match (&field.kind, value) {
                (Kind::Map(inner), Value::Object(entries)) => {
                    for (key, value) in entries {
                        let mut entry = Vec::new();
                        put_bytes(1, key.as_bytes(), &mut entry);
                        self.value(&site, inner, value, 2, &mut entry)?;
                        put_bytes(field.number, &entry, out);
                    }
                }
                (kind, Value::Array(items)) if field.repeated => {
                    for item in items {
                        self.value(&site, kind, item, field.number, out)?;
                    }
                }
                (Kind::Map(_), _) => return Err(site.shape(&field.kind)),
                (_, _) if field.repeated => return Err(site.shape(&field.kind)),
                (kind, value) => {
                    let mut own = Vec::new();
                    self.value(&site, kind, value, field.number, &mut own)?;
                    // What is as good as absent is left out.
                    if field.choice.is_some() || !is_default(self.schema, kind, value) {
                        out.extend_from_slice(&own);
                    }
                }
            }
        }
        Ok(())
    }

    fn value(
        &self,
        site: &Site<'_>,
        kind: &Kind,
        value: &Value,
        number: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let wrong = || site.shape(kind);
        match kind {
            Kind::Double => put_double(number, float(value).ok_or_else(wrong)?, out),
            Kind::Float => {
                let text = float(value).ok_or_else(wrong)?.to_string();
                put_float(number, text.parse().map_err(|_| wrong())?, out);
            }
            Kind::Int32 | Kind::Int64 => {
                let own = signed(value).ok_or_else(wrong)?;
                if *kind == Kind::Int32 && i32::try_from(own).is_err() {
                    return Err(wrong());
                }
                put_number(number, own.cast_unsigned(), out);
            }
            Kind::Uint32 | Kind::Uint64 => {
                let own = unsigned(value).ok_or_else(wrong)?;
                if *kind == Kind::Uint32 && u32::try_from(own).is_err() {
                    return Err(wrong());
                }
                put_number(number, own, out);
            }
            Kind::Bool => put_number(number, value.as_bool().ok_or_else(wrong)?.into(), out),
            Kind::String => put_bytes(number, value.as_str().ok_or_else(wrong)?.as_bytes(), out),
            Kind::Bytes => {
                let text = value.as_str().ok_or_else(wrong)?;
                put_bytes(number, &BASE64.decode(text).map_err(|_| wrong())?, out);
            }
            Kind::Enum(of) => {
                let named = self.schema.enums.get(of);
                let by_name = value.as_str().and_then(|name| named?.number(name));
                let own = by_name.map(u64::from).or_else(|| value.as_u64());
                put_number(number, own.ok_or_else(wrong)?, out);
            }
            Kind::Message(inner) => {
                let mut nested = Vec::new();
                self.message(inner, value, site.depth + 1, &mut nested)?;
                put_bytes(number, &nested, out);
            }
            Kind::Map(_) => return Err(wrong()),
        }
        Ok(())
    }
}

/// Where a value stands.
struct Site<'a> {
    message: &'a str,
    field: &'a Field,
    depth: usize,
}

impl Site<'_> {
    fn shape(&self, kind: &Kind) -> WireError {
        WireError::Shape {
            message: self.message.to_owned(),
            field: self.field.name.clone(),
            expected: expected(kind),
        }
    }
}

/// Whether `value` is what a field holds that is absent.
pub(super) fn is_default(schema: &Schema, kind: &Kind, value: &Value) -> bool {
    match (kind, value) {
        (Kind::Message(_) | Kind::Map(_), _) => false,
        (_, Value::Bool(own)) => !own,
        (Kind::String | Kind::Bytes, Value::String(own)) => own.is_empty(),
        (Kind::Enum(of), Value::String(name)) => {
            let named = schema.enums.get(of);
            named.and_then(|own| own.number(name)) == Some(0)
        }
        (_, own) => float(own).is_some_and(|own| own.to_bits() == 0),
    }
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
