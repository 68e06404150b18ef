//! A store in a folder that all nodes share.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{OBJECT_MAX, StoreError};

/// Mark of a store. Without it a folder may be the empty one below a missing mount.
const MARK: &str = ".stillwell-store";

/// Number of files that this process has written, for their temporary names.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Debug)]
pub(super) struct FolderStore {
    folder: PathBuf,
}

impl FolderStore {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    pub(super) fn is_marked(&self) -> bool {
        self.folder.join(MARK).is_file()
    }

    /// Makes the folder and its mark, where they are missing.
    pub(super) fn make(&self) -> Result<(), StoreError> {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder);
        made.map_err(|source| self.failure("make", &self.folder, source))?;
        let mark = self.folder.join(MARK);
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&mark);
        opened
            .map(drop)
            .map_err(|source| self.failure("make", &mark, source))
    }

    /// Makes the object `key` in one step; false if there is one. Its bytes are complete
    /// before its name appears, and a link never replaces another.
    pub(super) fn create(&self, key: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        let path = self.folder.join(key);
        let parent = path.parent().unwrap_or(&self.folder).to_owned();
        self.check()?;
        self.make_below(&parent)?;
        if path.exists() {
            return Ok(false);
        }
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy();
        let temporary = parent.join(format!(".new-{host}-{}-{number}", std::process::id()));
        let written = write_new(&temporary, bytes);
        let linked = written.and_then(|()| std::fs::hard_link(&temporary, &path));
        // It stays if the folder is gone; its name is never used again.
        drop(std::fs::remove_file(&temporary));
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(self.failure("write", &path, source)),
        }
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.folder.join(key);
        let mut read = read_object(&path);
        let is_missing = matches!(&read, Err(error) if error.kind() == ErrorKind::NotFound);
        if is_missing && self.revalidate(&path).is_some() {
            read = read_object(&path);
        }
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => self.check().map(|()| None),
            Err(source) => Err(self.failure("read", &path, source)),
        }
    }

    /// Opens the nearest folder of `path` that exists, up to the store, and returns it. A client of
    /// NFS caches the names that a folder does not have, until the folder is opened.
    fn revalidate<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let folders = path.ancestors().skip(1);
        let mut folders = folders.take_while(|folder| folder.starts_with(&self.folder));
        folders.find(|folder| File::open(folder).is_ok())
    }

    /// Makes the folders between the store and `parent`, and never the store.
    fn make_below(&self, parent: &Path) -> Result<(), StoreError> {
        let Ok(below) = parent.strip_prefix(&self.folder) else {
            return Ok(());
        };
        let mut folder = self.folder.clone();
        for name in below {
            folder.push(name);
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(source) => return Err(self.failure("make", &folder, source)),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.folder.join(MARK).exists() {
            return Ok(());
        }
        Err(StoreError::Missing(self.folder.display().to_string()))
    }

    fn failure(&self, action: &'static str, path: &Path, source: std::io::Error) -> StoreError {
        if self.check().is_err() && source.kind() == ErrorKind::NotFound {
            return StoreError::Missing(self.folder.display().to_string());
        }
        StoreError::Folder {
            action,
            place: path.display().to_string(),
            source,
        }
    }
}

fn read_object(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(OBJECT_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > OBJECT_MAX {
        let why = format!("it is larger than {OBJECT_MAX} bytes");
        return Err(std::io::Error::other(why));
    }
    Ok(bytes)
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_made_once_and_never_changed() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::new(&folder.path().join("a/b"));
        assert!(matches!(store.get("x"), Err(StoreError::Missing(_))));
        assert!(matches!(
            store.create("x", b"1"),
            Err(StoreError::Missing(_))
        ));
        store.make().unwrap();
        assert_eq!(store.get("t/x").unwrap(), None);
        assert!(store.create("t/x", b"1").unwrap());
        assert!(!store.create("t/x", b"2").unwrap());
        assert_eq!(store.get("t/x").unwrap(), Some(b"1".to_vec()));
        store.make().unwrap();
        let names = std::fs::read_dir(store.path().join("t")).unwrap();
        assert_eq!(names.count(), 1, "no temporary file is left");
    }

    /// Its client may have cached that the object is missing.
    #[test]
    fn the_nearest_folder_of_a_missing_object_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::new(&folder.path().join("store"));
        let nearest = |key: &str| {
            let path = store.path().join(key);
            store.revalidate(&path).map(Path::to_owned)
        };
        assert_eq!(nearest("x"), None, "folders above the store are not opened");
        store.make().unwrap();
        assert!(store.create("t/x", b"1").unwrap());
        for (key, expected) in [("t/y", "t"), ("t/u/v/y", "t"), ("y", ""), ("u/v/y", "")] {
            assert_eq!(nearest(key), Some(store.path().join(expected)), "{key}");
            assert_eq!(store.get(key).unwrap(), None, "{key}");
        }
        assert_eq!(store.get("t/x").unwrap(), Some(b"1".to_vec()));
    }

    #[test]
    fn of_many_that_make_an_object_exactly_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::new(folder.path());
        store.make().unwrap();
        let made = std::thread::scope(|scope| {
            let threads: Vec<_> = (0_u8..8)
                .map(|number| {
                    let store = &store;
                    scope.spawn(move || store.create("x", &[number; 100_000]).unwrap())
                })
                .collect();
            let made = threads.into_iter().map(|thread| thread.join().unwrap());
            made.filter(|is_made| *is_made).count()
        });
        assert_eq!(made, 1);
        let bytes = store.get("x").unwrap().unwrap();
        assert!(bytes.len() == 100_000 && bytes.iter().all(|byte| *byte == bytes[0]));
    }
}
