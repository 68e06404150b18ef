//! The JSON Schema and the reader accept the same values.

use serde_json::{Value, json};

use super::experiment;
use crate::{SchemaOf, schema};

/// Returns an experiment with `value` as `key` of the map at the JSON pointer `parent`. Its text is JSON, which is
/// YAML as well.
fn file(parent: &str, key: &str, value: Value) -> Value {
    let mut file = json!({
        "matrix": {"count": [4], "flag": [true], "design": ["duet"], "strictness": ["normal"], "share": [0.5]},
        "target": {"command": ["./relay", "--in", "127.0.0.1:9100"]},
        "variants": {"baseline": {}, "comparison": {"arguments": ["--slow"]}},
        "workload": {"generators": [{"tcp": "127.0.0.1:9100", "payload": "ascii"}]},
    });
    file.pointer_mut(parent).unwrap()[key] = value;
    file
}

#[test]
fn the_schema_accepts_the_values_that_the_reader_accepts() {
    let schema = schema(SchemaOf::Experiment);
    let generator = "/workload/generators/0";
    let dogstatsd = |share: Value| json!({"dogstatsd": {"sampling_probability": share}});
    for (parent, key, value, is_right) in [
        ("/target", "name", json!("relay"), true),
        (
            "/target",
            "command",
            json!(["./relay", 9100, 0.5, true]),
            true,
        ),
        ("/target", "command", json!(["./relay", null]), false),
        (
            "/variants/comparison",
            "arguments",
            json!(["--level", 3]),
            true,
        ),
        (
            "/variants/comparison",
            "arguments",
            json!([["--level"]]),
            false,
        ),
        ("/variants", "baseline", json!(null), true),
        ("/variants", "baseline", json!(3), false),
        ("", "pairs", json!(8), true),
        ("", "pairs", json!("{matrix.count}"), true),
        ("", "pairs", json!("1{matrix.count}"), true),
        ("", "pairs", json!("many"), false),
        (generator, "connections", json!("{matrix.count}"), true),
        ("", "confirm", json!("{matrix.flag}"), true),
        ("", "confirm", json!("perhaps"), false),
        ("", "design", json!("{matrix.design}"), true),
        ("", "design", json!("trio"), false),
        ("", "validity", json!("{matrix.strictness}"), true),
        ("", "validity", json!("severe"), false),
        (
            generator,
            "payload",
            dogstatsd(json!("{matrix.share}")),
            true,
        ),
        (generator, "payload", dogstatsd(json!("half")), false),
    ] {
        let file = file(parent, key, value);
        let read = experiment(&file.to_string());
        assert_eq!(read.is_ok(), is_right, "{key}: {file} {:?}", read.err());
        assert_eq!(accepts(&schema, &schema, &file), is_right, "{key}: {file}");
    }
}

#[test]
fn only_files_with_a_matrix_have_parameters() {
    for (of, has_matrix) in [
        (SchemaOf::Experiment, true),
        (SchemaOf::Bench, false),
        (SchemaOf::Scenario, false),
    ] {
        let text = schema(of).to_string();
        assert_eq!(text.contains(r"{matrix\\."), has_matrix, "{of:?}");
    }
}

/// Returns true if `schema`, a part of `root`, accepts `value`. Has the words of JSON Schema that schemas of files use.
fn accepts(root: &Value, schema: &Value, value: &Value) -> bool {
    if let Some(reference) = schema["$ref"].as_str() {
        let definition = root.pointer(reference.trim_start_matches('#')).unwrap();
        return accepts(root, definition, value);
    }
    let fits = |choice: &Value| accepts(root, choice, value);
    let list = |key: &str| schema[key].as_array();
    let is_any = list("anyOf").is_none_or(|choices| choices.iter().any(fits));
    let fitting = |choices: &Vec<Value>| choices.iter().filter(|choice| fits(choice)).count();
    let is_single = list("oneOf").is_none_or(|choices| fitting(choices) == 1);
    let is_word = list("enum").is_none_or(|words| words.contains(value));
    let has_keys = list("required").is_none_or(|keys| {
        let mut keys = keys.iter().filter_map(Value::as_str);
        keys.all(|key| value.get(key).is_some())
    });
    let has_type = match &schema["type"] {
        Value::String(name) => is_type(value, name),
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str);
            names.any(|name| is_type(value, name))
        }
        _ => true,
    };
    let is_enough = match (schema["minimum"].as_f64(), value.as_f64()) {
        (Some(minimum), Some(number)) => number >= minimum,
        _ => true,
    };
    let has_pattern = match (schema["pattern"].as_str(), value.as_str()) {
        (Some(pattern), Some(text)) => regex::Regex::new(pattern).unwrap().is_match(text),
        _ => true,
    };
    let fits_itself = is_word && has_keys && has_type && is_enough && has_pattern;
    is_any && is_single && fits_itself && accepts_content(root, schema, value)
}

/// Returns true if `schema` accepts the items or the entries of `value`.
fn accepts_content(root: &Value, schema: &Value, value: &Value) -> bool {
    match value {
        Value::Array(items) => {
            let of_item = schema.get("items");
            of_item.is_none_or(|of_item| items.iter().all(|item| accepts(root, of_item, item)))
        }
        Value::Object(entries) => entries.iter().all(|(key, entry)| {
            let property = schema["properties"].get(key);
            match property.or_else(|| schema.get("additionalProperties")) {
                None => true,
                Some(Value::Bool(is_accepted)) => *is_accepted,
                Some(of_entry) => accepts(root, of_entry, entry),
            }
        }),
        _ => true,
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("{unknown}"),
    }
}
