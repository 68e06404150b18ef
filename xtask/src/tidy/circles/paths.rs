//! The paths that a file names: by `use`, and in its code.

use crate::tidy::scan::scan;

/// A module by its path from the crate's root.
pub(super) type ModulePath = Vec<String>;

/// A path that a file names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name that a `use` gives to it.
    pub(super) name: Option<String>,
    /// Named by a public `use`, which passes it on.
    pub(super) is_passed_on: bool,
}

/// The names in the text of a file, its tests apart.
pub(super) fn imports(text: &str) -> Vec<Import> {
    let scanned = scan(text);
    let lines = scanned.code.iter().zip(&scanned.in_tests);
    let code = lines.filter(|(_, in_tests)| !**in_tests);
    let code: Vec<&str> = code.map(|(line, _)| line.as_str()).collect();
    let mut imports = Vec::new();
    let mut lines = code.into_iter();
    while let Some(line) = lines.next() {
        let Some((is_passed_on, tree)) = use_of(line) else {
            imports.extend(inline(line));
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            let Some(line) = lines.next() else { break };
            tree.push(' ');
            tree.push_str(line);
        }
        let tree = tree.split(';').next().unwrap_or_default();
        expand(tree, &mut Vec::new(), is_passed_on, &mut imports);
    }
    imports
}

/// Returns true for a public `use` at the beginning of a line, and the text behind that
/// word.
fn use_of(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start();
    let is_public = line.starts_with("pub");
    let line = match line.strip_prefix("pub") {
        Some(behind) if behind.starts_with('(') => behind.split_once(')')?.1,
        Some(behind) => behind,
        None => line,
    };
    Some((is_public, line.trim_start().strip_prefix("use ")?))
}

/// The paths of a tree such as `a::{b, c as d, self}`.
fn expand(tree: &str, before: &mut Vec<String>, is_passed_on: bool, imports: &mut Vec<Import>) {
    let tree = tree.trim();
    let depth = before.len();
    if let Some((path, group)) = tree.split_once('{') {
        before.extend(segments(path));
        let group = group.trim_end().trim_end_matches('}');
        for part in parts(group) {
            expand(part, before, is_passed_on, imports);
        }
    } else if !tree.is_empty() {
        let (path, alias) = match tree.split_once(" as ") {
            Some((path, alias)) => (path, Some(alias.trim().to_owned())),
            None => (tree, None),
        };
        before.extend(segments(path));
        if before.last().is_some_and(|last| last == "self") && before.len() > 1 {
            before.pop();
        }
        imports.push(Import {
            path: before.clone(),
            name: alias.or_else(|| before.last().cloned()),
            is_passed_on,
        });
    }
    before.truncate(depth);
}

/// The parts of a group, which commas divide.
fn parts(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    parts
}

fn segments(path: &str) -> impl Iterator<Item = String> {
    let segments = path.split("::").map(str::trim);
    let segments = segments.filter(|segment| !segment.is_empty() && *segment != "*");
    segments.map(str::to_owned)
}

/// The paths in a line of code.
fn inline(line: &str) -> Vec<Import> {
    // A visibility is no import.
    let line = match line.split_once("pub(in ") {
        Some((_, behind)) => behind.split_once(')').map_or("", |(_, behind)| behind),
        None => line,
    };
    let is_in_path = |char: char| char.is_alphanumeric() || matches!(char, '_' | ':');
    let paths = line.split(|char| !is_in_path(char));
    // A path that begins with `::` is of another crate, or the end of `<T as Trait>::NAME`.
    let paths = paths.filter(|path| path.contains("::") && !path.starts_with("::"));
    paths
        .map(|path| Import {
            path: segments(path).collect(),
            name: None,
            is_passed_on: false,
        })
        .collect()
}
