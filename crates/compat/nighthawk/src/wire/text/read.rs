//! A text to the JSON form of a message.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use super::TextError;
use super::tokens::Tokens;
use crate::wire::decode::{Decoder, UnknownFields, number};
use crate::wire::error::{DEPTH_MAX, expected};
use crate::wire::known;
use crate::wire::schema::Schema;

impl Schema {
    /// The message `name` that `text` says in the text form of protocol buffers, in
    /// its JSON form.
    ///
    /// # Errors
    /// [`TextError`] names the line, and the field that the message does not have or
    /// that holds something else.
    pub fn read_text(&self, name: &str, text: &str) -> Result<Value, TextError> {
        let mut reader = Reader {
            schema: self,
            tokens: Tokens::new(text),
        };
        reader.message(name, None, 0)
    }
}

struct Reader<'s, 't> {
    schema: &'s Schema,
    tokens: Tokens<'t>,
}

impl Reader<'_, '_> {
    fn wrong(&self, problem: impl Into<String>) -> TextError {
        self.tokens.wrong(problem)
    }

    /// Fields until `end`, or until the text ends.
    fn message(&mut self, name: &str, end: Option<char>, depth: usize) -> Result<Value, TextError> {
        if depth > DEPTH_MAX {
            return Err(self.wrong("messages are nested too deep"));
        }
        let Ok(message) = self.schema.message(name) else {
            return Err(self.wrong(format!("the message type {name} is not supported")));
        };
        let mut fields = Map::new();
        let mut packed = None;
        while !self.ends(end)? {
            let key = self.tokens.name()?;
            if let Some(address) = key.strip_prefix('[') {
                let address = address.trim_end_matches(']');
                let address: String = address.split_whitespace().collect();
                packed = Some(self.any(name, &address, depth)?);
            } else {
                let Some(field) = message.get_field_by_name(key) else {
                    return Err(self.wrong(format!("{name} has no field `{key}`")));
                };
                self.field(&message, &field, depth, &mut fields)?;
            }
            if !self.tokens.takes(',') {
                self.tokens.takes(';');
            }
        }
        if let Some(packed) = packed {
            return Ok(packed);
        }
        let decoder = Decoder {
            schema: self.schema,
            unknown: UnknownFields::Refuse,
        };
        let decoded = known::decoded(&decoder, name, fields, depth);
        decoded.map_err(|error| self.wrong(error.to_string()))
    }

    fn ends(&mut self, end: Option<char>) -> Result<bool, TextError> {
        match end {
            Some(end) if self.tokens.takes(end) => Ok(true),
            Some(_) if self.tokens.is_at_end() => Err(self.wrong("a message is not closed")),
            Some(_) => Ok(false),
            None => Ok(self.tokens.is_at_end()),
        }
    }

    /// A message with its type in front of it.
    fn any(&mut self, holder: &str, address: &str, depth: usize) -> Result<Value, TextError> {
        if holder != "google.protobuf.Any" {
            return Err(self.wrong(format!("{holder} is not google.protobuf.Any")));
        }
        let name = address.rsplit('/').next().unwrap_or_default().trim();
        self.tokens.takes(':');
        let Some(end) = self.tokens.opens() else {
            return Err(self.wrong("a brace is missing"));
        };
        let mut map = match self.message(name, Some(end), depth + 1)? {
            Value::Object(map) if !known::has_special_form(name) => map,
            value => Map::from_iter([("value".to_owned(), value)]),
        };
        map.insert("@type".to_owned(), Value::from(address));
        Ok(Value::Object(map))
    }

    fn field(
        &mut self,
        message: &MessageDescriptor,
        field: &FieldDescriptor,
        depth: usize,
        fields: &mut Map<String, Value>,
    ) -> Result<(), TextError> {
        let has_colon = self.tokens.takes(':');
        if has_colon && field.is_list() && self.tokens.takes('[') {
            let list = fields
                .entry(field.name())
                .or_insert_with(|| Value::Array(Vec::new()));
            let mut items = std::mem::take(list.as_array_mut().unwrap_or(&mut Vec::new()));
            while !self.tokens.takes(']') {
                items.push(self.value(&field.kind(), field.name(), true, depth)?);
                self.tokens.takes(',');
            }
            fields.insert(field.name().to_owned(), Value::Array(items));
            return Ok(());
        }
        if let Kind::Message(entry) = field.kind()
            && field.is_map()
        {
            let kind = entry.map_entry_value_field().kind();
            let (key, value) = self.entry(field, &kind, depth)?;
            let map = fields.entry(field.name());
            if let Value::Object(map) = map.or_insert_with(|| Value::Object(Map::new())) {
                map.insert(key, value);
            }
            return Ok(());
        }
        let value = self.value(&field.kind(), field.name(), has_colon, depth)?;
        if field.is_list() {
            let list = fields.entry(field.name());
            if let Value::Array(list) = list.or_insert_with(|| Value::Array(Vec::new())) {
                list.push(value);
            }
            return Ok(());
        }
        let choice = field.containing_oneof();
        let is_same_choice = |candidate: &FieldDescriptor| {
            candidate == field || (choice.is_some() && candidate.containing_oneof() == choice)
        };
        let mut candidates = message.fields().filter(is_same_choice);
        if let Some(present) = candidates.find(|candidate| fields.contains_key(candidate.name())) {
            let problem = match present == *field {
                true => format!("`{}` is given twice", field.name()),
                false => format!(
                    "`{}` and `{}` cannot both be set",
                    present.name(),
                    field.name()
                ),
            };
            return Err(self.wrong(problem));
        }
        fields.insert(field.name().to_owned(), value);
        Ok(())
    }

