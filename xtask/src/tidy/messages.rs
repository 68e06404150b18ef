//! The texts of the program for people: messages, help, report texts.

use super::files::SourceFile;
use super::rust::Place;
use super::scan::scan;

/// A literal with fewer words is a name or a key.
const WORDS_MIN: usize = 3;

/// Lists the texts of `units`, or of all crates if there are none, as `path:line: text`.
pub(super) fn find(sources: &[SourceFile], units: &[&str]) -> Vec<String> {
    let mut messages = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
        let place = Place::of(&source.path);
        let is_meant = units.is_empty() || units.contains(&place.name);
        if place.is_test || !is_meant {
            continue;
        }
        let scanned = scan(&source.text);
        for (index, literals) in scanned.literals.iter().enumerate() {
            let text = literals.trim();
            if !scanned.in_tests[index] && text.split_whitespace().count() >= WORDS_MIN {
                messages.push(format!("{}:{}: {text}", source.path, index + 1));
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::super::files::SourceFile;
    use super::find;

    #[test]
    fn messages_are_the_texts_outside_tests() {
        let text = "// a comment of words\nlet a = \"no room in {path}\";\nlet b = \"key\";\n\
                    #[cfg(test)]\nmod tests {\n    const A: &str = \"a text of tests\";\n}\n";
        let source = |path: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let sources = [
            source("crates/make/http/src/a.rs"),
            source("crates/make/http/tests/a.rs"),
            source("crates/make/wire/src/a.rs"),
        ];
        assert_eq!(
            find(&sources, &["http"]),
            ["crates/make/http/src/a.rs:2: no room in {path}"]
        );
        assert_eq!(find(&sources, &[]).len(), 2);
    }
}
