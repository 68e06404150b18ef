//! Circles of files that import each other within a crate.
//!
//! A file imports another where a `use` or a path in code names an item that the other one
//! defines. A path begins at the root of the crate, at a parent, at a child module as in
//! `child::f()`, or with a name that a `use` of the file gives. An item that is passed on by
//! a public `use` counts for the file that defines it. Declarations by `mod` and test modules
//! do not count, nor do names without `::` in code.

mod paths;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::paths::{Import, ModulePath, imports};
use super::Problem;
use super::files::SourceFile;
use super::table::{FILE_CIRCLES, table_name};

/// A circle of up to this many files is permitted.
const FILES_MAX: usize = 5;

/// The file that has the permitted numbers.
const TABLE: &str = "xtask/src/tidy/table.rs";

/// Re-exports that are followed one after the other.
const STEPS_MAX: usize = 8;

/// Checks the circles of all crates.
pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    check_with(sources, FILE_CIRCLES)
}

fn check_with(sources: &[SourceFile], permitted: &[(&str, usize)]) -> Vec<Problem> {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in sources.iter().filter(|file| file.path.ends_with(".rs")) {
        if let Some((root, _)) = file.path.split_once("/src/") {
            crates.entry(root).or_default().push(file);
        }
    }
    let name_of = |root: &str| table_name(root.rsplit('/').next().unwrap_or(root)).to_owned();
    let problems = crates.iter().filter_map(|(root, files)| {
        let name = name_of(root);
        let entry = permitted.iter().find(|(entry, _)| *entry == name);
        let expected = entry.map_or(0, |(_, files)| *files);
        problem(root, &circles(root, files), expected)
    });
    let mut problems: Vec<Problem> = problems.collect();
    let is_crate = |name: &str| crates.keys().any(|root| name_of(root) == name);
    let unused = permitted.iter().filter(|(name, _)| !is_crate(name));
    problems.extend(unused.map(|(name, _)| {
        let message = format!("FILE_CIRCLES names crate `{name}`, which does not exist");
        Problem::new(TABLE, 1, message)
    }));
    problems
}

fn problem(root: &str, circles: &[Vec<String>], expected: usize) -> Option<Problem> {
    let large = circles.iter().filter(|circle| circle.len() > FILES_MAX);
    let large: Vec<&Vec<String>> = large.collect();
    let files: usize = large.iter().map(|circle| circle.len()).sum();
    if files == expected {
        return None;
    }
    if files < expected {
        let message = format!(
            "FILE_CIRCLES has {expected} files for {root}, and {files} are left: write {files}, or leave \
             the entry out for 0"
        );
        return Some(Problem::new(TABLE, 1, message));
    }
    let shown: Vec<String> = large.iter().map(|circle| circle.join(", ")).collect();
    let message = format!(
        "{files} files are in circles of more than {FILES_MAX} files that import each other, and {expected} may \
         be: {}",
        shown.join("; ")
    );
    let place = format!("{root}/src/{}", large.first()?.first()?);
    Some(Problem::new(&place, 1, message))
}

/// The modules of a crate.
type Modules = BTreeMap<ModulePath, Module>;

/// A file, and what it names.
#[derive(Debug)]
struct Module {
    file: String,
    imports: Vec<Import>,
}

/// The circles of the crate at `root`, each with its files in order, the largest first.
fn circles(root: &str, files: &[&SourceFile]) -> Vec<Vec<String>> {
    let prefix = format!("{root}/src/");
    let mut modules = Modules::new();
    for file in files {
        let name = file.path.strip_prefix(&prefix).unwrap_or(&file.path);
        let is_test = name
            .split('/')
            .any(|part| matches!(part, "tests" | "tests.rs"));
        if let (false, Some(path)) = (is_test, module_path(name)) {
            let imports = imports(&file.text);
            let file = name.to_owned();
            modules.insert(path, Module { file, imports });
        }
    }
    let mut edges = Edges::new();
    for (path, module) in &modules {
        let imports = module.imports.iter().filter(|import| !import.is_passed_on);
        let targets = imports.filter_map(|import| resolve(&modules, path, &import.path, 0));
        let targets = targets.filter_map(|target| Some(modules.get(&target)?.file.as_str()));
        let targets_elsewhere = targets.filter(|target| *target != module.file);
        edges.insert(&module.file, targets_elsewhere.collect());
    }
    let mut circles = groups(&edges);
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// `load/pool.rs` is module `load::pool`; the root of a crate has no name.
fn module_path(file: &str) -> Option<ModulePath> {
    let name = file.strip_suffix(".rs")?;
    if matches!(name, "lib" | "main") {
        return Some(Vec::new());
    }
    Some(name.split('/').map(str::to_owned).collect())
}

/// The module that defines what `path` means in module `at`; `None` if `at` imports it from
/// outside of the crate.
fn resolve(
    modules: &Modules,
    at: &ModulePath,
    path: &[String],
    steps: usize,
) -> Option<ModulePath> {
    let mut here = at.clone();
    let mut rest = path;
    while let Some((first, behind)) = rest.split_first() {
        match first.as_str() {
            "crate" => here.clear(),
            "super" => drop(here.pop()?),
            "self" => {}
            _ => break,
        }
        rest = behind;
    }
    while let Some((first, behind)) = rest.split_first() {
        here.push(first.clone());
        if !modules.contains_key(&here) {
            here.pop();
            break;
        }
        rest = behind;
    }
    let Some((item, behind)) = rest.split_first() else {
        return Some(here);
    };
    // Private imports are open to child modules.
    let is_inside = at.starts_with(&here);
    let module = modules.get(&here)?;
    let passed = module
        .imports
        .iter()
        .find(|import| (import.is_passed_on || is_inside) && import.name.as_ref() == Some(item));
    if let Some(import) = passed.filter(|_| steps < STEPS_MAX) {
        let path = [&import.path, behind].concat();
        return resolve_import(modules, &here, &path, steps + 1);
    }
    Some(here)
}

/// The same for a path that `at` imports.
fn resolve_import(
    modules: &Modules,
    at: &ModulePath,
    path: &[String],
    steps: usize,
) -> Option<ModulePath> {
    let first = path.first()?;
    let child = [at.as_slice(), std::slice::from_ref(first)].concat();
    let is_inside = matches!(first.as_str(), "crate" | "super" | "self");
    if is_inside || modules.contains_key(&child) {
        resolve(modules, at, path, steps)
    } else {
        None
    }
}

type Edges<'e> = BTreeMap<&'e str, BTreeSet<&'e str>>;

/// Files that reach each other, in groups of two or more.
fn groups(edges: &Edges<'_>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|file| (*file, reached_from(edges, file)))
        .collect();
    let mut groups = Vec::new();
    let mut seen = BTreeSet::new();
    for (file, reaches) in &reached {
        let is_back = |file_after: &&&str| {
            reached
                .get(**file_after)
                .is_some_and(|targets| targets.contains(file))
        };
        let group: BTreeSet<&str> = reaches.iter().filter(is_back).copied().collect();
        if group.len() > 1 && seen.insert(group.clone()) {
            groups.push(group.into_iter().map(str::to_owned).collect());
        }
    }
    groups
}

fn reached_from<'e>(edges: &Edges<'e>, file: &str) -> BTreeSet<&'e str> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&str> = edges.get(file).into_iter().flatten().copied().collect();
    while let Some(next) = left.pop() {
        if let Some((next, targets)) = edges.get_key_value(next)
            && reached.insert(*next)
        {
            left.extend(targets);
        }
    }
    reached
}
