//! `{matrix.NAME}` in the rest of a file.

use std::sync::Arc;

use stillwell_text::{
    Diagnostic, Diagnostics, Entry, Node, Place, Reader, Source, Span, Value, code,
};

use super::{Cell, Matrix, Setting, list};

/// Beginning of a use of a parameter.
pub(super) const OPENING: &str = "{matrix.";

/// The text of `{matrix.NAME}` without braces, as YAML reads it without quotes: a map of one key.
const BARE: &str = "matrix.";

/// A file with the values of one cell.
#[derive(Debug)]
pub(crate) struct Filled {
    pub(crate) root: Node,
    puts: Puts,
}

#[derive(Debug, Default)]
struct Puts {
    /// Places with values.
    done: Vec<(Span, Setting)>,
    /// Places with an unknown parameter, which was reported.
    holes: Vec<Span>,
}

/// Reports uses of parameters that there are not, and parameters without use.
pub(crate) fn check_uses(reader: &Reader, root: &Node, matrix: Option<&Matrix>) {
    let parameters = matrix.map_or(&[][..], |matrix| &matrix.parameters);
    let names: Vec<&str> = parameters.iter().map(|key| key.text.as_str()).collect();
    let mut used = Vec::new();
    let mut is_right = true;
    for_each_use(root, true, &mut |diagnostics| {
        let name = diagnostics.name;
        if diagnostics.in_key {
            let message = format!("`{{matrix.{name}}}` is in a key");
            let error = reader.error(code::MATRIX_PARAMETER, diagnostics.span, message);
            reader.report(error.label("parameters are only replaced in values"));
            is_right = false;
        } else if names.contains(&name) {
            used.push(name.to_owned());
        } else if matrix.is_some() {
            let span = exact(reader.source(), diagnostics.span, name);
            list::report_unknown(reader, span, name, &names);
            is_right = false;
        } else {
            let span = exact(reader.source(), diagnostics.span, name);
            let message = format!("`{{matrix.{name}}}` is used, but the file has no `matrix`");
            let error = reader.error(code::MATRIX_PARAMETER, span, message);
            reader.report(error.help(format!("e.g. `matrix: {{{name}: [1, 2]}}`")));
        }
    });
    for key in parameters {
        // A use that is wrong may be the one that is missing.
        if is_right && !used.contains(&key.text) {
            let message = format!("the parameter `{}` is not used", key.text);
            let warning = reader.warning(code::MATRIX_PARAMETER, key.span, message);
            let use_it = format!(
                "write `\"{{matrix.{}}}\"` where its value belongs",
                key.text
            );
            reader.report(
                warning
                    .label("the same experiment would run several times")
                    .help(use_it),
            );
        }
    }
}

/// `root` with the values of `cell`.
pub(crate) fn fill(root: &Node, cell: &Cell) -> Filled {
    let mut puts = Puts::default();
    let mut root = root.clone();
    if let Value::Map(entries) = &mut root.value {
        for entry in entries.iter_mut().filter(|entry| !is_matrix(entry)) {
            puts.fill(&mut entry.value, cell);
        }
    }
    Filled { root, puts }
}

impl Puts {
    fn fill(&mut self, node: &mut Node, cell: &Cell) {
        if let Some((name, span)) = bare_use(node) {
            let text = self.put(name, span, cell);
            if let Some(text) = text {
                let quoted = false;
                let value = Value::Scalar { text, quoted };
                *node = Node { span, value };
            }
            return;
        }
        match &mut node.value {
            Value::Null => {}
            Value::Scalar { text, .. } => {
                let mut whole = String::new();
                let mut rest = text.as_str();
                while let Some((before, name, after)) = next_use(rest) {
                    whole += before;
                    match self.put(name, node.span, cell) {
                        Some(value) => whole += &value,
                        None => whole += &format!("{OPENING}{name}}}"),
                    }
                    rest = after;
                }
                whole += rest;
                *text = whole;
            }
            Value::List(items) => {
                for item in items {
                    self.fill(item, cell);
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    self.fill(&mut entry.value, cell);
                }
            }
        }
    }

