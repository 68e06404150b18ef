//! Edits of a text at places, and where things in it end.

use std::sync::Arc;

use stillwell_text::{Entry, Node, Source, Span, Value};

/// One replacement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Edit {
    span: Span,
    text: String,
}

impl Edit {
    pub(super) fn new(span: Span, text: impl Into<String>) -> Self {
        Self {
            span,
            text: text.into(),
        }
    }

    /// Puts `text` before `byte`.
    pub(super) fn insert(byte: usize, text: impl Into<String>) -> Self {
        let span = Span {
            start: byte,
            end: byte,
        };
        Self::new(span, text)
    }

    /// The edits touch, so they cannot be applied in one round.
    const fn meets(&self, next_edit: &Self) -> bool {
        self.span.start <= next_edit.span.end && next_edit.span.start <= self.span.end
    }
}

/// `text` with the edits of all findings made that do not meet those of another
/// before them.
pub(super) fn apply(text: &str, findings: impl Iterator<Item = Vec<Edit>>) -> String {
    let mut chosen: Vec<Edit> = Vec::new();
    for edits in findings {
        let meets = |edit: &Edit| chosen.iter().any(|next_edit| edit.meets(next_edit));
        if !edits.iter().any(meets) {
            chosen.extend(edits);
        }
    }
    chosen.sort_by_key(|edit| edit.span);
    let mut edited = String::new();
    let mut at = 0;
    for edit in &chosen {
        edited.push_str(&text[at..edit.span.start]);
        edited.push_str(&edit.text);
        at = edit.span.end;
    }
    edited.push_str(&text[at..]);
    edited
}

/// Returns the start of the line with `byte`.
pub(super) fn line_start(text: &str, byte: usize) -> usize {
    text[..byte].rfind('\n').map_or(0, |at| at + 1)
}

/// Returns the start of the next line, or the end of the text.
pub(super) fn next_line(text: &str, byte: usize) -> usize {
    text[byte..]
        .find('\n')
        .map_or(text.len(), |at| byte + at + 1)
}

/// Returns the end of the value of `entry`; `None` if it is uncertain.
pub(super) fn value_end(text: &str, entry: &Entry) -> Option<usize> {
    match &entry.value.value {
        Value::Scalar { .. } => Some(entry.value.span.end),
        Value::Null => {
            let behind = &text[entry.key.span.end..];
            let line = &behind[..behind.find('\n').unwrap_or(behind.len())];
            line.find(':').map(|at| entry.key.span.end + at + 1)
        }
        Value::List(_) | Value::Map(_) => collection_end(text, entry),
    }
}

fn collection_end(text: &str, entry: &Entry) -> Option<usize> {
    let behind = &text[entry.key.span.end..];
    let colon = behind.find(':')? + 1;
    let value = behind[colon..].trim_start();
    let start = text.len() - value.len();
    match value.as_bytes().first()? {
        b'[' | b'{' => flow_end(text, start),
        // An anchor, an alias, a tag or a comment.
        b'&' | b'*' | b'!' | b'#' => None,
        _ => last_scalar_end(&entry.value),
    }
}

/// Returns the position behind the bracket that closes the one at `start`.
pub(super) fn flow_end(text: &str, start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote: Option<char> = None;
    let mut before = ' ';
    let mut letters = text[start..].char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some('"'), '\\') => drop(letters.next()),
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some(letter),
            (None, '#') if before.is_whitespace() => {
                // A comment ends with its line.
                letters.by_ref().find(|(_, letter)| *letter == '\n')?;
            }
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(start + at + 1);
                }
            }
            (None, _) => {}
        }
        before = letter;
    }
    None
}

fn last_scalar_end(node: &Node) -> Option<usize> {
    match &node.value {
        Value::Scalar { .. } => Some(node.span.end),
        Value::Null => None,
        Value::List(items) => last_scalar_end(items.last()?),
        Value::Map(entries) => last_scalar_end(&entries.last()?.value),
    }
}

/// Removes `entry`, with its lines if they contain nothing else; a comment behind it remains. Returns `None` if
/// its lines have next_edit content.
pub(super) fn remove_entry(source: &Arc<Source>, entry: &Entry) -> Option<Edit> {
    let text = source.text();
    let (start, end) = (entry.key.span.start, value_end(text, entry)?);
    let line = line_start(text, start);
    let next = next_line(text, end);
    let (before, behind) = (&text[line..start], text[end..next].trim());
    if !before.chars().all(|c| c == ' ') {
        return None;
    }
    if behind.is_empty() {
        let span = Span {
            start: line,
            end: next,
        };
        return Some(Edit::new(span, ""));
    }
    let comment = text[end..next].len() - text[end..next].trim_start().len();
    let end = end + comment;
    behind
        .starts_with('#')
        .then(|| Edit::new(Span { start, end }, ""))
}
