//! True if two plans are the same, and where they first differ.

use serde::Serialize;
use serde_json::Value;
use stillwell_units::Secrets;

use crate::files::sha256;

/// SHA-256 of the plan's JSON without secrets, in hexadecimal digits.
///
/// # Errors
/// [`serde_json::Error`] where a path in it is not UTF-8.
pub fn fingerprint(plan: &impl Serialize) -> Result<String, serde_json::Error> {
    let plan = Secrets::Masked.json(serde_json::to_value(plan)?);
    Ok(sha256(plan.to_string().as_bytes()))
}

/// Returns the first difference between `new` and `old`, as a JSON pointer (RFC 6901); `None` if
/// there is none. The pointer to the whole is empty.
#[must_use]
pub fn first_difference(old: &Value, new: &Value) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let keys = old
                .keys()
                .chain(new.keys().filter(|key| !old.contains_key(*key)));
            first_in(keys.map(|key| (escape(key), old.get(key), new.get(key))))
        }
        (Value::Array(old), Value::Array(new)) => first_in(
            (0..old.len().max(new.len()))
                .map(|index| (index.to_string(), old.get(index), new.get(index))),
        ),
        _ => (old != new).then(String::new),
    }
}

fn first_in<'a>(
    parts: impl Iterator<Item = (String, Option<&'a Value>, Option<&'a Value>)>,
) -> Option<String> {
    for (name, old, new) in parts {
        let below = match (old, new) {
            (Some(old), Some(new)) => first_difference(old, new),
            _ => Some(String::new()),
        };
        if let Some(below) = below {
            return Some(format!("/{name}{below}"));
        }
    }
    None
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let old = json!({"a": [1, {"b/c": 2, "d": 3}], "e": null});
        for (new, pointer) in [
            (old.clone(), None),
            (
                json!({"a": [1, {"b/c": 9, "d": 9}], "e": null}),
                Some("/a/1/b~1c"),
            ),
            (json!({"a": [1], "e": null}), Some("/a/1")),
            (
                json!({"a": [1, {"b/c": 2, "d": 3}], "e": null, "f": 0}),
                Some("/f"),
            ),
            (json!({"a": [1, {"b/c": 2, "d": 3}]}), Some("/e")),
            (json!(7), Some("")),
        ] {
            assert_eq!(first_difference(&old, &new).as_deref(), pointer, "{new}");
        }
    }
}
