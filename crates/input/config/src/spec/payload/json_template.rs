//! Templates of JSON values.

use std::sync::Arc;

use stillwell_plan::payload::{TEMPLATE_DEPTH_MAX, TemplateError, TemplatePart, TemplatePlan};

use stillwell_text::{
    Diagnostics, Entry, Keys, Node, Reader, Source, Span, Value, code, parse_tagged,
};
use stillwell_units::human::counted;

mod json;

const GENERATORS: [&str; 12] = [
    "!const",
    "!choose",
    "!reference",
    "!weighted",
    "!range",
    "!format",
    "!object",
    "!with",
    "!var",
    "!timestamp",
    "!array",
    "!concat",
];

/// Fields of an object that carry its stamp, if it has one.
const STAMPED: [&str; 5] = ["message", "msg", "log", "body", "text"];

/// Reads the template that `templated_json` names: a line of JSON for each
/// event. A plan that is returned beside errors must not be used.
#[must_use]
pub fn read_template(source: &Arc<Source>) -> (Option<TemplatePlan>, Diagnostics) {
    let reader = Reader::new(Arc::clone(source));
    let plan = match parse_tagged(source) {
        Ok((root, diagnostics)) => {
            diagnostics
                .into_iter()
                .for_each(|diagnostic| reader.report(diagnostic));
            read_root(&reader, &root)
        }
        Err(error) => {
            reader.report(*error);
            None
        }
    };
    (plan, reader.finish())
}

fn read_root(reader: &Reader, root: &Node) -> Option<TemplatePlan> {
    let map = reader.map(root, &Keys::new("template", &["definitions", "generator"]))?;
    let definitions = match map.take("definitions") {
        Some(node) => node.entries().or_else(|| {
            reader.wrong_shape(node, "a map of names and generators");
            None
        })?,
        None => &[],
    };
    let mut template = Template {
        reader,
        definitions,
        variables: 0,
        scope: Vec::new(),
    };
    let parts: Vec<Option<TemplatePart>> = definitions
        .iter()
        .map(|entry| template.part(&entry.value, 0))
        .collect();
    let generator = map.required("generator")?;
    let root = template.root(generator, 0)?;
    let plan = TemplatePlan {
        root: TemplatePart::Sequence(vec![root, TemplatePart::Text("\n".to_owned())]),
        definitions: parts.into_iter().collect::<Option<_>>()?,
        variables: template.variables,
    };
    if let Err(error) = plan.lengths() {
        report(reader, generator.span, definitions, &error);
        return None;
    }
    Some(plan)
}

fn report(reader: &Reader, whole: Span, definitions: &[Entry], error: &TemplateError) {
    let (span, message) = match error {
        TemplateError::Circle { index } => match definitions.get(*index) {
            Some(entry) => (
                entry.key.span,
                format!("`{}` refers to itself", entry.key.text),
            ),
            None => (whole, error.to_string()),
        },
        _ => (whole, error.to_string()),
    };
    reader.report(reader.error(code::BAD_VALUE, span, message));
}

struct Template<'r, 'n> {
    reader: &'r Reader,
    definitions: &'n [Entry],
    variables: usize,
    /// Names that hold, and their variables; the last of a name is meant.
    scope: Vec<(&'n str, usize)>,
}

impl<'n> Template<'_, 'n> {
    /// The outermost generator, with room for a stamp in its message.
    fn root(&mut self, node: &'n Node, depth: usize) -> Option<TemplatePart> {
        match self.tag(node)? {
            ("!with", content) => self.with(content, depth, true),
            ("!object", content) => {
                let stamped = STAMPED.iter().find(|name| content.entry(name).is_some());
                self.object(content, depth, stamped.copied())
            }
            _ => self.part(node, depth),
        }
    }

    fn part(&mut self, node: &'n Node, depth: usize) -> Option<TemplatePart> {
        if depth > TEMPLATE_DEPTH_MAX {
            let message = format!("more than {TEMPLATE_DEPTH_MAX} generators inside each other");
            self.reader
                .report(self.reader.error(code::OUT_OF_RANGE, node.span, message));
            return None;
        }
        let (tag, content) = self.tag(node)?;
        match tag {
            "!const" => Some(TemplatePart::Text(json::text(content))),
            "!choose" => {
                let values = self.filled_list(content)?.iter();
                let parts = values.map(|value| (1, TemplatePart::Text(json::text(value))));
                Some(TemplatePart::Choice(parts.collect()))
            }
            "!reference" => self.reference(content),
            "!weighted" => self.weighted(content, depth),
            "!range" => self.range(content),
            "!format" => self.format(content, depth),
            "!object" => self.object(content, depth, None),
            "!with" => self.with(content, depth, false),
            "!var" => self.variable(content),
            "!timestamp" => Some(TemplatePart::Sequence(vec![
                TemplatePart::Text("\"".to_owned()),
                TemplatePart::Clock,
                TemplatePart::Text("\"".to_owned()),
            ])),
            "!array" => self.array(content, depth),
            _ => {
                let parts = self.reader.list(content)?.iter();
                let parts: Vec<_> = parts.map(|part| self.part(part, depth + 1)).collect();
                Some(TemplatePart::Join(
                    parts.into_iter().collect::<Option<_>>()?,
                ))
            }
        }
    }

