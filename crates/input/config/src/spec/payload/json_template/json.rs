//! YAML values as JSON.

use std::fmt::Write as _;

use stillwell_text::{Node, Value};

/// `node` as JSON.
pub(super) fn text(node: &Node) -> String {
    let mut out = String::new();
    write(node, &mut out);
    out
}

fn write(node: &Node, out: &mut String) {
    match &node.value {
        Value::Null => out.push_str("null"),
        Value::Scalar { text, quoted } => match (quoted, plain(text)) {
            (false, Some(value)) => out.push_str(&value),
            _ => {
                out.push('"');
                out.push_str(&escaped(text));
                out.push('"');
            }
        },
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (index, entry) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push('"');
                out.push_str(&escaped(&entry.key.text));
                out.push_str("\":");
                write(&entry.value, out);
            }
            out.push('}');
        }
    }
}

/// A number or a truth value, if an unquoted `text` is one.
fn plain(text: &str) -> Option<String> {
    match text {
        "true" | "True" | "TRUE" => return Some("true".to_owned()),
        "false" | "False" | "FALSE" => return Some("false".to_owned()),
        _ => {}
    }
    let digits = text.trim_start_matches(['+', '-']);
    // A leading zero makes a text of it, as in a telephone number.
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && !(digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit()));
    if !is_number {
        return None;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(rest) = text.strip_prefix(prefix) {
            return u64::from_str_radix(rest, radix)
                .ok()
                .map(|value| value.to_string());
        }
    }
    if let Ok(whole) = text.parse::<i128>() {
        let fits = i64::try_from(whole).is_ok() || u64::try_from(whole).is_ok();
        return fits.then(|| whole.to_string());
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then(|| format!("{value:?}"))
}

/// Returns `text` as it is written inside a JSON text.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                // Writing into a text cannot fail.
                write!(out, "\\u{:04x}", u32::from(control)).unwrap_or_default();
            }
            other => out.push(other),
        }
    }
    out
}
