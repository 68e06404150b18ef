//! Files and folders of results, for their owner alone: they hold the command, environment and output of a
//! target.
//!
//! A file is made below the handle of its folder and is always a new one. A link, pipe or socket of its name
//! is removed, not followed or opened.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

/// Makes `folder`, and what is missing above it, with mode 0700. A folder that is there keeps its permissions.
///
/// # Errors
/// The kernel's answer.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes the file `path` with mode 0600, in place of one that is there.
///
/// # Errors
/// The kernel's answer; `EEXIST` if another process makes it meanwhile.
pub fn create_private(path: &Path) -> io::Result<File> {
    let (folder, name) = opened(path)?;
    create_below(&folder, name, OFlags::empty())
}

/// Makes the file `path` like [`create_private`]; what is written to it goes to its end.
///
/// # Errors
/// As [`create_private`].
pub fn create_private_log(path: &Path) -> io::Result<File> {
    let (folder, name) = opened(path)?;
    create_below(&folder, name, OFlags::APPEND)
}

/// Writes `bytes` to the file `path`, made like [`create_private`].
///
/// # Errors
/// As [`create_private`], and those of writing.
pub fn write_private(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create_private(path)?.write_all(bytes.as_ref())
}

/// Replaces the file `path` in one step by what `write` writes, so a reader sees the old or the new one and
/// never half of it.
///
/// # Errors
/// As [`create_private`], and those of `write`.
pub fn replace_private(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let (folder, name) = opened(path)?;
    let mut new = name.to_owned();
    new.push(".new");
    let mut file = create_below(&folder, &new, OFlags::empty())?;
    write(&mut file)?;
    file.sync_all()?;
    Ok(renameat(&folder, &new, &folder, name)?)
}

/// Returns the folder of `path`, and the name of the file in it.
fn opened(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((openat(CWD, &folder, flags, Mode::empty())?, name))
}

fn create_below(folder: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<File> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags =
        flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(File::from(openat(folder, name, flags, mode)?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_and_folders_are_their_owners_alone() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("a/b");
        make_private(&folder).unwrap();
        let old = folder.join("old");
        fs::write(&old, "longer than the new one").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).unwrap();
        for path in [folder.join("new"), old] {
            write_private(&path, "text").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"text");
            assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
            replace_private(&path, |file| file.write_all(b"again")).unwrap();
            assert_eq!(
                (fs::read(&path).unwrap(), mode(&path)),
                (b"again".to_vec(), 0o600)
            );
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }

    #[test]
    fn links_pipes_and_sockets_are_replaced_and_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let link_target = base.path().join("victim");
        fs::write(&link_target, "kept").unwrap();
        let path = base.path().join("file");
        let makers: [fn(&Path, &Path); 4] = [
            |_, link_target| symlink("victim", link_target.with_file_name("file")).unwrap(),
            |path, _| symlink("/nowhere/at/all", path).unwrap(),
            |path, _| {
                let made = std::process::Command::new("mkfifo").arg(path).status();
                assert!(made.unwrap().success());
            },
            |path, _| drop(UnixListener::bind(path).unwrap()),
        ];
        for make in makers {
            for log in [false, true] {
                make(&path, &link_target);
                let made = if log {
                    create_private_log(&path)
                } else {
                    create_private(&path)
                };
                made.unwrap().write_all(b"x").unwrap();
                assert!(fs::symlink_metadata(&path).unwrap().is_file());
                fs::remove_file(&path).unwrap();
            }
        }
        symlink("victim", base.path().join("file.new")).unwrap();
        replace_private(&path, |file| file.write_all(b"x")).unwrap();
        assert_eq!(fs::read(&link_target).unwrap(), b"kept");
    }

    #[test]
    fn a_folder_is_not_replaced() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("folder");
        fs::create_dir(&folder).unwrap();
        assert!(create_private(&folder).is_err());
        assert!(create_private(Path::new("/")).is_err());
        assert!(folder.is_dir());
    }
}