    /// An entry of a map: a message with a key and a value.
    fn entry(
        &mut self,
        field: &FieldDescriptor,
        kind: &Kind,
        depth: usize,
    ) -> Result<(String, Value), TextError> {
        let Some(end) = self.tokens.opens() else {
            return Err(self.wrong(format!(
                "`{}` holds entries with a key and a value",
                field.name()
            )));
        };
        let (mut key, mut value) = (None, None);
        while !self.ends(Some(end))? {
            let name = self.tokens.name()?;
            let has_colon = self.tokens.takes(':');
            let (place, kind) = match name {
                "key" => (&mut key, &Kind::String),
                "value" => (&mut value, kind),
                _ => {
                    let entry = field.name();
                    return Err(self.wrong(format!("an entry of `{entry}` has no `{name}`")));
                }
            };
            *place = Some(self.value(kind, name, has_colon, depth)?);
            if !self.tokens.takes(',') {
                self.tokens.takes(';');
            }
        }
        let key = key.as_ref().and_then(Value::as_str).map(str::to_owned);
        match (key, value) {
            (Some(key), Some(value)) => Ok((key, value)),
            _ => {
                let entry = field.name();
                Err(self.wrong(format!("an entry of `{entry}` lacks key or value")))
            }
        }
    }

    fn value(
        &mut self,
        kind: &Kind,
        name: &str,
        has_colon: bool,
        depth: usize,
    ) -> Result<Value, TextError> {
        if let Kind::Message(inner) = kind {
            let Some(end) = self.tokens.opens() else {
                return Err(self.wrong(format!("`{name}` is a message: write {name} {{ … }}")));
            };
            return self.message(inner.full_name(), Some(end), depth + 1);
        }
        let shape = || format!("`{name}` must be {}", expected(kind));
        if !has_colon {
            return Err(self.wrong(format!("{}: write {name}: …", shape())));
        }
        if let Some(bytes) = self.tokens.quoted()? {
            return match kind {
                Kind::Bytes => Ok(Value::from(Schema::bytes_text(&bytes))),
                Kind::String => {
                    let text = String::from_utf8(bytes);
                    text.map(Value::from)
                        .map_err(|_| self.wrong("a string is not UTF-8"))
                }
                _ => Err(self.wrong(shape())),
            };
        }
        let word = self.tokens.word()?;
        let value = scalar(kind, word);
        value.ok_or_else(|| self.wrong(shape()))
    }
}

/// Returns a number or a name in the JSON form; `None` for a word of another kind.
fn scalar(kind: &Kind, word: &str) -> Option<Value> {
    match kind {
        Kind::Double | Kind::Float => {
            let digits = word
                .strip_suffix(['f', 'F'])
                .filter(|digits| !digits.ends_with("in"));
            digits.unwrap_or(word).parse().ok().map(number)
        }
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            i32::try_from(signed(word)?).ok().map(Value::from)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            signed(word).map(|number| Value::from(number.to_string()))
        }
        Kind::Uint32 | Kind::Fixed32 => u32::try_from(unsigned(word)?).ok().map(Value::from),
        Kind::Uint64 | Kind::Fixed64 => {
            unsigned(word).map(|number| Value::from(number.to_string()))
        }
        Kind::Bool => match word {
            "true" | "True" | "t" | "1" => Some(Value::Bool(true)),
            "false" | "False" | "f" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        Kind::Enum(values) => {
            if values.get_value_by_name(word).is_some() {
                return Some(Value::from(word));
            }
            let number = i32::try_from(unsigned(word)?).ok()?;
            let named = values.get_value(number);
            Some(named.map_or_else(|| Value::from(number), |value| Value::from(value.name())))
        }
        Kind::String | Kind::Bytes | Kind::Message(_) => None,
    }
}

/// Decimal, `0x` hexadecimal, or octal behind a 0.
fn unsigned(word: &str) -> Option<u64> {
    if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    match word.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => word.parse().ok(),
    }
}

fn signed(word: &str) -> Option<i64> {
    match word.strip_prefix('-') {
        Some(digits) => 0_i64.checked_sub_unsigned(unsigned(digits)?),
        None => i64::try_from(unsigned(word)?).ok(),
    }
}
