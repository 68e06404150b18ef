//! The reference page of the keys of native files, made from their JSON Schemas.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::{SchemaOf, schema};

const HEAD: &str = "\
# Keys of native files

<!-- Made from the JSON Schemas by `cargo xtask reference`. -->

Every key of an experiment file (`experiment.yaml`, `run.yaml`) and of a bench file (`bench.yaml`). [The experiment
file](experiments.md) and [Replay a recording](bench.md) explain them with examples. `stillwell schema` prints the same as
a JSON Schema, for [editors](editors.md). A key in **bold** is required.
";

/// With this variable in the environment the page is written and not compared.
const WRITE: &str = "STILLWELL_WRITE_REFERENCE";

#[test]
fn the_reference_page_has_every_key() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference.md");
    let page = page();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&place, page).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference.md is not current: run `cargo xtask reference`"
    );
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut known = BTreeSet::new();
    for of in [SchemaOf::Experiment, SchemaOf::Bench] {
        let schema = schema(of);
        let root = target(&schema).unwrap().to_owned();
        write_element(&schema, &root, &mut known, &mut page);
    }
    page
}

/// Appends an element and then those that it refers to, each once.
fn write_element(schema: &Value, id: &str, known: &mut BTreeSet<String>, page: &mut String) {
    if !known.insert(id.to_owned()) {
        return;
    }
    let element = &schema["$defs"][id];
    let about = element["description"].as_str().unwrap();
    write!(page, "\n## {}\n\n{about}\n\n", title(id)).unwrap();
    page.push_str("| key | value | meaning |\n| --- | --- | --- |\n");
    let is_required = |key: &str| {
        let required = element["required"].as_array().into_iter().flatten();
        required.into_iter().any(|required| required == key)
    };
    let mut elements = Vec::new();
    for (key, value) in element["properties"].as_object().unwrap() {
        let name = if is_required(key) {
            format!("**`{key}`**")
        } else {
            format!("`{key}`")
        };
        let shape = shape(value, &mut elements);
        let about = value["description"].as_str().unwrap();
        let row = format!("{name} | {shape} | {}", about.replace('|', "\\|"));
        writeln!(page, "| {row} |").unwrap();
    }
    if element["oneOf"].is_array() {
        page.push_str("\nExactly one of the keys that name a kind is required.\n");
    }
    for id in elements {
        write_element(schema, &id, known, page);
    }
}

/// Describes a value, and adds the elements that it refers to.
fn shape(value: &Value, elements: &mut Vec<String>) -> String {
    if let Some(id) = target(value) {
        elements.push(id.to_owned());
        return format!("[{}](#{})", title(id), id.replace('_', "-"));
    }
    if let Some(shapes) = value["anyOf"].as_array() {
        let shapes = shapes.iter().filter(|value| !is_parameter(value));
        let shapes: Vec<String> = shapes.map(|value| shape(value, elements)).collect();
        return shapes.join(" or ");
    }
    if let Some(words) = value["enum"].as_array() {
        let words: Vec<String> = words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap()))
            .collect();
        return words.join(", ");
    }
    match value["type"].as_str() {
        Some("array") if is_text(&value["items"]) => "list of text".to_owned(),
        Some("array") => format!("list of {}", shape(&value["items"], elements)),
        Some("object") => format!(
            "map from names to {}",
            shape(&value["additionalProperties"], elements)
        ),
        Some("string") => match value["examples"][0].as_str() {
            Some(example) => format!("text such as `{example}`"),
            None => "text".to_owned(),
        },
        Some("null") => "nothing".to_owned(),
        Some(name) => name.to_owned(),
        None if value["type"][0] == "integer" => "whole number".to_owned(),
        None => "anything".to_owned(),
    }
}

/// Returns true for a parameter of the matrix, which any single value may be.
fn is_parameter(value: &Value) -> bool {
    let pattern = value["pattern"].as_str();
    pattern.is_some_and(|pattern| pattern.contains("matrix"))
}

/// Returns true for a text that may look like a number or a boolean.
fn is_text(value: &Value) -> bool {
    let kinds = ["string", "number", "boolean"].map(|kind| json!({ "type": kind }));
    value["anyOf"] == json!(kinds)
}

/// The element that a value refers to.
fn target(value: &Value) -> Option<&str> {
    value["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn title(id: &str) -> String {
    id.replace('_', " ")
}
