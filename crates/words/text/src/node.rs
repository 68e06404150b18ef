//! YAML as a tree in which everything knows its place.

use std::collections::HashMap;
use std::sync::Arc;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, StrInput, Tag};

use crate::code;
use crate::diagnostic::Diagnostic;
use crate::source::{Place, Source, Span};

/// Nodes that one file may hold, aliases counted as often as they are used: a
/// few lines of aliases of aliases would otherwise fill the memory.
const NODES_MAX: usize = 200_000;

/// Memory that the values of one file may take, counted in the same way.
const MIB_MAX: usize = 64;

/// One value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The place for a message about the whole value: a scalar itself, the key or first line of a
    /// collection.
    pub span: Span,
    /// The value.
    pub value: Value,
}

/// The value at a place.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// A text, as it reads after YAML's own escapes.
    Scalar {
        /// The text.
        text: String,
        /// True for a quoted scalar or a block, which is never a number.
        quoted: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file. Keys are unique.
    Map(Vec<Entry>),
}

/// One key of a map and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// Its value.
    pub value: Node,
}

/// A key and its place.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key.
    pub text: String,
    /// Its place.
    pub span: Span,
}

impl Node {
    /// Returns the name of the shape for messages.
    #[must_use]
    pub fn shape(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Scalar { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// The entries, if it is a map.
    #[must_use]
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            Value::Null | Value::Scalar { .. } | Value::List(_) => None,
        }
    }

    /// The value of `key`, if it is a map that has it.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Self> {
        let entry = self.entries()?.iter().find(|entry| entry.key.text == key)?;
        Some(&entry.value)
    }
}

/// The tree of `source`: one document, and what was wrong with it besides. An
/// empty text is [`Value::Null`].
///
/// # Errors
/// A [`Diagnostic`] with the place where the text stops being YAML.
pub fn parse(source: &Arc<Source>) -> Result<(Node, Vec<Diagnostic>), Box<Diagnostic>> {
    parse_with(source, Dialect::Plain)
}

/// As [`parse`], with local tags kept: `!tag value` becomes a map of one key,
/// `!tag`, and the value.
///
/// # Errors
/// As [`parse`].
pub fn parse_tagged(source: &Arc<Source>) -> Result<(Node, Vec<Diagnostic>), Box<Diagnostic>> {
    parse_with(source, Dialect::Tagged)
}

/// As [`parse`], for files of programs that accept a key several times in one map: the last one counts, with a warning.
///
/// # Errors
/// As [`parse`].
pub fn parse_repeated(source: &Arc<Source>) -> Result<(Node, Vec<Diagnostic>), Box<Diagnostic>> {
    parse_with(source, Dialect::Repeated)
}

/// Content of a file besides plain YAML.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Dialect {
    /// Nothing.
    Plain,
    /// Local tags.
    Tagged,
    /// Repeated keys.
    Repeated,
}

fn parse_with(
    source: &Arc<Source>,
    dialect: Dialect,
) -> Result<(Node, Vec<Diagnostic>), Box<Diagnostic>> {
    let options = granit_parser::options! { emit_comments: false };
    let parser = Parser::new_from_str_with_options(source.text(), options);
    let mut tree = Tree::new(source, dialect);
    tree.build(parser)?;
    let root = tree.root.unwrap_or_else(|| Node {
        span: Span::default(),
        value: Value::Null,
    });
    Ok((root, tree.diagnostics))
}

/// Size of a value with all values inside.
#[derive(Clone, Copy)]
struct Size {
    nodes: usize,
    /// Bytes of texts.
    text: usize,
}

impl Size {
    const ZERO: Self = Self { nodes: 0, text: 0 };

    /// Returns the size of one node with `text` bytes.
    const fn node(text: usize) -> Self {
        Self { nodes: 1, text }
    }

    const fn plus(self, more: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_add(more.nodes),
            text: self.text.saturating_add(more.text),
        }
    }

    const fn minus(self, less: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_sub(less.nodes),
            text: self.text.saturating_sub(less.text),
        }
    }

    /// Returns the bytes that it takes in memory.
    const fn bytes(self) -> usize {
        let nodes = self.nodes.saturating_mul(size_of::<Node>());
        nodes.saturating_add(self.text)
    }
}

/// A tree while it grows.
struct Tree<'s> {
    source: &'s Arc<Source>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, Size)>,
    dialect: Dialect,
    /// Size of all values so far.
    size: Size,
    /// Bytes of the copies in `anchors`.
    copies: usize,
    root: Option<Node>,
    diagnostics: Vec<Diagnostic>,
}

/// A collection whose end has not come yet.
struct Open {
    anchor: usize,
    /// Its local tag, if tags are kept.
    tag: Option<String>,
    span: Span,
    size_before: Size,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        /// Places of the entries by key, once there are many.
        places: HashMap<String, usize>,
        key: Option<Key>,
    },
}

impl<'s> Tree<'s> {
    fn new(source: &'s Arc<Source>, dialect: Dialect) -> Self {
        Self {
            source,
            open: Vec::new(),
            anchors: HashMap::new(),
            dialect,
            size: Size::ZERO,
            copies: 0,
            root: None,
            diagnostics: Vec::new(),
        }
    }

