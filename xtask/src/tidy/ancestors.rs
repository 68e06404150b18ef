//! Names of other tools are in crates of compatibility and in the command line alone.
//!
//! Comments may point to them.

use super::Problem;
use super::scan::scan;

/// In two halves, so a plain search of the tree does not find this file.
const NAMES: [&str; 4] = [
    concat!("night", "hawk"),
    concat!("lad", "ing"),
    concat!("en", "voy"),
    concat!("tre", "mor"),
];

/// Checks one Rust file.
pub(super) fn check(path: &str, text: &str) -> Vec<Problem> {
    if !is_core(path) {
        return Vec::new();
    }
    let named = named_lines(text).into_iter();
    let problem = |(line, name)| {
        let message = format!("`{name}`: formats of other tools are in `crates/compat`");
        Problem::new(path, line, message)
    };
    named.map(problem).collect()
}

/// Returns true for product code outside compatibility and the command line.
fn is_core(path: &str) -> bool {
    let is_outside = ["crates/compat/", "crates/faces/cli/"]
        .iter()
        .any(|folder| path.starts_with(folder));
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    path.starts_with("crates/") && !is_outside && !is_test
}

/// The lines of code or literals, outside tests, that name another tool.
fn named_lines(text: &str) -> Vec<(usize, &'static str)> {
    let scanned = scan(text);
    let mut named = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let is_test = scanned.in_tests.get(index).copied().unwrap_or(false);
        let comment = scanned.comments.get(index).map_or("", String::as_str);
        if let Some(name) = name_in(&without(line, comment)).filter(|_| !is_test) {
            named.push((index + 1, name));
        }
    }
    named
}

/// `line` without its comment, which is at the same columns.
fn without(line: &str, comment: &str) -> String {
    let mut comment = comment.chars();
    let kept = line.chars().map(|char| match comment.next() {
        Some(removed) if removed != ' ' => ' ',
        _ => char,
    });
    kept.collect()
}

fn name_in(code: &str) -> Option<&'static str> {
    let code = code.to_lowercase();
    NAMES.into_iter().find(|name| code.contains(name))
}

#[cfg(test)]
mod tests {
    use super::{NAMES, check};

    #[test]
    fn other_tools_are_named_by_compatibility_alone() {
        for name in NAMES {
            let code = format!("let {name}_file = 1;\nlet b = \"a {name} file\";\n");
            assert_eq!(
                check("crates/words/plan/src/lib.rs", &code).len(),
                2,
                "{code}"
            );
            for path in [
                "crates/compat/lading/src/lib.rs",
                "crates/faces/cli/src/main.rs",
                "crates/words/plan/tests/plan.rs",
                "crates/words/plan/src/sink/tests.rs",
                "xtask/src/main.rs",
            ] {
                assert_eq!(check(path, &code), [], "{path}");
            }
            let comment = format!("//! As {name} has it.\nlet a = 1; // {name}\n");
            assert_eq!(check("crates/words/plan/src/lib.rs", &comment), []);
            let test = format!("#[cfg(test)]\nmod tests {{\n    const A: &str = \"{name}\";\n}}\n");
            assert_eq!(check("crates/words/plan/src/lib.rs", &test), []);
        }
    }
}
