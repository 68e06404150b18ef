//! Documents point at things that exist, and each decision names what enforces it.

use std::collections::BTreeSet;

use super::Problem;
use super::files::SourceFile;

const DECISIONS: &str = "docs/adr/";
const DECISION_INDEX: &str = "docs/adr/README.md";
/// Pages of the book, in their order.
const BOOK_INDEX: &str = "docs/SUMMARY.md";
const ENFORCED_BY: &str = "Enforced by:";

/// Folders whose paths are recognised between backticks.
const FOLDERS: [&str; 6] = [
    "crates/",
    "docs/",
    "examples/",
    "xtask/",
    "benches/",
    ".ci/",
];

/// Returns true for a document: Markdown that is not the input of a test.
pub(super) fn is_document(path: &str) -> bool {
    path.ends_with(".md") && !path.contains("/tests/")
}

/// Checks the links and paths of one document. `exists` answers for a path from the root.
pub(super) fn check(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let (prose, spans) = split_spans(line);
        for link in links(&prose) {
            if resolve(path, link).is_none_or(|target| !exists(&target)) {
                problems.push(Problem::new(
                    path,
                    index + 1,
                    format!("link to `{link}`, which does not exist"),
                ));
            }
        }
        for span in spans.into_iter().filter_map(repository_path) {
            if !exists(span) {
                problems.push(Problem::new(
                    path,
                    index + 1,
                    format!("names `{span}`, which does not exist"),
                ));
            }
        }
    }
    problems.extend(check_decision(path, text));
    problems
}

/// Every decision is listed in the index of decisions, and every guide in that of the book.
pub(super) fn check_index(sources: &[SourceFile], paths: &BTreeSet<&str>) -> Vec<Problem> {
    let mut problems = unlisted(sources, DECISION_INDEX, paths, is_decision);
    problems.extend(unlisted(sources, BOOK_INDEX, paths, is_guide));
    problems
}

/// Returns the pages of a kind that `index` has no link to.
fn unlisted(
    sources: &[SourceFile],
    index: &str,
    paths: &BTreeSet<&str>,
    is_listed: fn(&str) -> bool,
) -> Vec<Problem> {
    let text = sources.iter().find(|file| file.path == index);
    let text = text.map_or("", |file| file.text.as_str());
    let pages = paths.iter().filter(|path| is_listed(path));
    pages
        .filter(|path| !text.contains(&format!("({})", file_name(path))))
        .map(|path| Problem::new(index, 1, format!("does not list `{}`", file_name(path))))
        .collect()
}

/// Returns true for a page of the documentation that is not in a folder of its own.
fn is_guide(path: &str) -> bool {
    let name = path.strip_prefix("docs/").unwrap_or_default();
    path != BOOK_INDEX && name.ends_with(".md") && !name.contains('/')
}

fn check_decision(path: &str, text: &str) -> Option<Problem> {
    if !is_decision(path) {
        return None;
    }
    let named = text.lines().any(|line| {
        line.strip_prefix(ENFORCED_BY)
            .is_some_and(|rest| !rest.trim().is_empty())
    });
    (!named).then(|| {
        Problem::new(
            path,
            1,
            format!("has no line `{ENFORCED_BY} …` naming a lint or test"),
        )
    })
}

fn is_decision(path: &str) -> bool {
    path.starts_with(DECISIONS) && path.ends_with(".md") && path != DECISION_INDEX
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// A line's prose with its code spans taken out, and the code spans.
fn split_spans(line: &str) -> (String, Vec<&str>) {
    let pieces: Vec<&str> = line.split('`').collect();
    let prose = pieces
        .iter()
        .step_by(2)
        .copied()
        .collect::<Vec<_>>()
        .join("``");
    (prose, pieces.into_iter().skip(1).step_by(2).collect())
}

/// The targets of the links in a line that lead to files.
fn links(prose: &str) -> Vec<&str> {
    let inline = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next());
    let reference = prose
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .and_then(|(_, target)| target.split_whitespace().next());
    inline
        .chain(reference)
        .filter(|link| {
            !link.contains("://") && !link.starts_with("mailto:") && !link.starts_with('#')
        })
        .filter(|link| !link.is_empty())
        .collect()
}

