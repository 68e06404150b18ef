//! A file that is checked before it is written.

use std::io;
use std::path::{Path, PathBuf};

use stillwell_config::files::{Disk, EntryKind, Files};

/// The disk, with one more file.
#[derive(Debug)]
pub(super) struct Unwritten {
    /// Absolute path of the file.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Files for Unwritten {
    fn read(&self, path: &Path) -> io::Result<String> {
        match path == self.path {
            true => Ok(self.text.clone()),
            false => Disk.read(path),
        }
    }

    fn read_bytes(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        match path == self.path {
            true => Ok(self.text.clone().into_bytes()),
            false => Disk.read_bytes(path, limit),
        }
    }

    fn kind(&self, path: &Path) -> Option<EntryKind> {
        match path == self.path {
            true => Some(EntryKind::File),
            false => Disk.kind(path),
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        Disk.list(folder)
    }
}
