//! Articles and plurals in the texts of the program, and in the snapshots of what it generates.

use super::Problem;
use super::files::SourceFile;
use super::rust::Place;
use super::scan::{scan, words};

/// Beginnings of words that begin with a vowel and sound as a consonant.
const CONSONANT_SOUNDS: [&str; 13] = [
    "one", "once", "uni", "usa", "usi", "use", "usu", "util", "udp", "utc", "ui", "url", "eu",
];
/// Beginnings of words that begin with a consonant and sound as a vowel.
const VOWEL_SOUNDS: [&str; 11] = [
    "hour", "honest", "html", "http", "hdr", "x", "mser", "ssh", "fsync", "lru", "mru",
];
/// Words that are counted in generated messages.
const COUNTED: [&str; 14] = [
    "captures",
    "connections",
    "errors",
    "events",
    "experiments",
    "files",
    "pairs",
    "requests",
    "runs",
    "samples",
    "targets",
    "values",
    "warnings",
    "workers",
];

/// Checks the literals of a source file outside tests, or a snapshot.
pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    if file.path.ends_with(".snap") {
        let lines = file.text.lines().enumerate();
        let wrong = lines.flat_map(|(index, line)| {
            let wrong = articles(line).into_iter().chain(plurals(line));
            wrong.map(move |text| (index, text))
        });
        return problems(file, wrong);
    }
    if !file.path.ends_with(".rs") || Place::of(&file.path).is_test {
        return Vec::new();
    }
    let scanned = scan(&file.text);
    let literals = scanned.literals.iter().enumerate();
    let literals = literals.filter(|(index, _)| !scanned.in_tests[*index]);
    let wrong = literals.flat_map(|(index, line)| {
        let wrong = articles(line).into_iter();
        wrong.map(move |text| (index, text))
    });
    problems(file, wrong)
}

fn problems(file: &SourceFile, wrong: impl Iterator<Item = (usize, String)>) -> Vec<Problem> {
    let problem = |(index, text): (usize, String)| {
        Problem::new(&file.path, index + 1, format!("`{text}`: wrong grammar"))
    };
    wrong.map(problem).collect()
}

/// Returns the wrong articles in a line.
fn articles(line: &str) -> Vec<String> {
    let parts: Vec<&str> = line.split(' ').collect();
    let pairs = parts.windows(2).filter_map(|pair| {
        let article = pair[0].trim_start_matches(['"', '(', '\'']);
        let is_an = match article {
            "a" | "A" => false,
            "an" | "An" => true,
            _ => return None,
        };
        let word = words(pair[1].trim_start_matches('`')).next()?;
        let is_plain = pair[1].trim_start_matches('`').starts_with(word);
        let is_lower = word.len() > 1 && word.chars().skip(1).all(|c| c.is_ascii_lowercase());
        let is_wrong = is_plain && is_lower && begins_with_vowel(word) != is_an;
        is_wrong.then(|| format!("{article} {word}"))
    });
    pairs.collect()
}

/// Returns true if `word` sounds as if it began with a vowel.
fn begins_with_vowel(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let begins = |starts: &[&str]| starts.iter().any(|start| word.starts_with(start));
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        !begins(&CONSONANT_SOUNDS)
    } else {
        begins(&VOWEL_SOUNDS)
    }
}

/// Returns the plurals of one thing in a line, such as `1 more runs`.
fn plurals(line: &str) -> Vec<String> {
    let parts: Vec<&str> = line.split(' ').collect();
    let wrong = parts.iter().enumerate().filter_map(|(at, part)| {
        if part.trim_start_matches(['(', '"']) != "1" {
            return None;
        }
        let after = parts[at + 1..].iter().take(2);
        let counted = after.map(|word| word.trim_end_matches(|c: char| !c.is_ascii_lowercase()));
        let mut counted =
            counted.skip_while(|word| ["more", "other", "valid", "lost"].contains(word));
        let word = counted.next()?;
        COUNTED.contains(&word).then(|| format!("1 {word}"))
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_follow_the_sound() {
        for line in [
            "a unit, a user and an hour",
            "an HTTP request, an error, a one-sided test",
            "`a` is not an option; a {kind}",
            "a UDP socket, an x axis",
        ] {
            assert!(articles(line).is_empty(), "{line}: {:?}", articles(line));
        }
        assert_eq!(articles("it is a event"), ["a event"]);
        assert_eq!(articles("an `one` of several"), ["an one"]);
    }

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!(
            plurals("and 1 more runs, 1 requests"),
            ["1 runs", "1 requests"]
        );
        for line in ["1 run", "11 runs", "0.1 runs", "1 more run", "1 of 4 runs"] {
            assert!(plurals(line).is_empty(), "{line}");
        }
    }
}
