//! The one rule by which secrets are masked in everything that is printed or kept.
//!
//! A value is a secret because of the name it is given to: a header, a variable of the environment, a
//! parameter of a URL or an option of a command line. User names and passwords of URLs and private keys in
//! PEM are secrets without a name. A masked value is replaced by [`MASK`] as a whole, so its length is not
//! shown either.
//!
//! ```
//! use stillwell_units::Secrets;
//! let typed = "load -H 'Authorization: Bearer abc' http://me:pw@host/?token=abc&page=2";
//! assert_eq!(
//!     Secrets::Masked.text(typed),
//!     "load -H 'Authorization: ***' http://***@host/?token=***&page=2"
//! );
//! assert_eq!(Secrets::Kept.text(typed), typed);
//! ```

mod name;
mod text;

use serde_json::{Map, Value};

use name::Context;

/// Replaces a secret.
pub const MASK: &str = "***";

/// Objects whose keys are names that a user chose.
const OBJECTS_OF_NAMES: [&str; 6] = [
    "environment",
    "env",
    "headers",
    "metadata",
    "parameters",
    "variables",
];

/// Handling of secrets in output.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Secrets {
    /// Each is replaced by [`MASK`].
    #[default]
    Masked,
    /// They are shown.
    Kept,
}

impl Secrets {
    /// Returns `text` without the secrets that it assigns: `name=value`, `Name: value`, in URLs and JSON.
    #[must_use]
    pub fn text(self, text: &str) -> String {
        match self {
            Self::Masked => text::masked(text),
            Self::Kept => text.to_owned(),
        }
    }

    /// Returns the words of a command line without secrets. The value of an option such as `--password` is
    /// one, too.
    #[must_use]
    pub fn words(self, words: &[String]) -> Vec<String> {
        if self == Self::Kept {
            return words.to_vec();
        }
        let before = std::iter::once(None).chain(words.iter().map(Some));
        let masked = words.iter().zip(before).map(|(word, before)| {
            let is_value = before.is_some_and(|option| {
                option.starts_with('-') && name::is_secret(option, Context::Option)
            });
            match is_value && !word.starts_with('-') {
                true => hidden(word),
                false => text::masked(word),
            }
        });
        masked.collect()
    }

    /// Returns the value of the header, variable or parameter `name`.
    #[must_use]
    pub fn value(self, name: &str, value: &str) -> String {
        match self {
            Self::Masked if name::is_secret(name, Context::Chosen) => hidden(value),
            _ => self.text(value),
        }
    }

    /// Returns `value` without secrets in its texts, and of the same shape.
    ///
    /// Names are those of objects in `environment`, `headers` and alike, the first of each pair of texts, and
    /// `name` or `key` beside a `value`.
    #[must_use]
    pub fn json(self, value: Value) -> Value {
        match self {
            Self::Masked => masked(value, Context::Field),
            Self::Kept => value,
        }
    }
}

fn hidden(value: &str) -> String {
    let text = if value.is_empty() { "" } else { MASK };
    text.to_owned()
}

fn masked(value: Value, names: Context) -> Value {
    match value {
        Value::String(text) => Value::String(text::masked(&text)),
        Value::Array(values) => masked_array(values),
        Value::Object(fields) => Value::Object(masked_object(fields, names)),
        other => other,
    }
}

fn masked_array(values: Vec<Value>) -> Value {
    if let [Value::String(name), secret] = values.as_slice()
        && name::is_secret(name, context_of_pair(name))
    {
        let secret = hide_all(secret.clone());
        return Value::Array(vec![Value::String(name.clone()), secret]);
    }
    let words: Option<Vec<String>> = values
        .iter()
        .map(|value| value.as_str().map(str::to_owned))
        .collect();
    match words {
        Some(words) => Value::from(Secrets::Masked.words(&words)),
        None => values
            .into_iter()
            .map(|value| masked(value, Context::Field))
            .collect(),
    }
}

/// Returns the context of the first of two texts: that of a header, or of an option with its value.
fn context_of_pair(name: &str) -> Context {
    match name.starts_with('-') {
        true => Context::Option,
        false => Context::Chosen,
    }
}

fn masked_object(mut fields: Map<String, Value>, names: Context) -> Map<String, Value> {
    let named = fields.get("name").or_else(|| fields.get("key"));
    let is_secret = named
        .and_then(Value::as_str)
        .is_some_and(|name| name::is_secret(name, Context::Chosen));
    for (name, value) in &mut fields {
        let inner = std::mem::take(value);
        *value = if name::is_secret(name, names) || is_secret && name == "value" {
            hide_all(inner)
        } else if OBJECTS_OF_NAMES.contains(&name.as_str()) {
            masked(inner, Context::Chosen)
        } else {
            masked(inner, Context::Field)
        };
    }
    fields
}

/// Hides every text in `value`, regardless of names.
fn hide_all(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(hidden(&text)),
        Value::Array(values) => values.into_iter().map(hide_all).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, hide_all(value)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests;
