//! The JSON Schema of native files, made from their tables of keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::bench::BENCH;
use crate::element::{Element, Shape};
use crate::scenario::SCENARIO_FILE;
use crate::spec::EXPERIMENT;

/// Kind of file that a schema describes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SchemaOf {
    /// An experiment or a run.
    Experiment,
    /// A bench.
    Bench,
    /// A scenario.
    Scenario,
}

/// The JSON Schema (draft 2020-12) of native files.
#[must_use]
pub fn schema(of: SchemaOf) -> Value {
    let (root, id, title) = match of {
        SchemaOf::Experiment => (
            &EXPERIMENT,
            "experiment",
            "Stillwell experiment or single run",
        ),
        SchemaOf::Bench => (&BENCH, "bench", "Stillwell bench"),
        SchemaOf::Scenario => (&SCENARIO_FILE, "scenario", "Stillwell scenario"),
    };
    let mut definitions = BTreeMap::new();
    define(root, &mut definitions);
    let definitions: Map<String, Value> = definitions.into_iter().collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("stillwell/{id}/v1"),
        "title": title,
        "$ref": format!("#/$defs/{}", root.id()),
        "$defs": definitions,
    })
}

fn define(element: &Element, definitions: &mut BTreeMap<String, Value>) {
    if definitions.contains_key(&element.id()) {
        return;
    }
    definitions.insert(element.id(), Value::Null);
    let mut properties = Map::new();
    for field in element.fields {
        let mut value = describe(&field.shape, definitions);
        if let Some(object) = value.as_object_mut() {
            object.insert("description".to_owned(), json!(field.about));
        }
        properties.insert(field.name.to_owned(), value);
    }
    let required = element.fields.iter().filter(|field| field.required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let mut definition = json!({
        "type": "object",
        "description": element.about,
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        definition["required"] = json!(required);
    }
    if !element.one_of.is_empty() {
        let choices = element
            .one_of
            .iter()
            .map(|key| json!({ "required": [key] }));
        definition["oneOf"] = choices.collect();
    }
    definitions.insert(element.id(), definition);
}

fn describe(shape: &Shape, definitions: &mut BTreeMap<String, Value>) -> Value {
    match shape {
        Shape::Boolean => json!({ "type": "boolean" }),
        // As a number, or as a text with a factor or in binary digits.
        Shape::Whole => json!({
            "type": ["integer", "string"],
            "minimum": 0,
            "pattern": r"^([0-9]+(\.[0-9]+)?[kMG]|0b[01]+)$",
        }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Text => json!({ "type": "string" }),
        Shape::Free => json!({}),
        Shape::Like(example) => json!({ "type": "string", "examples": [example] }),
        Shape::Words(words) => json!({ "enum": words }),
        Shape::List(item) => json!({ "type": "array", "items": describe(item, definitions) }),
        Shape::Map(value) => json!({
            "type": "object",
            "additionalProperties": describe(value, definitions),
        }),
        Shape::Element(element) => {
            define(element, definitions);
            json!({ "$ref": format!("#/$defs/{}", element.id()) })
        }
        Shape::Any(shapes) => {
            let shapes: Vec<Value> = shapes
                .iter()
                .map(|shape| describe(shape, definitions))
                .collect();
            json!({ "anyOf": shapes })
        }
    }
}
