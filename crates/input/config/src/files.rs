//! The file system, as far as configuration needs it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use stillwell_text::{Diagnostic, Source, code};

pub use self::input::{open_input, read_input};

mod input;

/// Texts are small; what is larger was not meant to be one.
const BYTES_MAX: u64 = 16 << 20;

/// A file system, as far as configuration needs it.
pub trait Files: Debug {
    /// The text of a file.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Reads the bytes of a file, which may be a pipe.
    ///
    /// # Errors
    /// The file cannot be read, or has more than `limit` bytes.
    fn read_bytes(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;
    /// The kind of the entry at `path`; none if there is nothing.
    fn kind(&self, path: &Path) -> Option<EntryKind>;
    /// The entries of a folder, in the order of names.
    ///
    /// # Errors
    /// The reason why it cannot be listed.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
}

/// A kind of entry of a folder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a socket or a device.
    Special,
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<String> {
        let bytes = read_input(path, BYTES_MAX)?;
        String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8"))
    }

    fn read_bytes(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        read_input(path, limit)
    }

    fn kind(&self, path: &Path) -> Option<EntryKind> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(if metadata.is_dir() {
            EntryKind::Folder
        } else if metadata.is_file() {
            EntryKind::File
        } else {
            EntryKind::Special
        })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder)?;
        let mut paths = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<Vec<PathBuf>>>()?;
        paths.sort();
        Ok(paths)
    }
}

/// Files in memory by path, for tests of readers. Their folders are those above them.
#[derive(Debug, Default)]
pub struct InMemory(pub BTreeMap<PathBuf, String>);

impl InMemory {
    /// Files with these paths and texts.
    #[must_use]
    pub fn with<const N: usize>(files: [(&str, &str); N]) -> Self {
        Self(
            files
                .map(|(path, text)| (path.into(), text.to_owned()))
                .into(),
        )
    }
}

impl Files for InMemory {
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = self.0.get(path).cloned();
        text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn read_bytes(&self, path: &Path, _limit: u64) -> io::Result<Vec<u8>> {
        self.read(path).map(String::into_bytes)
    }

    fn kind(&self, path: &Path) -> Option<EntryKind> {
        if self.0.contains_key(path) {
            return Some(EntryKind::File);
        }
        let mut below = self.0.keys().filter(|file| file.starts_with(path));
        below.next().map(|_| EntryKind::Folder)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let below = self.0.keys().filter_map(|file| {
            let rest = file.strip_prefix(folder).ok()?;
            Some(folder.join(rest.components().next()?))
        });
        let mut entries: Vec<PathBuf> = below.collect();
        entries.dedup();
        Ok(entries)
    }
}

/// Reads the text at `path`, a file or a pipe of at most 16 MiB.
///
/// # Errors
/// It cannot be read, or is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    Disk.read(path)
}

/// Reads the file at `path`.
///
/// # Errors
/// The reason why it cannot be read, as a diagnostic.
pub fn read_source(files: &dyn Files, path: &Path) -> Result<Arc<Source>, Box<Diagnostic>> {
    match files.read(path) {
        Ok(text) => Ok(Source::new(shown(path), text)),
        Err(error) => {
            let message = format!("cannot read {}: {error}", shown(path).display());
            Err(Box::new(Diagnostic::error(code::UNREADABLE, message)))
        }
    }
}

/// `path` as messages show it: relative to the current folder where it is
/// below it.
fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    match path.strip_prefix(here) {
        Ok(below) if below.components().next().is_some() => below.to_path_buf(),
        _ => path.to_path_buf(),
    }
}

/// `path` relative to `folder`, without `.` and `..` where they can be folded.
/// What begins with a place such as `{self}` stays.
#[must_use]
pub fn resolve(folder: &Path, path: &str) -> PathBuf {
    if path.starts_with('{') {
        return path.into();
    }
    let mut folded = PathBuf::new();
    for component in folder.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if folded.file_name().is_some() => {
                folded.pop();
            }
            other => folded.push(other),
        }
    }
    folded
}

/// The files in a folder, not in those below it, by name.
///
/// # Errors
/// A message: the folder cannot be listed, or it holds no files.
pub fn files_in(files: &dyn Files, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = files.list(folder).map_err(|error| error.to_string())?;
    let paths: Vec<PathBuf> = listed
        .into_iter()
        .filter(|path| files.kind(path) == Some(EntryKind::File))
        .collect();
    if paths.is_empty() {
        return Err(format!("{} holds no files", folder.display()));
    }
    Ok(paths)
}

/// `path` as an absolute path.
#[must_use]
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_folded() {
        let folder = Path::new("/suite/one");
        for (path, resolved) in [
            ("./conf", "/suite/one/conf"),
            ("../two", "/suite/two"),
            ("/etc/x", "/etc/x"),
            ("{self}", "{self}"),
            (".", "/suite/one"),
        ] {
            assert_eq!(resolve(folder, path), Path::new(resolved));
        }
    }
}
