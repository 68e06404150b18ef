//! The JSON form of a message to a text.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use crate::wire::bytes::{DEPTH_MAX, WireError};
use crate::wire::decode::expected;
use crate::wire::encode::{Encoder, is_default};
use crate::wire::known;
use crate::wire::schema::{Field, Kind, Schema};

impl Schema {
    /// The message `name` that `value` says in the JSON form of protocol buffers, in
    /// their text form: one field a line, in the order of the definition.
    ///
    /// # Errors
    /// [`WireError`] names the field that the message does not have, or that holds
    /// something else.
    pub fn write_text(&self, name: &str, value: &Value) -> Result<String, WireError> {
        let mut out = String::new();
        let writer = Writer { schema: self };
        writer.message(name, value, 0, &mut out)?;
        Ok(out)
    }
}

struct Writer<'s> {
    schema: &'s Schema,
}

impl Writer<'_> {
    fn message(
        &self,
        name: &str,
        value: &Value,
        depth: usize,
        out: &mut String,
    ) -> Result<(), WireError> {
        if depth > DEPTH_MAX {
            return Err(WireError::Deep);
        }
        if name == "google.protobuf.Any" && self.any(value, depth, out)? {
            return Ok(());
        }
        let encoder = Encoder::new(self.schema);
        if let Some(fields) = known::undone(&encoder, name, value, depth)? {
            return self.fields(name, &fields, depth, out);
        }
        match value {
            Value::Object(fields) => self.fields(name, fields, depth, out),
            _ => Err(WireError::Shape {
                message: name.to_owned(),
                field: "it".to_owned(),
                expected: "a message",
            }),
        }
    }

    /// A message with its type in front of it; `false` where the type is not known.
    fn any(&self, value: &Value, depth: usize, out: &mut String) -> Result<bool, WireError> {
        let address = value.get("@type").and_then(Value::as_str);
        let Some((address, Value::Object(map))) = address.zip(Some(value)) else {
            return Ok(false);
        };
        let name = address.rsplit('/').next().unwrap_or_default();
        if !self.schema.messages.contains_key(name) {
            return Ok(false);
        }
        let inner = if known::has_own_form(name) {
            map.get("value").cloned().unwrap_or_default()
        } else {
            let mut map = map.clone();
            map.remove("@type");
            Value::Object(map)
        };
        self.nested(&format!("[{address}]"), name, &inner, depth, out)?;
        Ok(true)
    }

    fn fields(
        &self,
        name: &str,
        fields: &Map<String, Value>,
        depth: usize,
        out: &mut String,
    ) -> Result<(), WireError> {
        let no_such = |name: String| WireError::NoSuch { name };
        let message = self.schema.messages.get(name);
        let message = message.ok_or_else(|| no_such(name.to_owned()))?;
        if let Some(key) = fields.keys().find(|key| message.by_name(key).is_none()) {
            return Err(no_such(format!("{name}.{key}")));
        }
        for field in &message.fields {
            let Some(value) = fields.get(&field.name).filter(|value| !value.is_null()) else {
                continue;
            };
            let wrong = || WireError::Shape {
                message: name.to_owned(),
                field: field.name.clone(),
                expected: expected(&field.kind),
            };
            match (&field.kind, value) {
                (Kind::Map(kind), Value::Object(entries)) => {
                    for (key, value) in entries {
                        indent(depth, out);
                        out.push_str(&format!("{} {{\n", field.name));
                        indent(depth + 1, out);
                        out.push_str("key: ");
                        quote(key.as_bytes(), out);
                        out.push('\n');
                        self.one("value", kind, value, depth + 1, out)
                            .ok_or_else(wrong)??;
                        indent(depth, out);
                        out.push_str("}\n");
                    }
                }
                (kind, Value::Array(items)) if field.repeated => {
                    for item in items {
                        self.one(&field.name, kind, item, depth, out)
                            .ok_or_else(wrong)??;
                    }
                }
                (Kind::Map(_), _) => return Err(wrong()),
                _ if field.repeated => return Err(wrong()),
                (kind, value) if self.is_unsaid(field, kind, value) => {}
                (kind, value) => {
                    self.one(&field.name, kind, value, depth, out)
                        .ok_or_else(wrong)??;
                }
            }
        }
        Ok(())
    }

    /// What is as good as absent is left out.
    fn is_unsaid(&self, field: &Field, kind: &Kind, value: &Value) -> bool {
        field.choice.is_none() && is_default(self.schema, kind, value)
    }

    /// One value in a field; `None` where it is none of its kind.
    fn one(
        &self,
        name: &str,
        kind: &Kind,
        value: &Value,
        depth: usize,
        out: &mut String,
    ) -> Option<Result<(), WireError>> {
        if let Kind::Message(inner) = kind {
            return Some(self.nested(name, inner, value, depth, out));
        }
        let mut said = String::new();
        match (kind, value) {
            (Kind::Map(_), _) => return None,
            (Kind::String, Value::String(text)) => quote(text.as_bytes(), &mut said),
            (Kind::Bytes, Value::String(text)) => quote(&BASE64.decode(text).ok()?, &mut said),
            (Kind::Bool, Value::Bool(own)) => said.push_str(if *own { "true" } else { "false" }),
            (Kind::Enum(_), Value::String(own)) => said.push_str(own),
            (Kind::Enum(_), Value::Number(own)) => said.push_str(&own.to_string()),
            (Kind::Double | Kind::Float, Value::String(own)) => said.push_str(match own.as_str() {
                "Infinity" => "inf",
                "-Infinity" => "-inf",
                "NaN" => "nan",
                other => other.parse::<f64>().ok().map(|_| other)?,
            }),
            (Kind::String | Kind::Bytes | Kind::Bool | Kind::Enum(_), _) => return None,
            (Kind::Double | Kind::Float, Value::Number(own)) => said.push_str(&own.to_string()),
            (_, Value::Number(own)) => said.push_str(&own.to_string()),
            (_, Value::String(own)) => {
                said.push_str(&own.parse::<i128>().ok()?.to_string());
            }
            _ => return None,
        }
        indent(depth, out);
        out.push_str(&format!("{name}: {said}\n"));
        Some(Ok(()))
    }

    fn nested(
        &self,
        name: &str,
        inner: &str,
        value: &Value,
        depth: usize,
        out: &mut String,
    ) -> Result<(), WireError> {
        indent(depth, out);
        out.push_str(&format!("{name} {{\n"));
        self.message(inner, value, depth + 1, out)?;
        indent(depth, out);
        out.push_str("}\n");
        Ok(())
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// In quotes; what is no character in UTF-8 stands as its bytes in octal.
fn quote(bytes: &[u8], out: &mut String) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() && c.is_ascii() => octal(u32::from(c), out),
                c => out.push(c),
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|byte| octal(u32::from(*byte), out));
    }
    out.push('"');
}

fn octal(number: u32, out: &mut String) {
    // Nothing that is written to a text fails.
    write!(out, "\\{number:03o}").unwrap_or_default();
}
