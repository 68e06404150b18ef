//! The texts of the program for people: messages, help, report texts.

use super::Problem;
use super::files::SourceFile;
use super::rust::Place;
use super::scan::scan;

/// A literal with fewer words is a name or a key.
const WORDS_MIN: usize = 3;

/// Files whose doc comments are texts: help of options and commands, explanations of codes.
const DOCUMENTED: [&str; 2] = [
    "crates/faces/cli/src/arguments",
    "crates/words/text/src/code.rs",
];

/// Texts of other tools, with the words of those tools.
const COPIED: [&str; 3] = [
    "crates/compat/nighthawk/",
    "crates/judge/report/src/suite/regression_detector.rs",
    "crates/make/payload/src/",
];

/// Beginnings of words with a vowel as first letter and a consonant as first sound.
const CONSONANT_SOUNDS: [&str; 4] = ["eu", "one", "uni", "us"];

/// Beginnings of words with a consonant as first letter and a vowel as first sound.
const VOWEL_SOUNDS: [&str; 2] = ["honest", "hour"];

/// Lists the texts of `units`, or of all crates if there are none, as `path:line: text`.
pub(super) fn find(sources: &[SourceFile], units: &[&str]) -> Vec<String> {
    let listed = sources.iter().filter(|source| {
        let name = Place::of(&source.path).name;
        units.is_empty() || units.contains(&name)
    });
    let texts = listed.flat_map(|source| {
        let texts = texts(source).into_iter();
        texts.map(|(line, text)| format!("{}:{line}: {text}", source.path))
    });
    texts.collect()
}

/// Checks articles and plurals of every text.
pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let is_checked = |source: &&SourceFile| {
        source.path.starts_with("crates/")
            && !COPIED.iter().any(|folder| source.path.starts_with(folder))
    };
    let mut problems = Vec::new();
    for source in sources.iter().filter(is_checked) {
        for (line, text) in texts(source) {
            let mistakes = mistakes(&text).into_iter();
            problems.extend(mistakes.map(|mistake| Problem::new(&source.path, line, mistake)));
        }
    }
    problems
}

/// The texts of a file, each with its line, which counts from 1.
fn texts(source: &SourceFile) -> Vec<(usize, String)> {
    if !source.path.ends_with(".rs") || Place::of(&source.path).is_test {
        return Vec::new();
    }
    let scanned = scan(&source.text);
    let has_help = DOCUMENTED
        .iter()
        .any(|start| source.path.starts_with(start));
    let mut texts = Vec::new();
    for (index, literals) in scanned.literals.iter().enumerate() {
        if scanned.in_tests[index] {
            continue;
        }
        let comment = scanned.comments[index].trim();
        let help = comment.strip_prefix("///").filter(|_| has_help);
        for text in [literals.trim(), help.unwrap_or_default().trim()] {
            if text.split_whitespace().count() >= WORDS_MIN {
                texts.push((index + 1, text.to_owned()));
            }
        }
    }
    texts
}

/// Optional plurals, and articles that do not fit the next word.
fn mistakes(text: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    if text.contains("(s)") {
        mistakes.push("`(s)`: write singular or plural by the number".to_owned());
    }
    let words: Vec<&str> = text.split(' ').collect();
    for pair in words.windows(2) {
        let &[article, word] = pair else { continue };
        // Capitals are read letter by letter or not, and a placeholder is unknown.
        if !word.starts_with(|char: char| char.is_ascii_lowercase()) {
            continue;
        }
        let begins = |beginnings: &[&str]| beginnings.iter().any(|start| word.starts_with(start));
        let has_vowel = word.starts_with(['a', 'e', 'i', 'o', 'u']) && !begins(&CONSONANT_SOUNDS)
            || begins(&VOWEL_SOUNDS);
        let expected = if has_vowel { "an" } else { "a" };
        if ["a", "an"].contains(&article) && article != expected && word.len() > 1 {
            mistakes.push(format!("`{article} {word}`: write `{expected} {word}`"));
        }
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::files::{SourceFile, read_all};
    use super::{check, find, mistakes};

    fn source(path: &str, text: &str) -> SourceFile {
        SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn messages_are_the_texts_outside_tests() {
        let text = "// a comment of words\nlet a = \"no room in {path}\";\nlet b = \"key\";\n\
                    #[cfg(test)]\nmod tests {\n    const A: &str = \"a text of tests\";\n}\n";
        let sources = [
            source("crates/make/http/src/a.rs", text),
            source("crates/make/http/tests/a.rs", text),
            source("crates/make/wire/src/a.rs", text),
        ];
        assert_eq!(
            find(&sources, &["http"]),
            ["crates/make/http/src/a.rs:2: no room in {path}"]
        );
        assert_eq!(find(&sources, &[]).len(), 2);
    }

    #[test]
    fn help_is_a_text() {
        let text = "/// Rate of the load.\npub rate: Rate,\n";
        let help = [source("crates/faces/cli/src/arguments/load.rs", text)];
        assert_eq!(
            find(&help, &[]),
            ["crates/faces/cli/src/arguments/load.rs:1: Rate of the load."]
        );
        let comment = [source("crates/make/http/src/load.rs", text)];
        assert_eq!(find(&comment, &[]), [""; 0]);
    }

    #[test]
    fn articles_and_plurals_fit() {
        let cases = [
            ("a event rate", "`a event`: write `an event`"),
            ("an text of words", "`an text`: write `a text`"),
            ("an unit of time", "`an unit`: write `a unit`"),
            ("a hour of load", "`a hour`: write `an hour`"),
            (
                "3 connection(s) of it",
                "`(s)`: write singular or plural by the number",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(mistakes(text), [expected], "{text}");
        }
        for text in [
            "an hour of load",
            "a user with a unit",
            "an HTTP server, a {kind}",
        ] {
            assert_eq!(mistakes(text), [""; 0], "{text}");
        }
        let broken = [source(
            "crates/make/http/src/a.rs",
            "a(\"write a event rate\")",
        )];
        assert_eq!(check(&broken).len(), 1);
    }

    /// The list is made of the sources of this repository, so no text of the program is missing in it.
    #[test]
    fn the_list_has_the_texts_of_the_whole_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let sources = read_all(root).unwrap();
        let list = find(&sources, &[]);
        let units = [
            "make", "record", "target", "receive", "judge", "conduct", "input", "words",
        ];
        for unit in units {
            let folder = format!("crates/{unit}/");
            let count = list.iter().filter(|text| text.starts_with(&folder)).count();
            assert!(count > 10, "{folder}: {count} texts");
        }
        let kinds = [
            (
                "a message",
                "crates/make/wire/src/listen.rs",
                "it is already in use",
            ),
            (
                "a key of a file",
                "crates/input/config/src/spec/check.rs",
                "A bound that every run must keep.",
            ),
            (
                "help",
                "crates/faces/cli/src/arguments/load.rs",
                "Length of the load",
            ),
            (
                "an explanation",
                "crates/words/text/src/code.rs",
                "A required key is missing.",
            ),
            (
                "a report text",
                "crates/judge/report/src/suite.rs",
                "How this was measured",
            ),
            (
                "a warning",
                "crates/judge/verdict/src/run_warning.rs",
                "out of memory:",
            ),
            (
                "a metric",
                "crates/words/metric/src/catalogue.rs",
                "Events that sinks received.",
            ),
        ];
        for (kind, path, part) in kinds {
            let is_listed = |text: &String| text.starts_with(path) && text.contains(part);
            assert!(list.iter().any(is_listed), "{kind}: `{part}` of {path}");
        }
    }
}
