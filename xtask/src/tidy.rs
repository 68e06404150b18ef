//! The house rules. Every check is a pure function over text; this file reads
//! the repository, hands each check what it needs and collects all problems.

mod ancestors;
mod circles;
mod compatibility;
mod documents;
mod examples;
mod files;
mod grammar;
mod manifests;
mod messages;
mod problem;
mod rust;
mod scan;
mod table;
mod words;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;

use self::files::SourceFile;
use self::problem::Problem;
pub(crate) use self::words::{Finding, Kind};

/// Result of the checks.
#[derive(Debug)]
pub(crate) struct Report {
    /// Text files that were read.
    pub(crate) files: usize,
    /// Members of the workspace.
    pub(crate) crates: usize,
    /// Everything that is wrong, by path and line.
    pub(crate) problems: Vec<Problem>,
}

/// Checks the repository at `root`.
///
/// # Errors
/// When the repository cannot be read, or `cargo metadata` fails.
pub(crate) fn check(root: &Path) -> anyhow::Result<Report> {
    let sources = files::read_all(root)?;
    let metadata = manifests::load(root)?;
    let root_manifest = std::fs::read_to_string(root.join("Cargo.toml"))
        .context("read the workspace's Cargo.toml")?;

    let mut problems = metadata.check(&root_manifest);
    let paths: BTreeSet<&str> = sources.iter().map(|file| file.path.as_str()).collect();
    for file in &sources {
        problems.extend(check_file(root, file));
    }
    problems.extend(circles::check(&sources));
    problems.extend(examples::check(&sources));
    problems.extend(rust::check_unsafe_table(&sources));
    problems.extend(words::check(&sources));
    problems.extend(messages::check(&sources));
    problems.extend(compatibility::check(&sources));
    problems.extend(documents::check_index(&sources, &paths));
    problems.sort();
    problems.dedup();
    Ok(Report {
        files: sources.len(),
        crates: metadata.crates(),
        problems,
    })
}

/// Returns docs/compatibility.md with the tables of the marks in tests.
///
/// # Errors
/// When the repository cannot be read, or the page has no place for them.
pub(crate) fn compatibility_page(root: &Path) -> anyhow::Result<String> {
    compatibility::page(&files::read_all(root)?).context("docs/compatibility.md has no tables")
}

/// Finds the banned words and ambiguous type names of the repository at `root`.
///
/// # Errors
/// When the repository cannot be read.
pub(crate) fn find_words(root: &Path) -> anyhow::Result<Vec<Finding>> {
    Ok(words::find(&files::read_all(root)?))
}

/// Finds the texts of the program for people, in the repository at `root`.
///
/// # Errors
/// When the repository cannot be read.
pub(crate) fn find_messages(root: &Path, units: &[&str]) -> anyhow::Result<Vec<String>> {
    let sources = files::read_all(root)?;
    Ok(messages::find(&sources, units))
}

fn check_file(root: &Path, file: &SourceFile) -> Vec<Problem> {
    let mut problems = files::check_machine_paths(&file.path, &file.text);
    problems.extend(grammar::check(file));
    if file.path.ends_with(".rs") {
        problems.extend(rust::check(&file.path, &file.text));
        problems.extend(ancestors::check(&file.path, &file.text));
    }
    if file.path.ends_with("Cargo.toml") && file.path != "Cargo.toml" {
        problems.extend(manifests::check_lints(&file.path, &file.text));
    }
    if documents::is_document(&file.path) {
        let exists = |path: &str| root.join(path).exists();
        problems.extend(documents::check(&file.path, &file.text, exists));
    }
    problems
}
