//! Addresses of files and folders: a root by its number, and a path below it without links.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchmod, openat, renameat, unlinkat};

/// The folders that a server shows.
#[derive(Clone, Debug)]
pub struct ResultRoots(Vec<PathBuf>);

/// A file or folder below a root.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PlaceBelow {
    /// Number of the root.
    pub root: usize,
    /// Names of the folders, then that of the file; empty for the root itself.
    pub names: Vec<String>,
}

/// Reasons why a path is not followed.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// It has a shape that our pages never make.
    #[error("`{0}` is not a valid path")]
    Shape(String),
    /// It is a link, or goes through one.
    #[error("`{0}` is a link, or is reached through one; links are not followed")]
    Link(String),
    /// It cannot be opened.
    #[error("{place}: {source}")]
    Open {
        /// The place.
        place: String,
        /// The cause.
        source: io::Error,
    },
    /// It is too large.
    #[error("{place} is larger than {max} bytes")]
    Large {
        /// The place.
        place: String,
        /// Maximum size in bytes.
        max: u64,
    },
    /// It is not text.
    #[error("{0} is not UTF-8 text")]
    Encoding(String),
}

impl PlaceBelow {
    /// Reads `ROOT` or `ROOT/NAME/NAME`.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let shape = || PlaceError::Shape(text.to_owned());
        let mut parts = text.split('/');
        let root = parts.next().filter(|root| root.len() <= 3);
        let root = root.and_then(|root| root.parse().ok()).ok_or_else(shape)?;
        let names: Vec<String> = parts.map(str::to_owned).collect();
        let is_name = |name: &String| {
            !matches!(name.as_str(), "" | "." | "..")
                && name.len() <= 255
                && !name.contains(['\0', '\\'])
        };
        if names.len() > 32 || !names.iter().all(is_name) {
            return Err(shape());
        }
        Ok(Self { root, names })
    }

    /// Returns a place in this one.
    pub fn join(&self, name: &str) -> Self {
        let mut names = self.names.clone();
        names.push(name.to_owned());
        Self {
            names,
            ..self.clone()
        }
    }

    /// Returns the address that [`Self::parse`] reads.
    pub fn address(&self) -> String {
        let mut text = self.root.to_string();
        for name in &self.names {
            text.push('/');
            text.push_str(name);
        }
        text
    }

    /// Returns the address for a link.
    pub fn link(&self) -> String {
        let mut link = String::new();
        for byte in self.address().bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                    link.push(char::from(byte));
                }
                _ => write!(link, "%{byte:02X}").expect("a String takes any text"),
            }
        }
        link
    }

    /// Returns the path below its root, for readers.
    pub fn shown(&self) -> String {
        match self.names.as_slice() {
            [] => ".".to_owned(),
            names => names.join("/"),
        }
    }
}

impl ResultRoots {
    /// Returns the roots at these folders, which exist.
    pub const fn new(folders: Vec<PathBuf>) -> Self {
        Self(folders)
    }

    /// Returns the folders.
    pub fn folders(&self) -> &[PathBuf] {
        &self.0
    }

    /// Returns the path of a place that exists and is reached without links.
    pub fn path(&self, place: &PlaceBelow) -> Result<PathBuf, PlaceError> {
        let mut path = self.root(place)?.to_path_buf();
        for name in &place.names {
            path.push(name);
            let data = path.symlink_metadata().map_err(|source| PlaceError::Open {
                place: place.shown(),
                source,
            })?;
            if data.is_symlink() {
                return Err(PlaceError::Link(place.shown()));
            }
        }
        Ok(path)
    }

    /// Reads a text file of at most `max` bytes.
    pub fn read_text(&self, place: &PlaceBelow, max: u64) -> Result<String, PlaceError> {
        let file = self.open_file(place)?;
        let mut bytes = Vec::new();
        let read = file.take(max + 1).read_to_end(&mut bytes);
        read.map_err(|source| opened(place, source))?;
        if bytes.len() as u64 > max {
            let place = place.shown();
            return Err(PlaceError::Large { place, max });
        }
        String::from_utf8(bytes).map_err(|_| PlaceError::Encoding(place.shown()))
    }

    /// Replaces the text of a file that exists, at once: readers see the old text or the new one.
    pub fn replace_text(&self, place: &PlaceBelow, text: &str) -> Result<(), PlaceError> {
        let failed = |source: io::Error| opened(place, source);
        let mode = self.open_file(place)?.metadata().map_err(failed)?;
        let mode = Mode::from_raw_mode(std::os::unix::fs::MetadataExt::mode(&mode) & 0o777);
        let folder = self.open_folder(place)?;
        let (name, _) = file_and_folders(place)?;
        let temporary = format!(".{name}.stillwell-new");
        // What an interrupted write left behind.
        unlinkat(&folder, &temporary, AtFlags::empty()).ok();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let private = Mode::RUSR | Mode::WUSR;
        let file = openat(&folder, &temporary, flags | OFlags::CLOEXEC, private);
        let mut file = File::from(file.map_err(|error| failed(error.into()))?);
        // The umask applies to the mode of a new file, and not to this one.
        let written = fchmod(&file, mode)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_all());
        let renamed = written
            .and_then(|()| renameat(&folder, &temporary, &folder, name).map_err(io::Error::from));
        if renamed.is_err() {
            unlinkat(&folder, &temporary, AtFlags::empty()).ok();
        }
        renamed.map_err(failed)
    }

    fn root(&self, place: &PlaceBelow) -> Result<&Path, PlaceError> {
        let root = self.0.get(place.root).map(PathBuf::as_path);
        root.ok_or_else(|| PlaceError::Shape(place.address()))
    }

    /// Opens a regular file.
    fn open_file(&self, place: &PlaceBelow) -> Result<File, PlaceError> {
        let folder = self.open_folder(place)?;
        let (name, _) = file_and_folders(place)?;
        // A named pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&folder, name, flags, Mode::empty());
        let file = File::from(file.map_err(|error| link_or_error(place, error))?);
        let data = file.metadata().map_err(|source| opened(place, source))?;
        match data.is_file() {
            true => Ok(file),
            false => Err(PlaceError::Shape(place.shown())),
        }
    }

    /// Opens the folder of a file, name by name: no name is a link, not even a new one.
    fn open_folder(&self, place: &PlaceBelow) -> Result<rustix::fd::OwnedFd, PlaceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, self.root(place)?, flags, Mode::empty());
        let mut folder = root.map_err(|error| opened(place, error.into()))?;
        let (_, folders) = file_and_folders(place)?;
        for name in folders {
            let inner = openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty());
            folder = inner.map_err(|error| link_or_error(place, error))?;
        }
        Ok(folder)
    }
}

fn file_and_folders(place: &PlaceBelow) -> Result<(&String, &[String]), PlaceError> {
    let split = place.names.split_last();
    split.ok_or_else(|| PlaceError::Shape(place.address()))
}

fn opened(place: &PlaceBelow, source: io::Error) -> PlaceError {
    let place = place.shown();
    PlaceError::Open { place, source }
}

fn link_or_error(place: &PlaceBelow, error: rustix::io::Errno) -> PlaceError {
    match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => PlaceError::Link(place.shown()),
        other => opened(place, other.into()),
    }
}

#[cfg(test)]
mod tests;
