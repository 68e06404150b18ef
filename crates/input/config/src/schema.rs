//! The tables of keys, and the JSON Schema made from them.
//!
//! Readers find unknown keys with these very tables, so that schema and reader
//! cannot accept different keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use stillwell_text::Keys;

use crate::bench::BENCH;
use crate::spec::EXPERIMENT;

/// One kind of map.
#[derive(Debug)]
pub(crate) struct Element {
    /// What messages call it.
    pub(crate) name: &'static str,
    /// One sentence.
    pub(crate) about: &'static str,
    /// Its keys.
    pub(crate) fields: &'static [Field],
    /// Exactly one of these keys must be there, if there are any.
    pub(crate) one_of: &'static [&'static str],
}

/// One key.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// What may stand at a key.
#[derive(Debug)]
pub(crate) enum Shape {
    Boolean,
    Whole,
    Number,
    Text,
    /// A text with an inner grammar; an example of it.
    Like(&'static str),
    Words(&'static [&'static str]),
    List(&'static Self),
    /// Free names.
    Map(&'static Self),
    Element(&'static Element),
    Any(&'static [Self]),
    /// Whatever somebody else reads.
    Free,
}

/// A list of texts.
pub(crate) const TEXTS: Shape = Shape::List(&Shape::Text);
/// Names and texts.
pub(crate) const TEXT_MAP: Shape =
    Shape::Map(&Shape::Any(&[Shape::Text, Shape::Number, Shape::Boolean]));
/// A length of time.
pub(crate) const DURATION: Shape = Shape::Like("10s");
/// A size in bytes.
pub(crate) const SIZE: Shape = Shape::Like("64 KiB");

/// A key that may be left out.
pub(crate) const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: false,
        about,
    }
}

/// A key that must be there.
pub(crate) const fn required(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: true,
        about,
    }
}

impl Element {
    /// Its keys, for the reader.
    pub(crate) fn keys(&self) -> Keys {
        let names: Vec<&'static str> = self.fields.iter().map(|field| field.name).collect();
        Keys::new(self.name, &names)
    }

    fn id(&self) -> String {
        self.name.replace(' ', "_")
    }
}

/// What a file is, and what its schema is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SchemaOf {
    /// An experiment or a rig.
    Experiment,
    /// A bench.
    Bench,
}

/// The JSON Schema (draft 2020-12) of native files.
#[must_use]
pub fn schema(of: SchemaOf) -> Value {
    let (root, id, title) = match of {
        SchemaOf::Experiment => (&EXPERIMENT, "experiment", "Stillwell experiment or rig"),
        SchemaOf::Bench => (&BENCH, "bench", "Stillwell bench"),
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
        Shape::Whole => json!({ "type": "integer", "minimum": 0 }),
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
