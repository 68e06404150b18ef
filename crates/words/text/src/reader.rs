//! Typed reading of a tree, collecting everything that is wrong.

use std::cell::RefCell;
use std::str::FromStr;
use std::sync::Arc;

use stillwell_units::ParseError;
use stillwell_units::human::with_article;

use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::node::{Entry, Node, Value};
use crate::source::{Place, Source, Span};

mod map;
mod named;

pub use map::{Keys, MapReader};
pub use named::NamedFiles;

/// Reads the values of one source. What it cannot read it reports, and returns
/// nothing for it, so its caller goes on with the rest.
#[derive(Debug)]
pub struct Reader {
    source: Arc<Source>,
    diagnostics: RefCell<Vec<Diagnostic>>,
    named: NamedFiles,
}

impl Reader {
    /// A reader of `source`.
    #[must_use]
    pub fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            diagnostics: RefCell::new(Vec::new()),
            named: NamedFiles::default(),
        }
    }

    /// Returns the source that is read.
    #[must_use]
    pub const fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// `span` of its source.
    #[must_use]
    pub fn place(&self, span: Span) -> Place {
        Place::new(&self.source, span)
    }

    /// Keeps `diagnostic`.
    pub fn report(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// An error at `span`, not yet kept.
    #[must_use]
    pub fn error(&self, code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at(self.place(span))
    }

    /// A warning at `span`, not yet kept.
    #[must_use]
    pub fn warning(
        &self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::warning(code, message).at(self.place(span))
    }

    /// A note at `span`, not yet kept.
    #[must_use]
    pub fn note(&self, code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::note(code, message).at(self.place(span))
    }

    /// Returns true if an error was kept.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        let diagnostics = self.diagnostics.borrow();
        diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns the diagnostics, in the order of the file.
    #[must_use]
    pub fn finish(self) -> Diagnostics {
        let diagnostics: Diagnostics = self.diagnostics.into_inner().into_iter().collect();
        diagnostics.sorted()
    }

    /// The tree of its source; what is wrong with it is kept.
    #[must_use]
    pub fn parse(&self) -> Option<Node> {
        self.keep(crate::node::parse(&self.source))
    }

    /// The same with local tags kept, as of [`parse_tagged`](crate::parse_tagged).
    #[must_use]
    pub fn parse_tagged(&self) -> Option<Node> {
        self.keep(crate::node::parse_tagged(&self.source))
    }

    /// The same of a file that may repeat keys, as of [`parse_repeated`](crate::parse_repeated).
    #[must_use]
    pub fn parse_repeated(&self) -> Option<Node> {
        self.keep(crate::node::parse_repeated(&self.source))
    }

    fn keep(&self, parsed: Result<(Node, Vec<Diagnostic>), Box<Diagnostic>>) -> Option<Node> {
        match parsed {
            Ok((node, diagnostics)) => {
                self.diagnostics.borrow_mut().extend(diagnostics);
                Some(node)
            }
            Err(error) => {
                self.report(*error);
                None
            }
        }
    }

    /// Says that `node` is not what is expected: "a list", say.
    pub fn wrong_shape(&self, node: &Node, expected: &str) {
        let message = format!("expected {expected}, found {}", node.shape());
        self.report(
            self.error(code::WRONG_SHAPE, node.span, message)
                .label(format!("expected {expected}")),
        );
    }

    /// A single value as it is written.
    #[must_use]
    pub fn text<'n>(&self, node: &'n Node) -> Option<&'n str> {
        match &node.value {
            Value::Scalar { text, .. } => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => {
                self.wrong_shape(node, "a single value");
                None
            }
        }
    }

    /// A single value of a unit type.
    #[must_use]
    pub fn parsed<T: FromStr<Err = ParseError>>(&self, node: &Node) -> Option<T> {
        let text = self.text(node)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.report(self.parse_error(node.span, &error));
                None
            }
        }
    }

    /// Makes the diagnostic for a typed value at `span` that is not accepted.
    #[must_use]
    pub fn parse_error(&self, span: Span, error: &ParseError) -> Diagnostic {
        match error {
            ParseError::Shape {
                input,
                kind,
                accepted,
            } => self
                .error(
                    code::BAD_VALUE,
                    span,
                    format!("`{input}` is not {}", with_article(kind)),
                )
                .label(format!("write {accepted}")),
            ParseError::UnitMissing {
                input,
                kind,
                example,
            } => self
                .error(
                    code::UNIT_MISSING,
                    span,
                    format!("{} needs a unit", with_article(kind)),
                )
                .label(format!("write `{input}{example}`")),
            ParseError::Range {
                input,
                kind,
                bounds,
            } => self
                .error(
                    code::OUT_OF_RANGE,
                    span,
                    format!("{kind} `{input}` is out of range"),
                )
                .label((*bounds).to_owned()),
        }
    }

    /// A whole number from `minimum` to `maximum`: decimal, or with `0x`, `0o` or `0b` as YAML writes it, or
    /// with a factor (`2k`, `1.5M`, `1G`).
    #[must_use]
    pub fn whole<T>(&self, node: &Node, minimum: T, maximum: T) -> Option<T>
    where
        T: std::fmt::Display + FromStr + PartialOrd,
    {
        let text = self.text(node)?.replace('_', "");
        let bounds = format!("a whole number from {minimum} to {maximum}");
        let written = stillwell_units::whole_number(&text);
        let decimal = written.map_or_else(|| text.clone(), |number| number.to_string());
        match decimal.parse::<T>() {
            Ok(value) if value >= minimum && value <= maximum => Some(value),
            _ => {
                let (code, message) = if decimal.parse::<f64>().is_ok() {
                    (code::OUT_OF_RANGE, format!("`{text}` is out of range"))
                } else {
                    (code::BAD_VALUE, format!("`{text}` is not a whole number"))
                };
                let error = self.error(code, node.span, message);
                self.report(error.label(format!("write {bounds}")));
                None
            }
        }
    }

    /// `true` or `false`.
    #[must_use]
    pub fn boolean(&self, node: &Node) -> Option<bool> {
        match self.text(node)? {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            text => {
                let message = format!("`{text}` is neither `true` nor `false`");
                let error = self.error(code::BAD_VALUE, node.span, message);
                self.report(error.label("write `true` or `false`"));
                None
            }
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn list<'n>(&self, node: &'n Node) -> Option<&'n [Node]> {
        if let Value::List(items) = &node.value {
            return Some(items);
        }
        self.wrong_shape(node, "a list");
        None
    }

    /// A list of single values; what is not one is left out.
    #[must_use]
    pub fn texts(&self, node: &Node) -> Vec<String> {
        let items = self.list(node).unwrap_or_default();
        let texts = items.iter().filter_map(|item| self.text(item));
        texts.map(str::to_owned).collect()
    }

    /// A map of single values, in the order of the file.
    #[must_use]
    pub fn text_map(&self, node: &Node) -> Vec<(String, String)> {
        let Some(entries) = node.entries() else {
            self.wrong_shape(node, "a map of names and values");
            return Vec::new();
        };
        entries
            .iter()
            .filter_map(|entry| match &entry.value.value {
                Value::Null => Some((entry.key.text.clone(), String::new())),
                _ => Some((entry.key.text.clone(), self.text(&entry.value)?.to_owned())),
            })
            .collect()
    }

    /// A map of HTTP headers, in the order of the file; what would break a
    /// message is reported.
    #[must_use]
    pub fn headers(&self, node: &Node) -> Vec<(String, String)> {
        let entries = node.entries().unwrap_or_default().iter();
        for entry in entries.filter(|entry| is_host_header(entry)) {
            self.reserved_header(entry);
        }
        self.request_headers(node)
    }

    /// The same of requests that may set their `Host`.
    #[must_use]
    pub fn request_headers(&self, node: &Node) -> Vec<(String, String)> {
        for entry in node.entries().unwrap_or_default() {
            let name = &entry.key.text;
            if !is_header_name(name) {
                let message = format!("`{name}` is not the name of a header");
                self.report(self.error(code::BAD_VALUE, entry.key.span, message));
            }
            if ["content-length", "transfer-encoding"]
                .iter()
                .any(|reserved| name.eq_ignore_ascii_case(reserved))
            {
                self.reserved_header(entry);
            }
            let value = match &entry.value.value {
                Value::Scalar { text, .. } => text.as_str(),
                Value::Null => "",
                // Reported as a wrong shape.
                Value::List(_) | Value::Map(_) => continue,
            };
            if value.chars().any(|c| c.is_control() && c != '\t') {
                let message = format!("the value of header `{name}` contains a control character");
                self.report(self.error(code::BAD_VALUE, entry.value.span, message));
            } else if is_host_header(entry) && !is_authority(value) {
                let message = format!("`{value}` is not a host with or without a port");
                self.report(self.error(code::BAD_VALUE, entry.value.span, message));
            }
        }
        self.text_map(node)
    }

    fn reserved_header(&self, entry: &Entry) {
        let message = format!("`{}` is written by Stillwell itself", entry.key.text);
        let error = self.error(code::BAD_VALUE, entry.key.span, message);
        self.report(error.label("leave it out"));
    }

    /// One of several words. `what` says what they are: "signal", say.
    #[must_use]
    pub fn word<T: Clone>(&self, node: &Node, what: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(value.clone());
        }
        self.unknown_word(node.span, what, text, words.iter().map(|(word, _)| *word));
        None
    }

    /// Says that `text` at `span` is not one of `words`.
    pub fn unknown_word<'w>(
        &self,
        span: Span,
        what: &str,
        text: &str,
        words: impl Iterator<Item = &'w str>,
    ) {
        let words: Vec<&str> = words.collect();
        let mut error = self.error(code::UNKNOWN_WORD, span, format!("unknown {what} `{text}`"));
        if let Some(near) = nearest(text, words.iter().copied()) {
            error = error.label(format!("did you mean `{near}`?"));
        }
        self.report(error.help(format!("accepted here: {}", words.join(", "))));
    }

    /// Says that `text` at `span` is known elsewhere but not supported here.
    pub fn not_built(&self, span: Span, what: &str, text: &str, help: Option<&str>) {
        let message = format!("{what} `{text}` is not supported yet");
        let mut error = self.error(code::NOT_BUILT, span, message);
        if let Some(help) = help {
            error = error.help(help);
        }
        self.report(error);
    }
}

