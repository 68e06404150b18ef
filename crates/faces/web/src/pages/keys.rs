//! Keys of experiment files, from their schema.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};
use serde_json::{Map, Value};
use stillwell_config::{SchemaOf, schema};

/// The help, which never changes.
static HELP: LazyLock<String> =
    LazyLock::new(|| render(&schema(SchemaOf::Experiment)).into_string());

/// Returns the keys with their descriptions.
pub(super) fn help() -> Markup {
    PreEscaped(HELP.clone())
}

fn render(schema: &Value) -> Markup {
    let definitions = schema.get("$defs").and_then(Value::as_object);
    let root = schema.get("$ref").and_then(Value::as_str).and_then(name_of);
    html! {
        aside class="keys" aria-label="Keys" {
            h2 { "Keys" }
            label class="filter" hidden { "Filter " input type="search" data-filter=".keys dt" data-with-next; }
            @if let (Some(definitions), Some(root)) = (definitions, root) {
                @if let Some(element) = definitions.get(root) { (element_keys(element)) }
                @for (name, element) in definitions {
                    @if name != root {
                        details id={ "key-" (name) } {
                            summary { (name) }
                            p class="dim" { (described(element)) }
                            (element_keys(element))
                        }
                    }
                }
            }
        }
    }
}

fn element_keys(element: &Value) -> Markup {
    let empty = Map::new();
    let properties = element
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let required = element.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|all| all.iter().any(|known| known == name));
    html! {
        dl {
            @for (name, value) in properties {
                dt {
                    code { (name) }
                    @if is_required(name) { " " span class="dim" { "required" } }
                    @for element in elements(value) { " " a href={ "#key-" (element) } { (element) } }
                }
                dd {
                    (described(value))
                    @if let Some(words) = value.get("enum").and_then(Value::as_array) {
                        div class="dim" { "one of: " (words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")) }
                    }
                    @if let Some(example) = value.get("examples").and_then(|all| all.get(0)).and_then(Value::as_str) {
                        div class="dim" { "such as " code { (example) } }
                    }
                }
            }
        }
    }
}

/// Returns a description; text between backticks is code.
fn described(value: &Value) -> Markup {
    let text = value.get("description").and_then(Value::as_str);
    let parts = text.unwrap_or_default().split('`').enumerate();
    html! {
        @for (index, part) in parts {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Returns the names of the elements that a value may hold, each once.
fn elements(value: &Value) -> Vec<&str> {
    let mut names = Vec::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(fields) => {
                let name = fields.get("$ref").and_then(Value::as_str).and_then(name_of);
                names.extend(name);
                left.extend(fields.values());
            }
            Value::Array(values) => left.extend(values),
            _ => {}
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn name_of(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/$defs/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_leads_to_an_element_leads_to_its_help() {
        let page = help().into_string();
        let mut links = page.split("href=\"#").skip(1).peekable();
        assert!(links.peek().is_some());
        for link in links {
            let id = link.split('"').next().unwrap();
            assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
        }
        assert!(page.contains("<code>baseline</code>") || page.contains("<code>variants</code>"));
    }
}
