//! Words that must be absent from Rust files.

use super::Problem;
use super::files::SourceFile;
use super::scan::{Scanned, contains_word, scan, words};
use super::table::{Entry, FILE_READERS, UNSAFE_FILES, entry};

const MAX_LINES: usize = 800;
const MAX_COLUMNS: usize = 140;

/// In two halves, so a plain search of the tree does not find this file.
const UNFINISHED: [&str; 2] = [concat!("to", "do"), concat!("fix", "me")];
const UNFINISHED_MACROS: [&str; 2] = [concat!("to", "do!"), concat!("unimple", "mented!")];
const SILENCED: [&str; 2] = [concat!("#[", "allow("), concat!("#![", "allow(")];

/// Words that must not be in code outside tests, except where they belong.
struct Absence {
    words: &'static [&'static str],
    /// Returns true where the words are forbidden.
    forbidden: fn(&Place<'_>) -> bool,
    message: &'static str,
}

const ABSENCES: &[Absence] = &[
    Absence {
        words: &[
            "thread::spawn",
            "thread::scope",
            "thread::Builder",
            "tokio::spawn",
            "task::spawn",
            "spawn_local",
            "spawn_blocking",
            "JoinSet",
        ],
        forbidden: |place| place.name != "scope",
        message: "only crate `scope` starts threads and tasks",
    },
    Absence {
        words: &["Instant", "SystemTime"],
        forbidden: |place| place.is_pure(),
        message: "a pure crate has no clock: `now` is an argument",
    },
    Absence {
        words: &[
            "std::fs",
            "std::thread",
            "std::env",
            "std::process",
            "std::os",
        ],
        forbidden: |place| place.is_pure(),
        message: "a pure crate has no file, thread or environment: take the bytes as an argument",
    },
    Absence {
        words: &["fs::read", "fs::read_to_string", "File::open"],
        forbidden: |place| ["cli", "config", "lading", "nighthawk", "others"].contains(&place.name),
        message: "`config::files` opens what a user names: `read_input`, `read_text` or `open_input`",
    },
    Absence {
        words: &["println!", "eprintln!", "print!", "eprint!"],
        forbidden: |place| !["cli", "testkit", "xtask"].contains(&place.name),
        message: "nothing is printed outside crate `cli`",
    },
];

/// Checks one Rust file.
pub(super) fn check(path: &str, text: &str) -> Vec<Problem> {
    let place = Place::of(path);
    let scanned = scan(text);
    let mut messages = check_shape(path, text);
    for (index, code) in scanned.code.iter().enumerate() {
        let line = index + 1;
        let mut messages_here = check_everywhere(path, &place, code);
        messages_here.extend(check_comment(&scanned, index));
        if !place.is_test
            && !scanned.in_tests[index]
            && !FILE_READERS.iter().any(|(reader, _)| *reader == path)
        {
            messages_here.extend(check_absences(&place, code));
        }
        messages.extend(messages_here.into_iter().map(|message| (line, message)));
    }
    let problems = messages.into_iter();
    problems
        .map(|(line, message)| Problem::new(path, line, message))
        .collect()
}

/// Each file that may contain `unsafe` is there and does.
pub(super) fn check_unsafe_table(sources: &[SourceFile]) -> Vec<Problem> {
    check_unsafe_entries(sources, UNSAFE_FILES)
}

fn check_unsafe_entries(sources: &[SourceFile], table: &[(&str, &str)]) -> Vec<Problem> {
    let stale = table.iter().filter(|(path, _)| {
        let file = sources.iter().find(|file| file.path == *path);
        !file.is_some_and(|file| {
            scan(&file.text)
                .code
                .iter()
                .any(|line| contains_word(line, "unsafe"))
        })
    });
    stale
        .map(|(path, _)| {
            Problem::new(
                path,
                1,
                "listed for `unsafe`, but there is none: take it off the table",
            )
        })
        .collect()
}

/// The crate and the role of a file.
pub(super) struct Place<'a> {
    /// The crate, by its name in the table, or the first folder.
    pub(super) name: &'a str,
    entry: Option<&'static Entry>,
    /// The whole file is a test, a benchmark or an example.
    pub(super) is_test: bool,
}

impl<'a> Place<'a> {
    /// Reads it from the file's path.
    pub(super) fn of(path: &'a str) -> Self {
        let folders: Vec<&str> = path.split('/').collect();
        let name = match folders.as_slice() {
            ["crates", _floor, name, ..] => name,
            [first, ..] => first,
            [] => "",
        };
        let test_folders = ["tests", "benches", "examples"];
        let is_test = folders.iter().any(|folder| test_folders.contains(folder))
            || path.ends_with("/tests.rs")
            || (path.ends_with("/build.rs") && !path.contains("/src/"));
        Self {
            name,
            entry: entry(name),
            is_test,
        }
    }

    fn is_pure(&self) -> bool {
        self.entry.is_some_and(|entry| entry.pure)
    }
}

fn check_shape(path: &str, text: &str) -> Vec<(usize, String)> {
    let mut messages = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        messages.push((
            MAX_LINES + 1,
            format!("{lines} lines: split the file, {MAX_LINES} is the most"),
        ));
    }
    if path.ends_with("/mod.rs") {
        messages.push((
            1,
            "`mod.rs`: name the file after its module, beside the module's folder".to_owned(),
        ));
    }
    for (index, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > MAX_COLUMNS {
            messages.push((
                index + 1,
                format!("{columns} columns: {MAX_COLUMNS} is the most"),
            ));
        }
    }
    messages
}

/// Rules that hold in tests as well.
fn check_everywhere(path: &str, place: &Place<'_>, code: &str) -> Vec<String> {
    let mut messages = Vec::new();
    for word in SILENCED {
        if code.contains(word) {
            messages.push(format!("`{word}…)]`: use `#[expect(…, reason = \"…\")]`"));
        }
    }
    for word in UNFINISHED_MACROS {
        if contains_word(code, word) {
            messages.push(format!("`{word}`: finish it, or leave it out"));
        }
    }
    let listed = UNSAFE_FILES.iter().any(|(file, _)| *file == path);
    if !listed && contains_word(code, "unsafe") {
        messages.push("`unsafe` in a file that is not on the table of such files".to_owned());
    }
    if !["config", "lading", "nighthawk", "others"].contains(&place.name)
        && let Some(name) = defined_spec(code)
    {
        messages.push(format!(
            "`{name}`: `…Spec` types stay in crate `config`; other crates use a plan type"
        ));
    }
    messages
}

fn check_comment(scanned: &Scanned, index: usize) -> Option<String> {
    let comment = scanned.comments.get(index)?.to_lowercase();
    let word = UNFINISHED
        .into_iter()
        .find(|word| contains_word(&comment, word))?;
    Some(format!(
        "`{}` in a comment: finish it, or open an issue",
        word.to_uppercase()
    ))
}

fn check_absences(place: &Place<'_>, code: &str) -> Vec<String> {
    let forbidden = ABSENCES.iter().filter(|absence| (absence.forbidden)(place));
    forbidden
        .filter_map(|absence| {
            let word = absence
                .words
                .iter()
                .find(|word| contains_word(code, word))?;
            Some(format!("`{word}`: {}", absence.message))
        })
        .collect()
}

/// The name that ends in `Spec` and is defined on this line.
fn defined_spec(code: &str) -> Option<&str> {
    let keywords = ["struct", "enum", "union", "type", "trait"];
    let mut words = words(code).skip_while(|word| !keywords.contains(word));
    words.next()?;
    words.next().filter(|name| name.ends_with("Spec"))
}

#[cfg(test)]
mod tests;
