//! Taking a message's fields out of JSON, one by one, until none is left.

use super::wire::TextError;
use serde_json::{Map, Value};
use stillwell_units::{Nanos, floor_to_u64};

use super::enums::Enumeration;
use super::time::{parse_duration, parse_timestamp};

/// A text that is no such message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MessageError {
    /// No JSON, or JSON that was cut.
    #[error("it is not complete JSON: {problem}")]
    Json {
        /// The parser's message, with its place.
        problem: String,
    },
    /// No text of protocol buffers.
    #[error(transparent)]
    Text(TextError),
    /// No YAML.
    #[error("it is not YAML: {problem}")]
    Yaml {
        /// The parser's message, with its place.
        problem: String,
    },
    /// A field that the message does not have.
    #[error("`{path}` is not a field of this message")]
    Unknown {
        /// The field, such as `results[0].nmae`.
        path: String,
    },
    /// A field that holds something else.
    #[error("`{path}` must be {expected}")]
    Shape {
        /// The field.
        path: String,
        /// The expected shape.
        expected: &'static str,
    },
}

/// The fields of one message that were not taken yet.
pub(super) struct Fields {
    path: String,
    left: Map<String, Value>,
}

impl Fields {
    /// Returns the fields of `value`, which is at `path`. Names are those of the message's
    /// definition or in camel case; `null` counts as absent.
    pub(super) fn of(value: Value, path: &str) -> Result<Self, MessageError> {
        let Value::Object(map) = value else {
            return Err(MessageError::Shape {
                path: if path.is_empty() { "the text" } else { path }.to_owned(),
                expected: "a message",
            });
        };
        let kept = map.into_iter().filter(|(_, value)| !value.is_null());
        Ok(Self {
            path: path.to_owned(),
            left: kept.map(|(key, value)| (snake_case(&key), value)).collect(),
        })
    }

    /// Returns the path of the field `name`.
    pub(super) fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Takes the field unchanged.
    pub(super) fn raw(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name)
    }

    /// The message in a field, read by `read`, which takes all of its fields.
    pub(super) fn message<T>(
        &mut self,
        name: &str,
        read: fn(&mut Self) -> Result<T, MessageError>,
    ) -> Result<Option<T>, MessageError> {
        let path = self.at(name);
        self.raw(name)
            .map(|value| whole_message(value, &path, read))
            .transpose()
    }

    /// The messages in a list; none where the field is absent.
    pub(super) fn messages<T>(
        &mut self,
        name: &str,
        read: fn(&mut Self) -> Result<T, MessageError>,
    ) -> Result<Vec<T>, MessageError> {
        self.list(name, |value, path| whole_message(value, path, read))
    }

    /// The items of a list, each read by `read` with its place.
    pub(super) fn list<T>(
        &mut self,
        name: &str,
        read: impl Fn(Value, &str) -> Result<T, MessageError>,
    ) -> Result<Vec<T>, MessageError> {
        let path = self.at(name);
        let items = self.map(name, "a list", |value| match value {
            Value::Array(items) => Some(items),
            _ => None,
        })?;
        let items = items.unwrap_or_default().into_iter().enumerate();
        items
            .map(|(index, item)| read(item, &format!("{path}[{index}]")))
            .collect()
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, MessageError> {
        self.map(name, "a text", |value| match value {
            Value::String(text) => Some(text),
            // YAML's way of writing a text that looks like a number.
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(boolean) => Some(boolean.to_string()),
            _ => None,
        })
    }

    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>, MessageError> {
        self.map(name, "true or false", |value| value.as_bool())
    }

    pub(super) fn long(&mut self, name: &str) -> Result<Option<u64>, MessageError> {
        self.map(name, "a whole number", |value| whole(&value))
    }

    pub(super) fn short(&mut self, name: &str) -> Result<Option<u32>, MessageError> {
        self.map(name, "a whole number of 32 bits", |value| {
            whole(&value).and_then(|number| u32::try_from(number).ok())
        })
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, MessageError> {
        self.map(name, "a finite number", |value| {
            number(&value).filter(|number| number.is_finite())
        })
    }

    /// A number that is 0 where the message has none, as the mean of no samples is `NaN`.
    pub(super) fn number_or_zero(&mut self, name: &str) -> Result<Option<f64>, MessageError> {
        let number = self.map(name, "a number", |value| number(&value))?;
        Ok(number.map(|number| if number.is_finite() { number } else { 0.0 }))
    }

    pub(super) fn duration(&mut self, name: &str) -> Result<Option<Nanos>, MessageError> {
        self.map(name, "a time such as \"1.5s\"", |value| {
            value.as_str().and_then(parse_duration)
        })
    }

    pub(super) fn timestamp(&mut self, name: &str) -> Result<Option<Nanos>, MessageError> {
        let expected = "a point in time such as \"2020-10-21T21:28:12.690578Z\"";
        self.map(name, expected, |value| {
            value.as_str().and_then(parse_timestamp)
        })
    }

    /// One of an enumeration, by name or number.
    pub(super) fn one_of<T: Enumeration>(&mut self, name: &str) -> Result<Option<T>, MessageError> {
        self.map(
            name,
            "one of the values of its enum",
            |value| match &value {
                Value::String(text) => T::by_name(text),
                other => other.as_u64().and_then(T::by_number),
            },
        )
    }

    /// Names and whole numbers.
    pub(super) fn thresholds(
        &mut self,
        name: &str,
    ) -> Result<std::collections::BTreeMap<String, u64>, MessageError> {
        let all = self.map(name, "a map of whole numbers", |value| match value {
            Value::Object(map) => map
                .into_iter()
                .map(|(key, number)| whole(&number).map(|number| (key, number)))
                .collect(),
            _ => None,
        })?;
        Ok(all.unwrap_or_default())
    }

    /// Takes all remaining fields.
    pub(super) fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.left)
    }

    /// That everything was taken.
    pub(super) fn finish(self) -> Result<(), MessageError> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(MessageError::Unknown {
                path: self.at(name),
            }),
        }
    }

    fn map<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, MessageError> {
        let Some(value) = self.raw(name) else {
            return Ok(None);
        };
        let path = self.at(name);
        read(value)
            .map(Some)
            .ok_or(MessageError::Shape { path, expected })
    }
}

/// The message that `value` at `path` is: it has no field that `read` leaves.
pub(super) fn whole_message<T>(
    value: Value,
    path: &str,
    read: fn(&mut Fields) -> Result<T, MessageError>,
) -> Result<T, MessageError> {
    let mut fields = Fields::of(value, path)?;
    let message = read(&mut fields)?;
    fields.finish()?;
    Ok(message)
}

/// A whole number, also as text, or as a float without a fraction.
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            let whole = float >= 0.0 && float.fract() == 0.0 && float < 9.0e15;
            whole.then(|| floor_to_u64(float))
        }),
        _ => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_f64(),
        _ => None,
    }
}

/// `requestBodySize` as `request_body_size`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