    /// The value of `name`, which is put at `span`.
    fn put(&mut self, name: &str, span: Span, cell: &Cell) -> Option<String> {
        let mut settings = cell.settings.iter();
        let Some(setting) = settings.find(|setting| setting.parameter == name) else {
            self.holes.push(span);
            return None;
        };
        self.done.push((span, setting.clone()));
        Some(setting.text.clone())
    }
}

impl Filled {
    /// Returns the diagnostics of `reader`. A diagnostic of a value names its parameter;
    /// diagnostics of
    /// places without a value are left out.
    pub(crate) fn explain(&self, reader: Reader) -> Diagnostics {
        let source = Arc::clone(reader.source());
        let explained = reader.finish().into_iter().filter_map(|diagnostic| {
            let Some(span) = diagnostic.place.as_ref().map(|place| place.span) else {
                return Some(diagnostic);
            };
            if self.puts.holes.iter().any(|hole| overlap(*hole, span)) {
                return None;
            }
            let puts = self.puts.done.iter();
            let puts = puts.filter(|(put, _)| overlap(*put, span));
            Some(puts.fold(diagnostic, |diagnostic, (_, setting)| {
                because(diagnostic, &source, setting)
            }))
        });
        explained.collect()
    }
}

fn because(diagnostic: Diagnostic, source: &Arc<Source>, setting: &Setting) -> Diagnostic {
    let place = Place::new(source, setting.span);
    let is_reported = |label: &String| label.starts_with(&format!("`{}` is", setting.parameter));
    if diagnostic
        .context
        .iter()
        .any(|(_, label)| is_reported(label))
    {
        return diagnostic;
    }
    let label = format!("`{}` is `{}` here", setting.parameter, setting.text);
    diagnostic.context(place, label)
}

const fn overlap(left: Span, right: Span) -> bool {
    left.start < right.end && right.start < left.end
}

/// One use of a parameter.
struct Use<'n> {
    name: &'n str,
    /// Of the whole value or key.
    span: Span,
    in_key: bool,
}

fn for_each_use<'n>(node: &'n Node, is_root: bool, visit: &mut dyn FnMut(Use<'n>)) {
    if let Some((name, span)) = bare_use(node) {
        let in_key = false;
        visit(Use { name, span, in_key });
        return;
    }
    match &node.value {
        Value::Null => {}
        Value::Scalar { text, .. } => uses_in(text, node.span, false, visit),
        Value::List(items) => {
            for item in items {
                for_each_use(item, false, visit);
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                uses_in(&entry.key.text, entry.key.span, true, visit);
                if !(is_root && is_matrix(entry)) {
                    for_each_use(&entry.value, false, visit);
                }
            }
        }
    }
}

fn uses_in<'n>(text: &'n str, span: Span, in_key: bool, visit: &mut dyn FnMut(Use<'n>)) {
    let mut rest = text;
    while let Some((_, name, after)) = next_use(rest) {
        visit(Use { name, span, in_key });
        rest = after;
    }
}

fn is_matrix(entry: &Entry) -> bool {
    entry.key.text == "matrix"
}

/// `NAME` of a value that is `{matrix.NAME}` without quotes, and its place.
fn bare_use(node: &Node) -> Option<(&str, Span)> {
    let [entry] = node.entries()? else {
        return None;
    };
    let is_empty = matches!(entry.value.value, Value::Null);
    let name = entry.key.text.strip_prefix(BARE).filter(|_| is_empty)?;
    Some((name, entry.key.span))
}

/// Text before the next use, its name, and the text after it.
fn next_use(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find(OPENING)?;
    let inside = &text[start + OPENING.len()..];
    let end = inside.find('}')?;
    Some((&text[..start], &inside[..end], &inside[end + 1..]))
}

/// Returns the span of the use of `name` within `span`, if the text has it literally.
fn exact(source: &Source, span: Span, name: &str) -> Span {
    let span = source.clamp(span);
    let written = format!("matrix.{name}");
    match source.text()[span.start..span.end].find(&written) {
        Some(at) => Span {
            start: span.start + at,
            end: span.start + at + written.len(),
        },
        None => span,
    }
}