/// The path from the root that a link in `document` leads to; `None` where it leaves the repository.
fn resolve(document: &str, link: &str) -> Option<String> {
    let target = link.split('#').next().unwrap_or(link);
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The path that a code span names, where it names one of this repository and not a pattern or a result.
fn repository_path(span: &str) -> Option<&str> {
    let plain = |char: char| char.is_ascii_alphanumeric() || "_-./".contains(char);
    let is_path = FOLDERS.iter().any(|folder| span.starts_with(folder)) && span.chars().all(plain);
    let is_result = span.contains("/results");
    let is_pattern = span.contains("NAME") || span.contains("...");
    (is_path && !is_result && !is_pattern).then_some(span)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{SourceFile, check, check_index, is_document};

    fn messages_of(path: &str, text: &str) -> Vec<String> {
        let tree = [
            "README.md",
            "docs/adr/README.md",
            "crates/make/wire",
            "crates/make/wire/src/tcp.rs",
        ];
        let problems = check(path, text, |path| tree.contains(&path));
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_lead_somewhere() {
        let text =
            "[a](docs/adr/README.md) [b](https://example.com/x) [c](#here)\n[d]: README.md#top\n";
        assert_eq!(messages_of("CONTRIBUTING.md", text), [""; 0]);
        assert_eq!(
            messages_of(
                "docs/adr/0001-a.md",
                "[a](../../README.md)\nEnforced by: b\n"
            ),
            [""; 0]
        );
        let broken = "fine\n![a](docs/b.png \"title\") and [c](gone.md)\n";
        assert_eq!(
            messages_of("README.md", broken),
            [
                "README.md:2: link to `docs/b.png`, which does not exist",
                "README.md:2: link to `gone.md`, which does not exist",
            ]
        );
        assert_eq!(messages_of("README.md", "[a](../b.md)").len(), 1);
    }

    #[test]
    fn paths_between_backticks_exist() {
        assert_eq!(
            messages_of(
                "README.md",
                "see `crates/make/wire/src/tcp.rs` and `crates/NAME/src`"
            ),
            [""; 0]
        );
        assert_eq!(
            messages_of("README.md", "`examples/*/results` `examples/a/results`"),
            [""; 0]
        );
        assert_eq!(
            messages_of("README.md", "see `crates/make/wire/src/udp.rs`"),
            ["README.md:1: names `crates/make/wire/src/udp.rs`, which does not exist"]
        );
    }

    #[test]
    fn code_is_not_read_for_links() {
        assert_eq!(
            messages_of(
                "README.md",
                "```text\n[a](gone.md) `crates/gone`\n```\n`[a](gone.md)`\n"
            ),
            [""; 0]
        );
    }

    #[test]
    fn a_decision_names_what_enforces_it() {
        assert_eq!(
            messages_of(
                "docs/adr/0001-a.md",
                "# A\n\nEnforced by: `cargo xtask tidy`\n"
            ),
            [""; 0]
        );
        for text in ["# A\n", "Enforced by:\n", "not Enforced by: x\n"] {
            assert_eq!(messages_of("docs/adr/0001-a.md", text).len(), 1, "{text}");
        }
        assert_eq!(messages_of("docs/performance.md", "# A\n"), [""; 0]);
    }

    #[test]
    fn every_decision_and_guide_is_listed() {
        let paths = BTreeSet::from([
            "docs/adr/0001-a.md",
            "docs/adr/0002-b.md",
            "docs/adr/README.md",
            "docs/formats/z.md",
            "docs/x.md",
            "docs/y.md",
            "docs/SUMMARY.md",
        ]);
        let index = SourceFile {
            path: "docs/adr/README.md".to_owned(),
            text: "* [A](0001-a.md)\n".to_owned(),
        };
        let book = SourceFile {
            path: "docs/SUMMARY.md".to_owned(),
            text: "* [X](x.md)\n".to_owned(),
        };
        let problems = check_index(&[index, book], &paths);
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "docs/adr/README.md:1: does not list `0002-b.md`",
                "docs/SUMMARY.md:1: does not list `y.md`",
            ]
        );
    }

    #[test]
    fn the_input_of_a_test_is_no_document() {
        assert!(is_document("examples/quickstart/README.md"));
        assert!(!is_document("crates/judge/report/tests/pull_request.md"));
        assert!(!is_document("crates/judge/report/src/lib.rs"));
    }
}
