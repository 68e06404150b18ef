//! The kernel's table of mounts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The kind and the source of the file system that was mounted last at `at`, if one was at that
/// very place. Looks at nothing in `at` itself, which may hang.
pub(super) fn mounted_at(at: &Path) -> Option<(String, String)> {
    let table = fs::read("/proc/self/mountinfo").ok()?;
    let at = plain(at);
    mounted_in(&table, &at)
}

/// All places where the file system that was mounted last is of `kind`, with its source.
pub(super) fn sources_of(kind: &str) -> Vec<(PathBuf, String)> {
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    sources_in(&table, kind)
}

fn sources_in(table: &[u8], kind: &str) -> Vec<(PathBuf, String)> {
    // The last entry of a place replaces those before it.
    let mounted: BTreeMap<PathBuf, (String, String)> = entries(table)
        .map(|(place, kind, source)| (place, (kind, source)))
        .collect();
    let matching = mounted.into_iter().filter(|(_, (name, _))| name == kind);
    matching
        .map(|(place, (_, source))| (place, source))
        .collect()
}

/// The path without links in its parents; the last part is taken as it is.
fn plain(at: &Path) -> PathBuf {
    let parent = at.parent().and_then(|parent| fs::canonicalize(parent).ok());
    match (parent, at.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => at.to_owned(),
    }
}

fn mounted_in(table: &[u8], at: &Path) -> Option<(String, String)> {
    let there = entries(table).filter(|(place, ..)| place == at);
    there.last().map(|(_, kind, source)| (kind, source))
}

/// Places, kinds and sources, in the order in which they were mounted.
fn entries(table: &[u8]) -> impl Iterator<Item = (PathBuf, String, String)> {
    let lines = table.split(|byte| *byte == b'\n');
    lines.filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let place = unescaped(fields.nth(4)?);
        // Optional fields end with a dash.
        fields.find(|field| *field == b"-")?;
        let kind = String::from_utf8(fields.next()?.to_vec()).ok()?;
        let source = String::from_utf8_lossy(fields.next().unwrap_or_default());
        Some((place.into(), kind, source.into_owned()))
    })
}

/// Decodes spaces and similar characters from a backslash and three octal digits.
fn unescaped(field: &[u8]) -> OsString {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let code = (*first == b'\\').then(|| octal(tail)).flatten();
        match code {
            Some(byte) => {
                plain.push(byte);
                rest = &tail[3..];
            }
            None => {
                plain.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(plain)
}

fn octal(digits: &[u8]) -> Option<u8> {
    let digits = std::ffi::OsStr::from_bytes(digits.get(..3)?).to_str()?;
    u8::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"22 1 254:0 / / rw - ext4 /dev/root rw\n\
        40 22 0:35 / /mnt/a\\040b rw,nosuid shared:1 master:2 - tmpfs tmpfs rw\n\
        41 22 0:36 / /mnt/a\\040b rw,nosuid - fuse.stillwell stillwell rw\n";

    #[test]
    fn the_last_that_was_mounted_at_a_place_counts() {
        let mounted = |at: &str| mounted_in(TABLE, Path::new(at));
        let pair = |kind: &str, source: &str| Some((kind.to_owned(), source.to_owned()));
        assert_eq!(mounted("/mnt/a b"), pair("fuse.stillwell", "stillwell"));
        assert_eq!(mounted("/"), pair("ext4", "/dev/root"));
        assert_eq!(mounted("/mnt"), None);
    }

    #[test]
    fn sources_are_those_of_uncovered_file_systems() {
        let sources = |table: &[u8], kind: &str| {
            let sources = sources_in(table, kind).into_iter();
            sources.map(|(_, source)| source).collect::<Vec<_>>()
        };
        assert_eq!(sources(TABLE, "tmpfs"), [""; 0]);
        assert_eq!(sources(TABLE, "fuse.stillwell"), ["stillwell"]);
        let below = b"40 22 0:35 / /mnt/a rw - tmpfs stillwell-x rw\n";
        assert_eq!(sources(below, "tmpfs"), ["stillwell-x"]);
    }

    #[test]
    fn a_backslash_that_begins_no_number_is_one() {
        assert_eq!(unescaped(b"a\\b\\04\\011"), OsString::from("a\\b\\04\t"));
    }
}
