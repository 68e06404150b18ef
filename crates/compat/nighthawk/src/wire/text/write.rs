//! A message to a text.
//!
//! The library's writer puts repeated fields in brackets on one line; Nighthawk's tools,
//! and so the files that are compared with ours, have one line for each.

use std::fmt::Write as _;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, ReflectMessage as _, Value as Field};
use serde_json::Value;

use crate::wire::encode::Encoder;
use crate::wire::error::WireError;
use crate::wire::schema::Schema;

impl Schema {
    /// The message `name` that `value` says in the JSON form of protocol buffers, in
    /// their text form: one field a line, in the order of the definition.
    ///
    /// # Errors
    /// [`WireError`] names the field that the message does not have, or that holds
    /// something else.
    pub fn write_text(&self, name: &str, value: &Value) -> Result<String, WireError> {
        let encoder = Encoder { schema: self };
        let message = encoder.message(&self.message(name)?, value, 0)?;
        let mut out = String::new();
        Writer { schema: self }.message(&message, 0, &mut out);
        Ok(out)
    }
}

struct Writer<'s> {
    schema: &'s Schema,
}

impl Writer<'_> {
    fn message(&self, message: &DynamicMessage, depth: usize, out: &mut String) {
        if let Some((address, inner)) = self.any(message) {
            return self.nested(&format!("[{address}]"), &inner, depth, out);
        }
        let descriptor = message.descriptor();
        for defined in &descriptor.descriptor_proto().field {
            let field = descriptor.get_field_by_name(defined.name());
            if let Some(field) = field.filter(|field| message.has_field(field)) {
                self.field(&field, &message.get_field(&field), depth, out);
            }
        }
    }

    /// The message in an `Any`, where its type is known.
    fn any(&self, message: &DynamicMessage) -> Option<(String, DynamicMessage)> {
        if message.descriptor().full_name() != "google.protobuf.Any" {
            return None;
        }
        let address = message.get_field_by_name("type_url")?;
        let value = message.get_field_by_name("value")?;
        let (address, value) = (address.as_str()?, value.as_bytes()?);
        let name = address.rsplit('/').next().unwrap_or_default();
        let descriptor = self.schema.message(name).ok()?;
        let inner = DynamicMessage::decode(descriptor, value.as_ref()).ok()?;
        Some((address.to_owned(), inner))
    }

    fn field(&self, field: &FieldDescriptor, value: &Field, depth: usize, out: &mut String) {
        let name = field.name();
        match (value, field.kind()) {
            (Field::List(items), kind) => {
                for item in items {
                    self.value(name, &kind, item, depth, out);
                }
            }
            (Field::Map(entries), Kind::Message(entry)) => {
                let kind = entry.map_entry_value_field().kind();
                let mut entries: Vec<_> = entries
                    .iter()
                    .filter_map(|(key, value)| Some((key.as_str()?, value)))
                    .collect();
                entries.sort_by_key(|(key, _)| *key);
                for (key, value) in entries {
                    indent(depth, out);
                    out.push_str(&format!("{name} {{\n"));
                    indent(depth + 1, out);
                    out.push_str("key: ");
                    quote(key.as_bytes(), out);
                    out.push('\n');
                    self.value("value", &kind, value, depth + 1, out);
                    indent(depth, out);
                    out.push_str("}\n");
                }
            }
            (value, kind) => self.value(name, &kind, value, depth, out),
        }
    }

    fn value(&self, name: &str, kind: &Kind, value: &Field, depth: usize, out: &mut String) {
        let mut text = String::new();
        match value {
            Field::Message(inner) => return self.nested(name, inner, depth, out),
            Field::Bool(content) => text.push_str(&content.to_string()),
            Field::I32(content) => text.push_str(&content.to_string()),
            Field::I64(content) => text.push_str(&content.to_string()),
            Field::U32(content) => text.push_str(&content.to_string()),
            Field::U64(content) => text.push_str(&content.to_string()),
            Field::F32(content) => text.push_str(&content.to_string()),
            Field::F64(content) => text.push_str(&float(*content)),
            Field::String(content) => quote(content.as_bytes(), &mut text),
            Field::Bytes(content) => quote(content, &mut text),
            Field::EnumNumber(content) => {
                let named = kind.as_enum().and_then(|values| values.get_value(*content));
                text.push_str(
                    &named.map_or_else(|| value.to_string(), |value| value.name().to_owned()),
                );
            }
            // Neither is inside the other.
            Field::List(_) | Field::Map(_) => return,
        }
        indent(depth, out);
        out.push_str(&format!("{name}: {text}\n"));
    }

    fn nested(&self, name: &str, inner: &DynamicMessage, depth: usize, out: &mut String) {
        indent(depth, out);
        out.push_str(&format!("{name} {{\n"));
        self.message(inner, depth + 1, out);
        indent(depth, out);
        out.push_str("}\n");
    }
}

/// Whole numbers have no point.
fn float(value: f64) -> String {
    match value {
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        value if value.is_nan() => "nan".to_owned(),
        value if value.abs() < 1e19 && value.trunc().total_cmp(&value).is_eq() => value.to_string(),
        value => Value::from(value).to_string(),
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Writes a text in quotes; bytes that are no UTF-8 are octal.
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