    fn build<'t>(&mut self, parser: Parser<'t, StrInput<'t>>) -> Result<(), Box<Diagnostic>> {
        for next in parser {
            let (event, span) = next.map_err(|error| Box::new(self.syntax_error(&error)))?;
            let span = Span {
                start: span.start.byte_offset().unwrap_or(0),
                end: span.end.byte_offset().unwrap_or(0),
            };
            match event {
                Event::DocumentStart(..) if self.root.is_some() => {
                    return Err(Box::new(
                        self.error(span, "a second document begins in the same file"),
                    ));
                }
                Event::Scalar(text, style, anchor, tag) => {
                    let tag = self.tag(tag.as_deref());
                    let size = Size::node(text.len() + tag.as_ref().map_or(0, String::len));
                    let value = scalar(text.into_owned(), style);
                    let node = self.tagged(tag, span.start, Node { span, value });
                    self.place(node, anchor, size, size)?;
                }
                Event::SequenceStart(_, anchor, tag) => {
                    let tag = self.tag(tag.as_deref());
                    self.open(anchor, tag, span, Content::List(Vec::new()));
                }
                Event::MappingStart(_, anchor, tag) => {
                    let content = Content::Map {
                        entries: Vec::new(),
                        places: HashMap::new(),
                        key: None,
                    };
                    let tag = self.tag(tag.as_deref());
                    self.open(anchor, tag, span, content);
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
                Event::Alias(anchor) => {
                    let Some((node, size)) = self.anchors.get(&anchor) else {
                        return Err(Box::new(
                            self.error(span, "an alias of the value that contains it"),
                        ));
                    };
                    // Checked before the copy is made.
                    self.check_size(span, *size, 0)?;
                    let (node, size) = (node.clone(), *size);
                    self.place(node, 0, size, size)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `!name`, if it is a local tag and tags are kept.
    fn tag(&self, tag: Option<&Tag>) -> Option<String> {
        let tag = tag.filter(|tag| self.dialect == Dialect::Tagged && tag.handle() == "!")?;
        Some(format!("!{}", tag.suffix()))
    }

    fn open(&mut self, anchor: usize, tag: Option<String>, span: Span, content: Content) {
        self.open.push(Open {
            anchor,
            tag,
            span,
            size_before: self.size,
            content,
        });
    }

    fn close(&mut self, end: Span) -> Result<(), Box<Diagnostic>> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let whole = Span {
            start: open.span.start,
            end: end.end,
        };
        let span = self.source.first_line(whole);
        let value = match open.content {
            Content::List(nodes) => Value::List(nodes),
            Content::Map { entries, .. } => Value::Map(entries),
        };
        // The inner values were counted when they came.
        let uncounted = Size::node(open.tag.as_ref().map_or(0, String::len));
        let size = self.size.minus(open.size_before).plus(uncounted);
        let node = self.tagged(open.tag, whole.start, Node { span, value });
        self.place(node, open.anchor, size, uncounted)
    }

    /// Returns an error at `span` if the file has no room for values of this size and copies of so many bytes.
    fn check_size(&self, span: Span, added: Size, copied: usize) -> Result<(), Box<Diagnostic>> {
        let size = self.size.plus(added);
        let bytes = size.bytes().saturating_add(self.copies);
        let message = if size.nodes > NODES_MAX {
            format!("more than {NODES_MAX} values, aliases included")
        } else if bytes.saturating_add(copied) > MIB_MAX << 20 {
            format!("more than {MIB_MAX} MiB of values, aliases included")
        } else {
            return Ok(());
        };
        Err(Box::new(self.error(span, message)))
    }

    /// Puts `node`, whose size is `size` and of which `uncounted` is new, where it belongs.
    fn place(
        &mut self,
        node: Node,
        anchor: usize,
        size: Size,
        uncounted: Size,
    ) -> Result<(), Box<Diagnostic>> {
        let copied = if anchor > 0 { size.bytes() } else { 0 };
        self.check_size(node.span, uncounted, copied)?;
        self.size = self.size.plus(uncounted);
        self.copies = self.copies.saturating_add(copied);
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(list)) => list.push(node),
            Some(Content::Map {
                entries,
                places,
                key,
            }) => match key.take() {
                None => *key = Some(key_of(node, self.source, &mut self.diagnostics)),
                Some(key) => {
                    let entry = entry(key, node);
                    let earlier = push_entry((entries, places), entry);
                    let earlier = earlier.map(|(kept, second)| {
                        repeated_key((kept, second), self.source, self.dialect)
                    });
                    self.diagnostics.extend(earlier);
                }
            },
        }
        Ok(())
    }

    /// `node`, whose content begins at `start`, as the value of its tag, if it has one.
    fn tagged(&self, tag: Option<String>, start: usize, node: Node) -> Node {
        let Some(text) = tag else {
            return node;
        };
        let key = Key {
            span: self.tag_span(&text, start).unwrap_or(node.span),
            text,
        };
        Node {
            span: node.span,
            value: Value::Map(vec![Entry { key, value: node }]),
        }
    }

    /// Finds the tag whose content begins at `start`: before it, perhaps in a line above.
    fn tag_span(&self, tag: &str, start: usize) -> Option<Span> {
        let text = self.source.text();
        let start = if text.get(start..)?.starts_with(tag) {
            start
        } else {
            let before = text.get(..start)?;
            let at = before.rfind(tag)?;
            let between = before.get(at + tag.len()..)?;
            // Only a comment or an anchor may be between the two.
            let is_bare =
                |line: &str| line.trim().is_empty() || line.trim().starts_with(['#', '&']);
            between.lines().all(is_bare).then_some(at)?
        };
        Some(Span {
            start,
            end: start + tag.len(),
        })
    }

    fn syntax_error(&self, error: &granit_parser::ScanError) -> Diagnostic {
        let byte = error.marker().byte_offset().unwrap_or(0);
        let span = Span {
            start: byte,
            end: byte,
        };
        // Some errors have the place where a scalar begins, and the tab is in a line below.
        let lines = match error.kind() {
            ErrorKind::TabAtBlockScalarStart | ErrorKind::TabInPlainScalar => usize::MAX,
            ErrorKind::CommentInterceptedScalar => 2,
            _ => 1,
        };
        if let Some(span) = self.tab_indent(byte, lines) {
            let tab = self.error(span, "a tab indents this line");
            return tab.label("YAML permits spaces only");
        }
        self.error(span, "this is not YAML").label(error.info())
    }

    /// Returns the first tab that indents a line with content, in `lines` lines from the line of `byte` on.
    fn tab_indent(&self, byte: usize, lines: usize) -> Option<Span> {
        let mut start = self.source.line_above(byte, 0);
        let text = self.source.text().get(start..)?;
        for line in text.split_inclusive('\n').take(lines) {
            let content = line.trim_start_matches(' ');
            let is_content = !content.trim().is_empty() && !content.trim_start().starts_with('#');
            if content.starts_with('\t') && is_content {
                let start = start + line.len() - content.len();
                return Some(Span {
                    start,
                    end: start + 1,
                });
            }
            start += line.len();
        }
        None
    }

    fn error(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code::SYNTAX, message).at(Place::new(self.source, span))
    }
}

