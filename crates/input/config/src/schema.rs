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
    let mut definitions = Definitions {
        elements: BTreeMap::new(),
        has_matrix: root.fields.iter().any(|field| field.name == "matrix"),
    };
    definitions.define(root);
    let definitions: Map<String, Value> = definitions.elements.into_iter().collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("stillwell/{id}/v1"),
        "title": title,
        "$ref": format!("#/$defs/{}", root.id()),
        "$defs": definitions,
    })
}

/// A text with a parameter of the matrix, which is replaced before the value is read.
const PARAMETER: &str = r"\{matrix\.[^{}]+\}";

/// Definitions of the elements of a file.
struct Definitions {
    elements: BTreeMap<String, Value>,
    /// True if a parameter may be in place of a value.
    has_matrix: bool,
}

impl Definitions {
    fn define(&mut self, element: &Element) {
        if self.elements.contains_key(&element.id()) {
            return;
        }
        self.elements.insert(element.id(), Value::Null);
        let mut properties = Map::new();
        for field in element.fields {
            let mut value = self.describe(&field.shape);
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
        self.elements.insert(element.id(), definition);
    }

    /// Describes a value, or a parameter in its place.
    fn describe(&mut self, shape: &Shape) -> Value {
        let choices: &[Shape] = match shape {
            Shape::Any(choices) => choices,
            single => std::slice::from_ref(single),
        };
        let described = choices.iter().map(|choice| self.describe_value(choice));
        let mut values: Vec<Value> = described.collect();
        if self.has_matrix && refuses_parameters(choices) {
            values.push(json!({ "type": "string", "pattern": PARAMETER }));
        }
        match values.len() {
            1 => values.remove(0),
            _ => json!({ "anyOf": values }),
        }
    }

    fn describe_value(&mut self, shape: &Shape) -> Value {
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
            Shape::Null => json!({ "type": "null" }),
            Shape::Free => json!({}),
            Shape::Like(example) => json!({ "type": "string", "examples": [example] }),
            Shape::Words(words) => json!({ "enum": words }),
            Shape::List(item) => json!({ "type": "array", "items": self.describe(item) }),
            Shape::Map(value) => json!({
                "type": "object",
                "additionalProperties": self.describe(value),
            }),
            Shape::Element(element) => {
                self.define(element);
                json!({ "$ref": format!("#/$defs/{}", element.id()) })
            }
            Shape::Any(_) => self.describe(shape),
        }
    }
}

/// Returns true if a value of these shapes can come from a parameter, and none of them is any text.
fn refuses_parameters(shapes: &[Shape]) -> bool {
    let is_scalar = |shape: &Shape| {
        matches!(
            shape,
            Shape::Boolean | Shape::Number | Shape::Whole | Shape::Words(_)
        )
    };
    let is_any_text = |shape: &Shape| matches!(shape, Shape::Free | Shape::Like(_) | Shape::Text);
    shapes.iter().any(is_scalar) && !shapes.iter().any(is_any_text)
}
