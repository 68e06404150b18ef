//! Texts that were read, and places in them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One text and where it came from.
pub struct Source {
    path: PathBuf,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// `text`, read from `path` (or named so).
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Self> {
        let text = text.into();
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0)
            .chain(breaks.map(|(index, _)| index + 1))
            .collect();
        Arc::new(Self {
            path: path.into(),
            text,
            line_starts,
        })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All of it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of `byte`, which is clamped to the text.
    #[must_use]
    pub fn position(&self, byte: usize) -> Position {
        let byte = floor_boundary(&self.text, byte);
        let line = self.line_starts.partition_point(|start| *start <= byte);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        Position {
            line,
            column: self.text[start..byte].chars().count() + 1,
        }
    }

    /// `span` within the text, on character boundaries, and at least one
    /// character long where the text has one there.
    #[must_use]
    pub fn clamp(&self, span: Span) -> Span {
        let start = floor_boundary(&self.text, span.start);
        let end = floor_boundary(&self.text, span.end).max(start);
        if end > start {
            return Span { start, end };
        }
        let next = self.text[start..].chars().next().map_or(0, char::len_utf8);
        Span {
            start,
            end: start + next,
        }
    }

    /// `span` up to the end of its first line, without trailing blanks.
    #[must_use]
    pub fn first_line(&self, span: Span) -> Span {
        let span = self.clamp(span);
        let line = self.text[span.start..span.end].lines().next();
        let length = line.map_or(0, |line| line.trim_end().len());
        self.clamp(Span {
            start: span.start,
            end: span.start + length,
        })
    }

    /// The whole lines from the one of byte `first` to the one of byte `last`.
    pub(crate) fn lines(&self, first: usize, last: usize) -> Span {
        let end = floor_boundary(&self.text, last);
        let rest = &self.text[end..];
        Span {
            start: self.line_above(first, 0),
            end: end + rest.find('\n').map_or(rest.len(), |length| length + 1),
        }
    }

    /// Returns the start of the line that is `lines` above the line of `byte`.
    pub(crate) fn line_above(&self, byte: usize, lines: usize) -> usize {
        let line = self.line_starts.partition_point(|start| *start <= byte);
        let above = line.saturating_sub(1 + lines);
        self.line_starts.get(above).copied().unwrap_or(0)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.path.display())
    }
}

/// `byte` moved down to the nearest character boundary of `text`.
fn floor_boundary(text: &str, byte: usize) -> usize {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    byte
}

/// Bytes of a text, from `start` up to but without `end`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
}

/// A line and a column, both counted from one; columns count characters.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Position {
    /// The line, from one.
    pub line: usize,
    /// The column in characters, from one.
    pub column: usize,
}

/// A part of a text.
#[derive(Clone, Debug)]
pub struct Place {
    /// The text.
    pub source: Arc<Source>,
    /// The bytes, always within the source.
    pub span: Span,
}

impl Place {
    /// `span` of `source`, clamped to it.
    #[must_use]
    pub fn new(source: &Arc<Source>, span: Span) -> Self {
        Self {
            source: Arc::clone(source),
            span: source.clamp(span),
        }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        self.source.path()
    }

    /// Returns the position of the start.
    #[must_use]
    pub fn start(&self) -> Position {
        self.source.position(self.span.start)
    }

    /// Returns the position of the end.
    #[must_use]
    pub fn end(&self) -> Position {
        self.source.position(self.span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let source = Source::new("a.yaml", "é: 1\nb: 2\n");
        let at = |byte| {
            let position = source.position(byte);
            (position.line, position.column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(2), (1, 2));
        assert_eq!(at(6), (2, 1));
        assert_eq!(at(9999), (3, 1));
    }

    #[test]
    fn spans_stay_inside_the_text() {
        let source = Source::new("a.yaml", "é");
        assert_eq!(
            source.clamp(Span { start: 1, end: 9 }),
            Span { start: 0, end: 2 }
        );
        assert_eq!(
            source.clamp(Span { start: 7, end: 3 }),
            Span { start: 2, end: 2 }
        );
    }
}
