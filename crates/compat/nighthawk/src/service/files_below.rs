//! The files below one folder, for paths that a caller over the network chooses.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use stillwell_config::files::{EntryKind, Files};

/// Largest text.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// The regular files below one folder. No link is followed, and no path leads out of the folder.
#[derive(Debug)]
pub(super) struct FilesBelow<'a> {
    folder: Option<&'a AllowedFolder>,
    is_used: AtomicBool,
}

/// A folder whose files callers may name.
#[derive(Debug)]
pub struct AllowedFolder {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl AllowedFolder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// It is no folder, or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            path: path.canonicalize()?,
            descriptor: rustix::fs::open(path, flags, Mode::empty())?,
        })
    }
}

impl<'a> FilesBelow<'a> {
    /// The files below `folder`; none if there is no folder.
    pub(super) fn new(folder: Option<&'a AllowedFolder>) -> Self {
        Self {
            folder,
            is_used: AtomicBool::new(false),
        }
    }

    /// Returns true if a file was opened.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Returns the path of a file that may be read, without links.
    pub(super) fn checked_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.open(path)?;
        let folder = self.folder.ok_or_else(not_allowed)?;
        Ok(folder.path.join(below(folder, path)))
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        let folder = self.folder.ok_or_else(not_allowed)?;
        let below = below(folder, path);
        // Opening a pipe without a writer does not wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(&folder.descriptor, below, flags, Mode::empty(), resolve);
        let file = File::from(opened.map_err(|_| not_below())?);
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(not_below());
        }
        self.is_used.store(true, Ordering::Relaxed);
        Ok(file)
    }
}

/// Returns the part of `path` below the folder.
fn below<'p>(folder: &AllowedFolder, path: &'p Path) -> &'p Path {
    path.strip_prefix(&folder.path).unwrap_or(path)
}

fn not_allowed() -> io::Error {
    io::Error::other("this service reads no files for its callers: start it with --allow-files DIR")
}

/// One message for every reason: callers do not learn which files exist.
fn not_below() -> io::Error {
    io::Error::other("it is not a readable file below the folder of --allow-files")
}

impl Files for FilesBelow<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        let bytes = self.read_bytes(path, TEXT_BYTES_MAX)?;
        String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8"))
    }

    fn read_bytes(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.open(path)?;
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > limit) {
            return Err(io::Error::other("it is too large"));
        }
        Ok(bytes)
    }

    fn kind(&self, path: &Path) -> Option<EntryKind> {
        self.open(path).ok().map(|_| EntryKind::File)
    }

    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Err(not_below())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_regular_files_below_the_folder_are_read_and_no_link_is_followed() {
        let root = tempfile::tempdir().unwrap();
        let allowed = root.path().join("allowed");
        std::fs::create_dir_all(allowed.join("deep")).unwrap();
        std::fs::write(allowed.join("deep/file"), "text").unwrap();
        std::fs::write(root.path().join("secret"), "secret").unwrap();
        symlink(root.path().join("secret"), allowed.join("link")).unwrap();
        symlink(root.path(), allowed.join("out")).unwrap();
        let made = Command::new("mkfifo").arg(allowed.join("pipe")).status();
        assert!(made.unwrap().success());
        let folder = AllowedFolder::open(&allowed).unwrap();
        let files = FilesBelow::new(Some(&folder));
        let refused = [
            "link",
            "out/secret",
            "../secret",
            "deep/../../secret",
            "pipe",
            "deep",
            "absent",
            "/etc/passwd",
            "/dev/zero",
            "/proc/self/environ",
            "",
        ];
        for path in refused {
            let error = files.read(Path::new(path)).unwrap_err().to_string();
            assert!(
                error.contains("not a readable file below"),
                "{path}: {error}"
            );
        }
        assert!(!files.is_used());
        let absolute = allowed.join("deep/file");
        for path in [
            Path::new("deep/file"),
            &absolute,
            Path::new("./deep/../deep/file"),
        ] {
            assert_eq!(files.read(path).unwrap(), "text", "{}", path.display());
        }
        assert!(files.is_used());
        assert!(files.read_bytes(Path::new("deep/file"), 3).is_err());
    }

    #[test]
    fn without_a_folder_nothing_is_read() {
        let files = FilesBelow::new(None);
        let error = files.read(Path::new("/etc/passwd")).unwrap_err();
        assert!(error.to_string().contains("--allow-files"), "{error}");
        assert_eq!(files.kind(Path::new("/etc/passwd")), None);
    }
}
