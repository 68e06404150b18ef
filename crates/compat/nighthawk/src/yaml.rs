//! The same messages as YAML.

use serde_json::{Map, Number, Value};

use super::fields::MessageError;
use super::tree::{Tree, quoted};
use stillwell_text::{Node, Severity, Source};

/// `tree` as YAML in blocks of two spaces.
pub(super) fn write(tree: &Tree) -> String {
    let mut text = String::new();
    if is_scalar(tree) {
        text.push_str(&scalar(tree));
        text.push('\n');
    } else {
        block(tree, 0, &mut text);
    }
    text
}

/// A collection that is not empty, from a fresh line on; or, behind `- `, from
/// where the line is.
fn block(tree: &Tree, depth: usize, text: &mut String) {
    match tree {
        Tree::Map(entries) => {
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 || text.is_empty() || text.ends_with('\n') {
                    text.push_str(&"  ".repeat(depth));
                }
                text.push_str(&plain_or_quoted(key));
                text.push(':');
                if is_scalar(value) {
                    text.push(' ');
                    text.push_str(&scalar(value));
                    text.push('\n');
                } else {
                    text.push('\n');
                    block(value, depth + 1, text);
                }
            }
        }
        Tree::List(items) => {
            for item in items {
                text.push_str(&"  ".repeat(depth));
                text.push_str("- ");
                if is_scalar(item) {
                    text.push_str(&scalar(item));
                    text.push('\n');
                } else if matches!(item, Tree::List(_)) {
                    text.push('\n');
                    block(item, depth + 1, text);
                } else {
                    block(item, depth + 1, text);
                }
            }
        }
        other => text.push_str(&scalar(other)),
    }
}

/// Returns true for a value on the line of its key.
fn is_scalar(tree: &Tree) -> bool {
    match tree {
        Tree::List(items) => items.is_empty(),
        Tree::Map(entries) => entries.is_empty(),
        _ => true,
    }
}

fn scalar(tree: &Tree) -> String {
    match tree {
        Tree::Text(text) => plain_or_quoted(text),
        Tree::List(_) => "[]".to_owned(),
        Tree::Map(_) => "{}".to_owned(),
        other => other.scalar(),
    }
}

/// Returns the text plain if it is unambiguous, and in quotes otherwise.
fn plain_or_quoted(text: &str) -> String {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ':');
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(inner)
        && !text.ends_with(':')
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    // A time such as `1.5s` or a number would be read as a text by some and as
    // something else by others.
    if plain {
        text.to_owned()
    } else {
        escaped(&quoted(text))
    }
}

/// JSON with what YAML does not take as it is, or takes for the end of a line,
/// escaped.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        let is_printable = !c.is_control()
            && !matches!(
                c,
                '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            );
        if is_printable {
            text.push(c);
        } else {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    text
}

/// Reads a value from YAML.
pub(super) fn read(text: &str) -> Result<Value, MessageError> {
    let source = Source::new("", text);
    let (node, diagnostics) =
        stillwell_text::parse(&source).map_err(|error| MessageError::Yaml {
            problem: error.message.clone(),
        })?;
    let error = diagnostics
        .iter()
        .find(|diagnostic| diagnostic.severity == Severity::Error);
    if let Some(error) = error {
        return Err(MessageError::Yaml {
            problem: error.message.clone(),
        });
    }
    Ok(value(&node))
}

fn value(node: &Node) -> Value {
    match &node.value {
        stillwell_text::Value::Null => Value::Null,
        stillwell_text::Value::Scalar { text, quoted: true } => Value::String(text.clone()),
        stillwell_text::Value::Scalar {
            text,
            quoted: false,
        } => plain(text),
        stillwell_text::Value::List(items) => items.iter().map(value).collect(),
        stillwell_text::Value::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|entry| (entry.key.text.clone(), value(&entry.value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

fn plain(text: &str) -> Value {
    match text {
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let number = serde_json::from_str::<Number>(text);
            number.map_or_else(|_| Value::String(text.to_owned()), Value::Number)
        }
    }
}
