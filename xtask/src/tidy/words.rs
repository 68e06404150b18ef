//! Plain words: type names with one definition, and no word of the list in names,
//! comments, texts and documents.

mod list;
mod names;
mod prose;
mod scripts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::list::{
    BINDINGS, Ban, DOC_BEGINNING_INSTEAD, DOC_BEGINNINGS, EXCEPTIONS, LISTS, NAME_PARTS, PHRASES,
    TEXT_PHRASES,
};
use self::prose::Prose;
use super::Problem;
use super::documents::is_document;
use super::files::SourceFile;
use super::rust::Place;
use super::scan::{Scanned, scan, words};

/// The name under which the documents count as a crate.
pub(crate) const DOCUMENTS: &str = "documents";

/// The part of the tree that a word is in.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    /// A public type has the name of another type of its crate.
    Type,
    /// A private type has the name of another private type of its crate.
    PrivateType,
    /// An identifier.
    Name,
    /// A comment.
    Comment,
    /// A literal.
    Text,
    /// Names and comments of tests.
    Test,
    /// Markdown.
    Document,
}

impl Kind {
    /// Every kind, in the order of the columns.
    pub(crate) const ALL: [Self; 7] = [
        Self::Type,
        Self::PrivateType,
        Self::Name,
        Self::Comment,
        Self::Text,
        Self::Test,
        Self::Document,
    ];

    /// The heading of the column.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::PrivateType => "private type",
            Self::Name => "name",
            Self::Comment => "comment",
            Self::Text => "text",
            Self::Test => "test",
            Self::Document => "document",
        }
    }
}

/// A banned word at a place.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Finding {
    /// The crate, by its name in the table; `documents` for Markdown.
    pub(crate) unit: String,
    /// File, from the root.
    pub(crate) path: String,
    /// Counts from 1.
    pub(crate) line: usize,
    /// Part of the tree.
    pub(crate) kind: Kind,
    /// The word or name.
    pub(crate) word: String,
    /// The replacement.
    pub(crate) instead: String,
}

/// Checks every crate and document.
pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let problem = |finding: Finding| {
        let Finding { word, instead, .. } = finding;
        Problem::new(&finding.path, finding.line, format!("`{word}`: {instead}"))
    };
    find(sources).into_iter().map(problem).collect()
}

/// Finds every banned word and ambiguous type name.
pub(super) fn find<'a>(sources: impl IntoIterator<Item = &'a SourceFile>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut types = BTreeMap::new();
    for source in sources {
        let mut file = File::new(source);
        if LISTS.contains(&source.path.as_str()) {
            continue;
        }
        if source.path.ends_with(".rs") {
            let scanned = scan(&source.text);
            file.check_rust(&scanned);
            file.collect_types(&scanned, &mut types);
        } else if is_document(&source.path) {
            let prose = Prose::of_markdown(source.text.lines());
            file.check_prose(&prose, lists_of(&source.path), Kind::Document);
        } else if has_hash_comments(&source.path) {
            let prose = Prose::of_hash_comments(source.text.lines());
            file.check_prose(&prose, &[PHRASES], Kind::Comment);
            file.check_script();
        }
        findings.append(&mut file.findings);
    }
    findings.extend(ambiguous(types));
    findings.sort();
    findings
}

/// The lists for a document. Guides have those of texts, too; records of decisions and of work do not.
fn lists_of(path: &str) -> &'static [&'static [Ban]] {
    let is_record = |start: &&str| path.starts_with(*start);
    if ["CHANGELOG.md", "docs/adr/", "docs/progress/"]
        .iter()
        .any(is_record)
    {
        &[PHRASES]
    } else {
        &[PHRASES, TEXT_PHRASES]
    }
}

/// Returns true for scripts, recipes, manifests and YAML, whose comments begin with `#`.
fn has_hash_comments(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    match extension {
        Some(extension) => ["py", "sh", "toml", "yaml", "yml"].contains(&extension),
        None => name == "justfile" || is_script(path),
    }
}

/// Folders whose files without an extension are scripts.
const SCRIPT_FOLDERS: [&str; 3] = [".ci/", "harness/", "packaging/"];

/// Returns true for scripts in bash and Python.
fn is_script(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, extension)) => ["py", "sh"].contains(&extension),
        None => SCRIPT_FOLDERS.iter().any(|folder| path.starts_with(folder)),
    }
}

/// The definitions of each type name of each crate: file, line and true for a public type.
type Types = BTreeMap<(String, String), Vec<(String, usize, bool)>>;

struct File<'a> {
    source: &'a SourceFile,
    unit: &'a str,
    findings: Vec<Finding>,
}

impl<'a> File<'a> {
    fn new(source: &'a SourceFile) -> Self {
        Self {
            source,
            unit: unit_of(&source.path),
            findings: Vec::new(),
        }
    }

