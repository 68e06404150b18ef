//! The files of Unix sockets.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file of a Unix socket; dropping it removes the file, unless another has
/// taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    /// The file at `path`, where a socket was just bound; `None` where it has
    /// gone already.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        identity(path).map(|identity| Self {
            path: path.to_owned(),
            identity,
        })
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path) == Some(self.identity) {
            // A file that stays is replaced by the next program that binds there.
            std::fs::remove_file(&self.path).unwrap_or_default();
        }
    }
}

/// Device and number of the file at `path`.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = path.symlink_metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}