    /// The tag of a generator, and its value.
    fn tag(&self, node: &'n Node) -> Option<(&'n str, &'n Node)> {
        let entry = match node.entries() {
            Some([entry]) if entry.key.text.starts_with('!') => entry,
            _ => {
                self.reader
                    .wrong_shape(node, "a generator such as `!const 1`");
                return None;
            }
        };
        let tag = entry.key.text.as_str();
        if !GENERATORS.contains(&tag) {
            let words = GENERATORS.into_iter();
            self.reader
                .unknown_word(entry.key.span, "generator", tag, words);
            return None;
        }
        Some((tag, &entry.value))
    }

    fn filled_list(&self, node: &'n Node) -> Option<&'n [Node]> {
        let items = self.reader.list(node)?;
        if items.is_empty() {
            self.wrong(node.span, "the list is empty");
            return None;
        }
        Some(items)
    }

    fn wrong(&self, span: Span, message: impl Into<String>) {
        self.reader
            .report(self.reader.error(code::BAD_VALUE, span, message));
    }

    fn reference(&self, node: &'n Node) -> Option<TemplatePart> {
        let name = self.reader.text(node)?;
        let mut names = self.definitions.iter().map(|entry| entry.key.text.as_str());
        if let Some(index) = names.position(|known| known == name) {
            return Some(TemplatePart::Use(index));
        }
        let names = self.definitions.iter().map(|entry| entry.key.text.as_str());
        self.reader
            .unknown_word(node.span, "definition", name, names);
        None
    }

    fn variable(&self, node: &'n Node) -> Option<TemplatePart> {
        let name = self.reader.text(node)?;
        let mut scope = self.scope.iter().rev();
        if let Some((_, index)) = scope.find(|(known, _)| *known == name) {
            return Some(TemplatePart::Variable(*index));
        }
        let names = self.scope.iter().map(|(known, _)| *known);
        self.reader.unknown_word(node.span, "variable", name, names);
        None
    }

    fn weighted(&mut self, node: &'n Node, depth: usize) -> Option<TemplatePart> {
        let mut parts = Vec::new();
        for item in self.filled_list(node)? {
            let map = self
                .reader
                .map(item, &Keys::new("weighted value", &["weight", "value"]))?;
            let weight = map.required("weight");
            let weight = weight.and_then(|node| self.reader.whole(node, 0, u32::MAX));
            let value = map.required("value");
            let value = value.and_then(|node| self.part(node, depth + 1));
            parts.push((weight?, value?));
        }
        if parts.iter().all(|(weight, _)| *weight == 0) {
            self.wrong(node.span, "every weight is 0");
            return None;
        }
        Some(TemplatePart::Choice(parts))
    }

    fn range(&self, node: &'n Node) -> Option<TemplatePart> {
        let map = self
            .reader
            .map(node, &Keys::new("range", &["min", "max"]))?;
        let read = |node| self.reader.whole(node, i64::MIN, i64::MAX);
        let (low, high) = (map.required("min"), map.required("max"));
        let (low, high) = (low.and_then(read), high.and_then(read));
        let (low, high) = (low?, high?);
        if low > high {
            self.wrong(node.span, format!("{low} is more than {high}"));
            return None;
        }
        let digits = 1;
        Some(TemplatePart::Integer { low, high, digits })
    }

    fn format(&mut self, node: &'n Node, depth: usize) -> Option<TemplatePart> {
        let map = self
            .reader
            .map(node, &Keys::new("format", &["template", "args"]))?;
        let (text, arguments) = (map.required("template"), map.required("args"));
        let (text, arguments) = (text?, self.reader.list(arguments?)?);
        let pieces: Vec<&str> = self.reader.text(text)?.split("{}").collect();
        if pieces.len() != arguments.len() + 1 {
            let (places, values) = (pieces.len() - 1, arguments.len());
            self.wrong(
                text.span,
                format!(
                    "{} `{{}}` for {}",
                    counted(places, "place", "places"),
                    counted(values, "argument", "arguments")
                ),
            );
            return None;
        }
        let mut parts = Vec::new();
        let mut arguments = arguments.iter();
        for (index, piece) in pieces.iter().enumerate() {
            let quote = if index == 0 { "\"" } else { "" };
            parts.push(TemplatePart::Text(format!(
                "{quote}{}",
                json::escaped(piece)
            )));
            if let Some(argument) = arguments.next() {
                let part = self.part(argument, depth + 1)?;
                parts.push(TemplatePart::Inside(Box::new(part)));
            }
        }
        parts.push(TemplatePart::Text("\"".to_owned()));
        Some(TemplatePart::Sequence(parts))
    }

    /// Fields in the order of their names.
    fn object(
        &mut self,
        node: &'n Node,
        depth: usize,
        stamped: Option<&str>,
    ) -> Option<TemplatePart> {
        let Some(entries) = node.entries() else {
            self.reader
                .wrong_shape(node, "a map of names and generators");
            return None;
        };
        let mut entries: Vec<&Entry> = entries.iter().collect();
        entries.sort_by(|left, right| left.key.text.cmp(&right.key.text));
        let mut parts = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let before = if index == 0 { "{" } else { "," };
            let name = json::escaped(&entry.key.text);
            parts.push(TemplatePart::Text(format!("{before}\"{name}\":")));
            let value = self.part(&entry.value, depth + 1);
            parts.push(if stamped == Some(&entry.key.text) {
                with_stamp(value?)
            } else {
                value?
            });
        }
        let close = if parts.is_empty() { "{}" } else { "}" };
        parts.push(TemplatePart::Text(close.to_owned()));
        Some(TemplatePart::Sequence(parts))
    }

