//! A folder as one object: a line of JSON, and the bytes of the files after it.

use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stillwell_capture::{make_private, write_private};
use stillwell_scope::{clock, explain};

use crate::store::OBJECT_MAX;

/// The first line.
#[derive(Debug, Deserialize, Serialize)]
struct Head<T> {
    result: T,
    /// Paths below the folder, and lengths.
    files: Vec<(PathBuf, u64)>,
}

/// Packs the files below `folder`, in order of their names, after `result`.
///
/// # Errors
/// Those of reading, and a bundle that is larger than an object of a store.
pub(crate) fn pack(folder: &Path, result: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut files = Vec::new();
    list(folder, Path::new(""), &mut files)?;
    files.sort();
    let size: u64 = files.iter().map(|(_, length)| length).sum();
    if size > OBJECT_MAX {
        return Err(std::io::Error::other(too_large(size)));
    }
    let mut content = Vec::new();
    for (path, length) in &mut files {
        let bytes = std::fs::read(folder.join(&path))?;
        *length = bytes.len() as u64;
        content.extend(bytes);
    }
    let mut bytes = serde_json::to_vec(&Head { result, files })?;
    bytes.push(b'\n');
    bytes.extend(content);
    let size = bytes.len() as u64;
    if size > OBJECT_MAX {
        return Err(std::io::Error::other(too_large(size)));
    }
    Ok(bytes)
}

fn too_large(size: u64) -> String {
    format!(
        "it has {} MiB, and the store accepts at most {} MiB; record less in each run (no profiles, for \
         example), or fewer pairs",
        size.div_ceil(1 << 20),
        OBJECT_MAX >> 20
    )
}

/// Lists the files below `folder`; links and sockets are left out.
fn list(folder: &Path, below: &Path, files: &mut Vec<(PathBuf, u64)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let (path, kind) = (below.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            list(folder, &path, files)?;
        } else if kind.is_file() {
            files.push((path, entry.metadata()?.len()));
        }
    }
    Ok(())
}

/// Unpacks what [`pack`] made into `folder`, and returns its result.
///
/// # Errors
/// Text for readers.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8], folder: &Path) -> Result<T, String> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or("the result has no header line")?;
    let head: Head<T> = serde_json::from_slice(&bytes[..end]).map_err(|error| explain(&error))?;
    let mut rest = &bytes[end + 1..];
    for (path, length) in &head.files {
        let is_below = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let length = usize::try_from(*length).unwrap_or(usize::MAX);
        let Some((content, left)) = rest.split_at_checked(length).filter(|_| is_below) else {
            return Err(format!("the result ends within {}", path.display()));
        };
        let file = folder.join(path);
        let made = make_private(file.parent().unwrap_or(folder));
        let written = made.and_then(|()| write_private(&file, content));
        written.map_err(|error| explain(&error))?;
        rest = left;
    }
    Ok(head.result)
}

/// A private folder that is removed.
#[derive(Debug)]
pub(crate) struct TemporaryFolder(pub(crate) PathBuf);

impl TemporaryFolder {
    pub(crate) fn new(name: &str) -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!(
            "stillwell-{name}-{}-{}",
            std::process::id(),
            clock::now().as_u64()
        ));
        make_private(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // At worst it stays.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_comes_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/b/x"), b"1\n2").unwrap();
        std::fs::write(folder.path().join("y"), b"").unwrap();
        let bytes = pack(folder.path(), &7).unwrap();
        let to = tempfile::tempdir().unwrap();
        assert_eq!(unpack::<u32>(&bytes, to.path()), Ok(7));
        assert_eq!(std::fs::read(to.path().join("a/b/x")).unwrap(), b"1\n2");
        assert_eq!(pack(to.path(), &7).unwrap(), bytes);
        assert!(unpack::<u32>(&bytes[..bytes.len() - 1], to.path()).is_err());
    }

    #[test]
    fn a_result_that_is_too_large_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(folder.path().join("x")).unwrap();
        file.set_len(OBJECT_MAX + 1).unwrap();
        let error = pack(folder.path(), &7).unwrap_err().to_string();
        assert!(
            error.starts_with("it has 257 MiB, and the store accepts at most 256 MiB"),
            "{error}"
        );
    }

    #[test]
    fn no_file_is_written_outside_the_folder() {
        let around = tempfile::tempdir().unwrap();
        let to = around.path().join("to");
        std::fs::create_dir(&to).unwrap();
        let absolute = around.path().join("x");
        for path in ["../x", absolute.to_str().unwrap(), "a/../../x"] {
            let bytes = format!("{{\"result\":1,\"files\":[[\"{path}\",1]]}}\nz");
            assert!(unpack::<u32>(bytes.as_bytes(), &to).is_err(), "{path}");
        }
        assert!(!absolute.exists());
    }
}
