//! Templates of any text: `docs/formats/template.md`.

use std::sync::Arc;

use stillwell_plan::payload::{TemplateError, TemplatePart, TemplatePlan};
use stillwell_text::{Entry, Node, Reader, Span, Value, code};

use crate::element::{Element, Shape, optional, required};
use crate::files::{EntryKind, read_source};
use crate::spec::ReadContext;

mod field;
mod grammar;

use grammar::{Grammar, Mistake, Names};

const LINE: Element = Element::new(
    "template line",
    "A text and its weight.",
    &[
        required(
            "text",
            Shape::Like("{word} {int 1..9}"),
            "The text, with fields.",
        ),
        optional(
            "weight",
            Shape::Whole,
            "Weight among the others; 1 by default.",
        ),
    ],
);

const LINES: Shape = Shape::Any(&[
    Shape::Text,
    Shape::List(&Shape::Any(&[Shape::Text, Shape::Element(&LINE)])),
]);

const TEMPLATE: Element = Element::new(
    "template",
    "Texts with fields; each event uses a random one.",
    &[
        optional("lines", LINES, "Texts; each event uses a random one."),
        optional(
            "define",
            Shape::Map(&LINES),
            "Texts by name, for `{use NAME}`.",
        ),
        optional(
            "end",
            Shape::Text,
            "End of each event; a line feed by default.",
        ),
        optional("file", Shape::Text, "A file with these keys instead."),
    ],
)
.one_of(&["lines", "file"]);

pub(super) const SHAPE: Shape = Shape::Any(&[Shape::Text, Shape::Element(&TEMPLATE)]);

pub(super) fn read(context: &ReadContext<'_>, node: &Node) -> Option<TemplatePlan> {
    let file = node.entry("file");
    let Some(path) = file else {
        return read_here(context.reader, node);
    };
    let map = context.reader.map(node, &TEMPLATE.keys())?;
    let (kind, _) = map.one_of(TEMPLATE.one_of)?;
    for word in ["define", "end"] {
        if let Some(span) = map.key_span(word) {
            map.ignore(word);
            let message = format!("`{word}` belongs in the file that `{kind}` names");
            context
                .reader
                .report(context.reader.error(code::ONE_OF_KEYS, span, message));
        }
    }
    let path = context.existing(path, EntryKind::File)?;
    match read_source(context.files, &path) {
        Ok(source) => {
            let reader = Reader::new(Arc::clone(&source));
            let plan = reader.parse().and_then(|root| read_here(&reader, &root));
            let diagnostics = reader.finish();
            let plan = plan.filter(|_| !diagnostics.has_errors());
            diagnostics
                .into_iter()
                .for_each(|diagnostic| context.reader.report(diagnostic));
            plan
        }
        Err(error) => {
            context
                .reader
                .report(error.at(context.reader.place(node.span)));
            None
        }
    }
}

fn read_here(reader: &Reader, node: &Node) -> Option<TemplatePlan> {
    if matches!(node.value, Value::Scalar { .. }) {
        return assemble(reader, node.span, &[], node, "\n");
    }
    let map = reader.map(node, &TEMPLATE.keys())?;
    let end = map.read_or("end", "\n", |node| reader.text(node))?;
    let definitions = match map.take("define") {
        Some(node) => node.entries().or_else(|| {
            reader.wrong_shape(node, "a map of names and lines");
            None
        })?,
        None => &[],
    };
    map.ignore("file");
    assemble(reader, node.span, definitions, map.required("lines")?, end)
}

fn assemble(
    reader: &Reader,
    span: Span,
    definitions: &[Entry],
    lines: &Node,
    end: &str,
) -> Option<TemplatePlan> {
    let names: Vec<&str> = definitions
        .iter()
        .map(|entry| entry.key.text.as_str())
        .collect();
    let mut grammar = Grammar::new(&names, Names::Definition);
    let parts: Vec<Option<TemplatePart>> = definitions
        .iter()
        .map(|entry| read_lines(reader, &mut grammar, &entry.value))
        .collect();
    let mut grammar = Grammar::new(&names, Names::Line);
    let root = read_lines(reader, &mut grammar, lines)?;
    let held = grammar.held();
    let variables = held.len();
    let mut root = TemplatePart::Sequence(vec![root, TemplatePart::Text(end.to_owned())]);
    if variables > 0 {
        let values = held.into_iter().enumerate();
        root = TemplatePart::With {
            variables: values
                .map(|(variable, name)| (variable, TemplatePart::Use(name)))
                .collect(),
            part: Box::new(root),
        };
    }
    let plan = TemplatePlan {
        root,
        definitions: parts.into_iter().collect::<Option<_>>()?,
        variables,
    };
    if let Err(error) = plan.lengths() {
        let (span, message) = match &error {
            TemplateError::Circle { index } => match definitions.get(*index) {
                Some(entry) => (entry.key.span, format!("`{}` uses itself", entry.key.text)),
                None => (span, error.to_string()),
            },
            _ => (span, error.to_string()),
        };
        reader.report(reader.error(code::BAD_VALUE, span, message));
        return None;
    }
    Some(plan)
}

/// One text, or several of which one is drawn.
fn read_lines(reader: &Reader, grammar: &mut Grammar<'_>, node: &Node) -> Option<TemplatePart> {
    let Value::List(items) = &node.value else {
        return read_text(reader, grammar, node);
    };
    let mut choice = Vec::new();
    for item in items {
        if matches!(item.value, Value::Scalar { .. }) {
            choice.push((1, read_text(reader, grammar, item)));
            continue;
        }
        let map = reader.map(item, &LINE.keys())?;
        let weight = map.read_or("weight", 1, |node| reader.whole(node, 0, u32::MAX))?;
        let text = map.required("text");
        choice.push((
            weight,
            text.and_then(|node| read_text(reader, grammar, node)),
        ));
    }
    if choice.iter().all(|(weight, _)| *weight == 0) {
        reader.report(reader.error(code::BAD_VALUE, node.span, "the list is empty"));
        return None;
    }
    let choice = choice
        .into_iter()
        .map(|(weight, part)| Some((weight, part?)));
    Some(TemplatePart::Choice(choice.collect::<Option<_>>()?))
}

fn read_text(reader: &Reader, grammar: &mut Grammar<'_>, node: &Node) -> Option<TemplatePart> {
    let text = reader.text(node)?;
    match grammar.parse(text) {
        Ok(part) => Some(part),
        Err(mistake) => {
            let span = place(reader, node, text, &mistake);
            let mut error = reader.error(code::BAD_VALUE, span, mistake.message);
            if let Some(help) = mistake.help {
                error = error.help(help);
            }
            reader.report(error);
            None
        }
    }
}

/// Place of a mistake in the file: the same occurrence of the same words;
/// the whole text if YAML writes them differently.
fn place(reader: &Reader, node: &Node, text: &str, mistake: &Mistake) -> Span {
    let words = &text[mistake.start..mistake.end];
    let before = text[..mistake.start].matches(words).count();
    let written = &reader.source().text()[node.span.start..node.span.end];
    let place = written.match_indices(words).nth(before);
    match place {
        Some((at, _)) if !words.is_empty() => Span {
            start: node.span.start + at,
            end: node.span.start + at + words.len(),
        },
        _ => node.span,
    }
}

#[cfg(test)]
mod tests;