    fn check_rust(&mut self, scanned: &Scanned) {
        let is_test_file = Place::of(&self.source.path).is_test;
        let in_tests = |line: usize| is_test_file || scanned.in_tests.get(line - 1) == Some(&true);
        for (index, code) in scanned.code.iter().enumerate() {
            self.check_names(index + 1, code);
        }
        self.check_beginnings(&scanned.comments);
        let comments = Prose::of_comments(scanned.comments.iter().map(String::as_str));
        self.check_prose(&comments, &[PHRASES], Kind::Comment);
        let literals = Prose::of_literals(scanned.literals.iter().map(String::as_str));
        self.check_prose(&literals, &[PHRASES, TEXT_PHRASES], Kind::Text);
        // What a test feeds to the program, and expects of it, is checked where it is made.
        self.findings
            .retain(|finding| finding.kind != Kind::Text || !in_tests(finding.line));
        for finding in &mut self.findings {
            if in_tests(finding.line) {
                finding.kind = Kind::Test;
            }
        }
    }

    fn check_names(&mut self, line: usize, code: &str) {
        let identifiers: BTreeSet<&str> = words(code).collect();
        for identifier in identifiers {
            self.check_parts(line, identifier);
        }
        for name in names::bindings(code) {
            self.check_binding(line, name);
        }
    }

    /// Checks the names that a script in bash or Python defines.
    fn check_script(&mut self) {
        let source = self.source;
        if !is_script(&source.path) {
            return;
        }
        for (line, code) in scripts::code_lines(&source.text) {
            for name in scripts::script_bindings(code) {
                self.check_parts(line, &name);
                self.check_binding(line, &name);
            }
        }
    }

    fn check_parts(&mut self, line: usize, identifier: &str) {
        let parts = names::parts(identifier);
        let ban = NAME_PARTS
            .iter()
            .find(|(word, _)| parts.iter().any(|part| part == word));
        if let Some((word, instead)) = ban {
            self.add(line, Kind::Name, word, identifier, instead);
        }
    }

    fn check_binding(&mut self, line: usize, name: &str) {
        if let Some((word, instead)) = BINDINGS.iter().find(|(word, _)| *word == name) {
            self.add(line, Kind::Name, word, name, instead);
        }
    }

    fn check_beginnings(&mut self, comments: &[String]) {
        let mut was_doc = false;
        for (index, comment) in comments.iter().enumerate() {
            let comment = comment.trim();
            let text = ["///", "//!"]
                .iter()
                .find_map(|mark| comment.strip_prefix(mark));
            let first = text.and_then(|text| text.split_whitespace().next());
            let first = first.unwrap_or_default().to_lowercase();
            if !was_doc && DOC_BEGINNINGS.contains(&first.as_str()) {
                let shown = format!("{first} …");
                self.add(
                    index + 1,
                    Kind::Comment,
                    &first,
                    &shown,
                    DOC_BEGINNING_INSTEAD,
                );
            }
            was_doc = text.is_some();
        }
    }

    fn check_prose(&mut self, prose: &Prose, lists: &[&[Ban]], kind: Kind) {
        for (phrase, instead) in lists.iter().copied().flatten() {
            for line in prose.lines_with(phrase) {
                self.add(line, kind, phrase, phrase, instead);
            }
        }
    }

    fn collect_types(&self, scanned: &Scanned, types: &mut Types) {
        if Place::of(&self.source.path).is_test {
            return;
        }
        for (index, code) in scanned.code.iter().enumerate() {
            let defined = names::defined_type(code);
            if let Some((name, is_public)) = defined.filter(|_| !scanned.in_tests[index]) {
                let key = (self.unit.to_owned(), name.to_owned());
                let definition = (self.source.path.clone(), index + 1, is_public);
                types.entry(key).or_default().push(definition);
            }
        }
    }

    fn add(&mut self, line: usize, kind: Kind, word: &str, shown: &str, instead: &str) {
        let is_exception = EXCEPTIONS.iter().any(|(path, excepted, _)| {
            self.source.path.starts_with(path)
                && word.trim_end_matches('s') == excepted.trim_end_matches('s')
        });
        if !is_exception {
            self.findings.push(Finding {
                unit: self.unit.to_owned(),
                path: self.source.path.clone(),
                line,
                kind,
                word: shown.to_owned(),
                instead: instead.to_owned(),
            });
        }
    }
}

/// The type names with several definitions, at each definition.
fn ambiguous(types: Types) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((unit, name), definitions) in types {
        let has_public = definitions.iter().any(|(_, _, is_public)| *is_public);
        let kind = if has_public {
            Kind::Type
        } else {
            Kind::PrivateType
        };
        if definitions.len() == 1 {
            continue;
        }
        for (path, line, _) in &definitions {
            let elsewhere = definitions
                .iter()
                .filter(|definition| (&definition.0, definition.1) != (path, *line));
            let places: Vec<String> = elsewhere
                .map(|(path, line, _)| format!("{path}:{line}"))
                .collect();
            findings.push(Finding {
                unit: unit.clone(),
                path: path.clone(),
                line: *line,
                kind,
                word: name.clone(),
                instead: format!("also defined at {}", places.join(", ")),
            });
        }
    }
    findings
}

/// The crate of a file, by its name in the table, the first folder, or `documents`.
fn unit_of(path: &str) -> &str {
    if is_document(path) {
        return DOCUMENTS;
    }
    Place::of(path).name
}
