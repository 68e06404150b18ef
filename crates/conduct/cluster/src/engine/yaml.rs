//! JSON values as YAML for readers.

use serde_json::Value;

/// Returns `value` as YAML. Texts are quoted as in JSON, which YAML reads alike.
pub(super) fn render(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text
}

/// Writes a value whose first line begins where the text ends.
fn write(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push_str(&indent);
                }
                text.push_str(&plain(name));
                text.push(':');
                write_below(value, depth, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(&indent);
                }
                text.push_str("- ");
                write(item, depth + 1, text);
            }
        }
        Value::String(scalar) => {
            text.push_str(&plain(scalar));
            text.push('\n');
        }
        scalar => {
            text.push_str(&scalar.to_string());
            text.push('\n');
        }
    }
}

/// Writes the value of a field: a scalar beside the name, others below it.
fn write_below(value: &Value, depth: usize, text: &mut String) {
    let is_block = match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        text.push('\n');
        text.push_str(&"  ".repeat(depth + 1));
        write(value, depth + 1, text);
    } else {
        text.push(' ');
        write(value, depth, text);
    }
}

/// Returns a text without quotes where no reader takes it for anything else.
fn plain(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let is_literal = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .contains(&text.to_ascii_lowercase().as_str());
    if begins && !is_literal && text.chars().all(is_word) {
        return text.to_owned();
    }
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_form_that_readers_of_manifests_accept() {
        let value = json!({"a": {"b": ["x", {"c": 1, "d": "1"}], "e": {}}, "f/g": "a: b", "h": "no", "i": []});
        let expected = "\
a:
  b:
    - x
    - c: 1
      d: \"1\"
  e: {}
f/g: \"a: b\"
h: \"no\"
i: []
";
        assert_eq!(render(&value), expected);
    }
}