    fn with(&mut self, node: &'n Node, depth: usize, is_root: bool) -> Option<TemplatePart> {
        let map = self.reader.map(node, &Keys::new("with", &["bind", "in"]))?;
        let bind = map.required("bind")?;
        let Some(entries) = bind.entries() else {
            self.reader
                .wrong_shape(bind, "a map of names and generators");
            return None;
        };
        let mut entries: Vec<&Entry> = entries.iter().collect();
        entries.sort_by(|left, right| left.key.text.cmp(&right.key.text));
        let (mut variables, mut names) = (Vec::new(), Vec::new());
        for entry in entries {
            let part = self.part(&entry.value, depth + 1)?;
            variables.push((self.variables, part));
            names.push((entry.key.text.as_str(), self.variables));
            self.variables += 1;
        }
        let outer = self.scope.len();
        self.scope.extend(names);
        let content = map.required("in");
        let part = content.and_then(|node| {
            if is_root {
                self.root(node, depth + 1)
            } else {
                self.part(node, depth + 1)
            }
        });
        self.scope.truncate(outer);
        Some(TemplatePart::With {
            variables,
            part: Box::new(part?),
        })
    }

    fn array(&mut self, node: &'n Node, depth: usize) -> Option<TemplatePart> {
        let map = self
            .reader
            .map(node, &Keys::new("array", &["length", "element"]))?;
        let lengths = map.required("length").and_then(|node| self.lengths(node));
        let element = map.required("element");
        let element = element.and_then(|node| self.part(node, depth + 1));
        let (lengths, element) = (lengths?, element?);
        let lists = lengths.into_iter().map(|(low, high)| {
            let items = TemplatePart::Repeat {
                low,
                high,
                separator: ",".to_owned(),
                part: Box::new(element.clone()),
            };
            (1, items)
        });
        Some(TemplatePart::Sequence(vec![
            TemplatePart::Text("[".to_owned()),
            TemplatePart::Choice(lists.collect()),
            TemplatePart::Text("]".to_owned()),
        ]))
    }

    /// The ranges out of one of which a length is drawn.
    fn lengths(&self, node: &'n Node) -> Option<Vec<(u32, u32)>> {
        let whole = |node| self.reader.whole(node, 0, u32::MAX);
        match &node.value {
            Value::List(_) => {
                let items = self.filled_list(node)?.iter();
                items
                    .map(|item| whole(item).map(|count| (count, count)))
                    .collect()
            }
            Value::Map(_) => {
                let map = self
                    .reader
                    .map(node, &Keys::new("length", &["min", "max"]))?;
                let (low, high) = (map.required("min"), map.required("max"));
                let (low, high) = (low.and_then(whole), high.and_then(whole));
                let (low, high) = (low?, high?);
                if low > high {
                    self.wrong(node.span, format!("{low} is more than {high}"));
                    return None;
                }
                Some(vec![(low, high)])
            }
            Value::Null | Value::Scalar { .. } => whole(node).map(|count| vec![(count, count)]),
        }
    }
}

/// A JSON text with room for a stamp at its beginning; anything else as it is.
fn with_stamp(part: TemplatePart) -> TemplatePart {
    let (first, rest) = match part {
        TemplatePart::Text(text) => (text, Vec::new()),
        TemplatePart::Sequence(mut parts) => match parts.first_mut() {
            Some(TemplatePart::Text(text)) => {
                let text = std::mem::take(text);
                (text, parts.split_off(1))
            }
            _ => return TemplatePart::Sequence(parts),
        },
        other => return other,
    };
    let Some(inner) = first.strip_prefix('"') else {
        let mut parts = vec![TemplatePart::Text(first)];
        parts.extend(rest);
        return TemplatePart::Sequence(parts);
    };
    let mut parts = vec![
        TemplatePart::Text("\"".to_owned()),
        TemplatePart::Stamp,
        TemplatePart::Text(inner.to_owned()),
    ];
    parts.extend(rest);
    TemplatePart::Sequence(parts)
}

#[cfg(test)]
mod tests;
