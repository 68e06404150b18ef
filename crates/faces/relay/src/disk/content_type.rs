//! Content type of the newest request: the next relay sends the events that are left with it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The file within the buffer's folder.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("content-type")
}

/// Returns the content type that is kept in `folder`; empty if there is none.
pub(super) fn read(folder: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path(folder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        kept => kept,
    }
}

/// Keeps `content_type` in place of the one before it, which stays if that fails.
pub(super) fn keep(folder: &Path, content_type: &[u8], is_synced: bool) -> io::Result<()> {
    let new = folder.join("content-type.new");
    let mut file = File::create(&new)?;
    file.write_all(content_type)?;
    if is_synced {
        file.sync_data()?;
    }
    fs::rename(&new, path(folder))?;
    if is_synced {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