/// Returns true if `name` is a token of RFC 9110.
fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

fn is_host_header(entry: &Entry) -> bool {
    entry.key.text.eq_ignore_ascii_case("host")
}

/// Returns true if `text` has only characters of a host with or without a port.
fn is_authority(text: &str) -> bool {
    let is_authority_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%:[]".contains(&byte);
    !text.is_empty() && text.bytes().all(is_authority_byte)
}

/// The one of `words` that `text` was most likely meant to be.
pub fn nearest<'w>(text: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let text = text.to_lowercase();
    words
        .into_iter()
        .filter_map(|word| {
            let lower = word.to_lowercase();
            let distance = strsim::damerau_levenshtein(&text, &lower);
            let longer = text.len().max(lower.len());
            let shorter = text.len().min(lower.len());
            let part = shorter >= 3 && (text.contains(&lower) || lower.contains(&text));
            // A third of the letters may be wrong, or one word be part of the other.
            (distance * 3 <= longer || part).then_some((distance, word))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_may_set_their_host() {
        let errors = |text: &str, read: fn(&Reader, &Node) -> Vec<(String, String)>| {
            let reader = Reader::new(Source::new("a.yaml", text));
            let root = reader.parse().unwrap();
            let headers = read(&reader, &root);
            (headers, reader.finish().errors())
        };
        let host = vec![("Host".to_owned(), "a.example:1".to_owned())];
        let text = "Host: a.example:1";
        assert_eq!(errors(text, Reader::request_headers), (host.clone(), 0));
        assert_eq!(errors(text, Reader::headers), (host, 1));
        for text in ["Host: a/b", "Host: \"\"", "Host:", "Content-Length: 5"] {
            assert_eq!(errors(text, Reader::request_headers).1, 1, "{text}");
        }
    }

    #[test]
    fn the_nearest_word_is_found() {
        let words = ["rate", "retries", "connections", "workers", "TERM"];
        for (text, near) in [
            ("rate_limit", Some("rate")),
            ("conections", Some("connections")),
            ("Worker", Some("workers")),
            ("SIGTERM", Some("TERM")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(text, words), near, "{text}");
        }
    }
}
