//! JSON with keys in the order in which they were put, as text and as YAML.

use serde_json::Value;

use super::yaml;

/// A value of JSON whose maps keep their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(u64),
    /// Any other number; what is not finite is written as `0`.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// A map.
    Map(Vec<(String, Self)>),
}

impl Tree {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A 64-bit number in the JSON form of protocol buffers: a text.
    #[must_use]
    pub fn long(value: u64) -> Self {
        Self::Text(value.to_string())
    }

    /// As JSON, each level indented by one space, ending with a line feed.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        self.write_json(0, &mut text);
        text.push('\n');
        text
    }

    /// As YAML, ending with a line feed.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        yaml::write(self)
    }

    fn write_json(&self, depth: usize, text: &mut String) {
        match self {
            Self::List(items) if !items.is_empty() => {
                let write = |item: &Self, text: &mut String| item.write_json(depth + 1, text);
                enclose('[', items, ']', depth, text, write);
            }
            Self::List(_) => text.push_str("[]"),
            Self::Map(entries) if !entries.is_empty() => {
                let write = |(key, value): &(String, Self), text: &mut String| {
                    text.push_str(&quoted(key));
                    text.push_str(": ");
                    value.write_json(depth + 1, text);
                };
                enclose('{', entries, '}', depth, text, write);
            }
            Self::Map(_) => text.push_str("{}"),
            scalar => text.push_str(&scalar.scalar()),
        }
    }

    /// A value that is no collection, as JSON.
    pub(super) fn scalar(&self) -> String {
        match self {
            Self::Bool(true) => "true".to_owned(),
            Self::Bool(false) => "false".to_owned(),
            Self::Integer(value) => value.to_string(),
            Self::Number(value) if value.is_finite() => value.to_string(),
            Self::Number(_) => "0".to_owned(),
            Self::Text(text) => quoted(text),
            Self::Null | Self::List(_) | Self::Map(_) => "null".to_owned(),
        }
    }
}

fn enclose<T>(
    open: char,
    items: &[T],
    close: char,
    depth: usize,
    text: &mut String,
    mut write: impl FnMut(&T, &mut String),
) {
    text.push(open);
    for (index, item) in items.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&" ".repeat(depth + 1));
        write(item, text);
    }
    text.push('\n');
    text.push_str(&" ".repeat(depth));
    text.push(close);
}

/// `text` in double quotes, which JSON and YAML both read.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl From<&Value> for Tree {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(value) => value.as_u64().map_or_else(
                || Self::Number(value.as_f64().unwrap_or(0.0)),
                Self::Integer,
            ),
            Value::String(value) => Self::Text(value.clone()),
            Value::Array(value) => Self::List(value.iter().map(Self::from).collect()),
            Value::Object(value) => {
                let entries = value.iter();
                Self::Map(
                    entries
                        .map(|(key, value)| (key.clone(), value.into()))
                        .collect(),
                )
            }
        }
    }
}

impl From<Tree> for Value {
    fn from(tree: Tree) -> Self {
        match tree {
            Tree::Null => Self::Null,
            Tree::Bool(value) => value.into(),
            Tree::Integer(value) => value.into(),
            Tree::Number(value) => value.into(),
            Tree::Text(value) => value.into(),
            Tree::List(value) => value.into_iter().map(Self::from).collect(),
            Tree::Map(value) => {
                let entries = value.into_iter();
                Self::Object(entries.map(|(key, value)| (key, value.into())).collect())
            }
        }
    }
}