fn scalar(text: String, style: ScalarStyle) -> Value {
    let quoted = style != ScalarStyle::Plain;
    if !quoted && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") {
        Value::Null
    } else {
        Value::Scalar { text, quoted }
    }
}

/// Makes a key from the node at its place.
fn key_of(node: Node, source: &Arc<Source>, diagnostics: &mut Vec<Diagnostic>) -> Key {
    let text = match node.value {
        Value::Scalar { text, .. } => text,
        Value::Null => "null".to_owned(),
        Value::List(_) | Value::Map(_) => {
            let error =
                Diagnostic::error(code::WRONG_SHAPE, "a key must be a text, not a list or map");
            diagnostics.push(error.at(Place::new(source, node.span)));
            String::new()
        }
    };
    Key {
        text,
        span: node.span,
    }
}

/// Collections are pointed at by their key, and so is what is not there.
fn entry(key: Key, mut value: Node) -> Entry {
    if !matches!(value.value, Value::Scalar { .. }) {
        value.span = key.span;
    }
    Entry { key, value }
}

/// Number of entries up to which a key is compared with each of them.
const FEW: usize = 16;

/// Adds `entry`, unless there is one of its key, which it returns.
fn push_entry<'e>(
    (entries, places): (&'e mut Vec<Entry>, &mut HashMap<String, usize>),
    entry: Entry,
) -> Option<(&'e mut Entry, Entry)> {
    let text = &entry.key.text;
    let place = if entries.len() <= FEW {
        entries.iter().position(|earlier| earlier.key.text == *text)
    } else {
        for (place, earlier) in entries.iter().enumerate().skip(places.len()) {
            places.insert(earlier.key.text.clone(), place);
        }
        places.get(text).copied()
    };
    let Some(place) = place else {
        entries.push(entry);
        return None;
    };
    Some((&mut entries[place], entry))
}

/// Reports a key that occurs again in its map, and keeps the last one where files of that kind have several.
fn repeated_key(
    (kept, again): (&mut Entry, Entry),
    source: &Arc<Source>,
    dialect: Dialect,
) -> Diagnostic {
    let message = format!("`{}` occurs twice in the same map", again.key.text);
    let (first, second) = (kept.key.span, again.key.span);
    let diagnostic = match dialect {
        Dialect::Repeated => {
            *kept = again;
            Diagnostic::warning(code::DUPLICATE_KEY, message).label("the second, which counts")
        }
        Dialect::Plain | Dialect::Tagged => {
            Diagnostic::error(code::DUPLICATE_KEY, message).label("the second")
        }
    };
    let diagnostic = diagnostic.at(Place::new(source, second));
    diagnostic.context(Place::new(source, first), "the first")
}

#[cfg(test)]
mod tests;
