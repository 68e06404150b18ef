//! Diagnostics: mistakes and their places.

use std::fmt;

use crate::render::render;
use crate::source::Place;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// Nothing can be run.
    Error,
    /// It can be run, but may not mean what was meant.
    Warning,
    /// Worth knowing.
    Note,
}

/// One thing that was wrong.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// One of [`crate::code`].
    pub code: &'static str,
    /// One sentence, lower case, without a full stop.
    pub message: String,
    /// Where; none where it came from no file.
    pub place: Option<Place>,
    /// The text beside the caret.
    pub label: Option<String>,
    /// Other places that explain this one, with their labels.
    pub context: Vec<(Place, String)>,
    /// Accepted values and advice.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Nothing can be run because of `message`.
    #[must_use]
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message.into())
    }

    /// Something to think about.
    #[must_use]
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message.into())
    }

    /// Something to know.
    #[must_use]
    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message.into())
    }

    const fn new(severity: Severity, code: &'static str, message: String) -> Self {
        Self {
            severity,
            code,
            message,
            place: None,
            label: None,
            context: Vec::new(),
            help: Vec::new(),
        }
    }

    /// The same, at `place`.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// The same, with `label` beside the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// The same, with another place that explains it.
    #[must_use]
    pub fn context(mut self, place: Place, label: impl Into<String>) -> Self {
        self.context.push((place, label.into()));
        self
    }

    /// The same, with one more line of help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }
}

/// Several of them.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds all of `more`.
    pub fn append(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Returns the number of diagnostics.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if one of them is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors() > 0
    }

    /// Returns the number of errors.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .count()
    }

    /// In the order of files (by first appearance) and of places in them; what
    /// has no place comes last. Repetitions, as aliases and the cells of a matrix cause, go.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        let mut files: Vec<std::path::PathBuf> = Vec::new();
        for place in self
            .0
            .iter()
            .filter_map(|diagnostic| diagnostic.place.as_ref())
        {
            if !files.iter().any(|file| file == place.file()) {
                files.push(place.file().to_path_buf());
            }
        }
        let rank = |diagnostic: &Diagnostic| match &diagnostic.place {
            Some(place) => (
                files.iter().position(|file| file == place.file()),
                place.span.start,
            ),
            None => (Some(files.len()), 0),
        };
        self.0.sort_by_key(rank);
        let at = |diagnostic: &Diagnostic| diagnostic.place.as_ref().map(|place| place.span);
        let mut kept: Vec<Diagnostic> = Vec::new();
        for diagnostic in self.0 {
            // Repetitions have the same rank, so they are not far away.
            let near = kept.iter().rev();
            let mut near = near.take_while(|earlier| rank(earlier) == rank(&diagnostic));
            let is_known = near.any(|earlier| {
                earlier.code == diagnostic.code
                    && earlier.message == diagnostic.message
                    && at(earlier) == at(&diagnostic)
            });
            if !is_known {
                kept.push(diagnostic);
            }
        }
        Self(kept)
    }

    /// As a compiler would show them; with ANSI colours if `color`.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        render(&self.0, color)
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
