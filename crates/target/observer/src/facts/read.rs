//! Small files, and the shapes of what they hold.

use std::fs;
use std::path::Path;

/// The file's text without its line end; `None` if it is empty or cannot be read.
pub(super) fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes)
        .trim_end_matches(['\n', '\0'])
        .trim()
        .to_owned();
    (!text.is_empty()).then_some(text)
}

/// The whole number in the file.
pub(super) fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// Returns the word in brackets of `always [madvise] never`.
pub(super) fn chosen(text: &str) -> Option<&str> {
    let (_, after) = text.split_once('[')?;
    Some(after.split_once(']')?.0)
}

/// Returns the value behind `key` and a colon or an equals sign.
pub(super) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once([':', '='])?;
        (name.trim() == key).then(|| value.trim().trim_matches('"'))
    })
}

/// Returns the numbers of `0-2,5`; invalid parts are skipped.
pub(super) fn list(text: &str) -> Vec<u16> {
    let parts = text.trim().split(',');
    parts
        .flat_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
                (Ok(first), Ok(last)) => (first..=last).collect(),
                _ => Vec::new(),
            }
        })
        .collect()
}

/// The names in the folder, sorted.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
