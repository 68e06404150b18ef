//! Examples in the documentation of libraries. `cargo test` compiles a library once more to run them, so a library
//! without examples has `doctest = false`, and one with examples must run them.

use super::Problem;
use super::files::SourceFile;

/// First words of a block of code that is an example in Rust.
const RUST: [&str; 6] = [
    "",
    "rust",
    "no_run",
    "should_panic",
    "compile_fail",
    "ignore",
];

/// Checks the manifest of each library.
pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let manifests = sources.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("Cargo.toml")?;
        problem(file, &format!("{folder}src/"), sources)
    });
    manifests.collect()
}

fn problem(manifest: &SourceFile, folder: &str, sources: &[SourceFile]) -> Option<Problem> {
    let files = || sources.iter().filter(|file| file.path.starts_with(folder));
    let library = format!("{folder}lib.rs");
    if files().all(|file| file.path != library) {
        return None;
    }
    let has_examples = files().any(|file| has_example(&file.text));
    let is_off = manifest.text.lines().any(|line| line == "doctest = false");
    let message = match (has_examples, is_off) {
        (true, true) => "its documentation has examples, which must run: remove `doctest = false`",
        (false, false) => "its documentation has no example: add `[lib] doctest = false`",
        _ => return None,
    };
    Some(Problem::new(&manifest.path, 1, message))
}

/// Returns true if documentation comments have an example in Rust.
fn has_example(text: &str) -> bool {
    let comments = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
    });
    let fences = comments.filter_map(|line| line.trim().strip_prefix("```"));
    // Every second one ends a block.
    fences.step_by(2).any(|words| {
        let first = words.split([',', ' ']).next();
        first.is_some_and(|word| RUST.contains(&word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_runs_its_examples_and_has_no_run_without_any() {
        let example = "//! ```\n//! assert!(true);\n//! ```\n";
        let text = "/// ```text\n/// a b\n/// ```\nfn f() {}\n";
        let code = "const FENCE: &str = \"\n```\n\";\n";
        let off = "[lib]\ndoctest = false\n";
        for (library, manifest, expected) in [
            (example, "", None),
            (text, off, None),
            (
                "//! ```rust,no_run\n//! f();\n//! ```\n",
                off,
                Some("must run"),
            ),
            (code, off, None),
            (example, off, Some("must run")),
            (text, "", Some("no example")),
            (code, "", Some("no example")),
        ] {
            let file = |path: &str, text: &str| SourceFile {
                path: path.to_owned(),
                text: text.to_owned(),
            };
            let sources = [
                file("crates/make/toy/Cargo.toml", manifest),
                file("crates/make/toy/src/lib.rs", "//! A toy.\n"),
                file("crates/make/toy/src/toy.rs", library),
                file("crates/make/toys/src/lib.rs", example),
                // A program has no library whose examples could run.
                file("xtask/Cargo.toml", ""),
                file("xtask/src/main.rs", ""),
            ];
            let messages: Vec<String> = check(&sources).iter().map(ToString::to_string).collect();
            assert_eq!(messages.len(), usize::from(expected.is_some()));
            for (message, expected) in messages.iter().zip(expected) {
                assert!(message.contains(expected), "{message}");
            }
        }
    }
}
