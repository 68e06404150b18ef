//! Default folders.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use rustix::fs::{Mode, OFlags, open};
use stillwell_capture::make_private;
use stillwell_config::files::read_text;
use stillwell_experiment::timestamp;
use stillwell_scope::clock;

use crate::command::guardian;
use crate::command::random::random;
use crate::exit::{CommandError, Exit};

/// Results of `run` and `observe`, below the working directory.
pub(crate) const HOME: &str = ".stillwell";

/// Makes a new folder below `kind`, named by the time and `name`, so names sort by age. A command that begins in the
/// same second gets another one. A folder that cannot be made is reported when it is used.
pub(crate) fn fresh(kind: &str, name: &str) -> PathBuf {
    fresh_where(kind, name, |folder| !claim(folder))
}

/// Returns a name as that of [`fresh`], where the caller knows which folders are taken. Those of the same second are
/// numbered.
pub(crate) fn fresh_where(kind: &str, name: &str, is_taken: impl Fn(&Path) -> bool) -> PathBuf {
    let wall = clock::wall().as_u64() / 1_000_000_000;
    let first = Path::new(HOME)
        .join(kind)
        .join(format!("{}-{name}", timestamp(wall)));
    let mut folder = first.clone();
    let mut number = 1;
    while is_taken(&folder) {
        number += 1;
        folder = PathBuf::from(format!("{}-{number}", first.display()));
    }
    folder
}

/// Makes `folder` for its owner alone. Returns false if something with this name exists.
fn claim(folder: &Path) -> bool {
    if let Some(above) = folder.parent() {
        make_private(above).ok();
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {
            let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
            made.push(folder.to_path_buf());
            true
        }
        Err(error) => error.kind() != io::ErrorKind::AlreadyExists,
    }
}

/// Folders that [`fresh`] has made.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the default folders in which nothing was written, because the command failed before its first run.
pub(crate) fn remove_unused() {
    remove_empty(&MADE.lock().unwrap_or_else(PoisonError::into_inner));
}

fn remove_empty(folders: &[PathBuf]) {
    for folder in folders {
        // A folder that is not empty stays.
        fs::remove_dir(folder).ok();
    }
}

/// Refuses the address of an object store, also one with a single slash, if `results` must be a folder.
pub(crate) fn refuse_store(results: Option<&Path>) -> Result<(), CommandError> {
    let Some(place) = results.filter(|place| place.starts_with("s3:")) else {
        return Ok(());
    };
    let error = anyhow::anyhow!("--results {} is not a folder", place.display());
    let hint = "give a folder, and copy results with `stillwell runs push RESULT --to s3://…`";
    Err(CommandError::new(Exit::Usage, error).hint(hint))
}

/// Name of results: that of the first path.
pub(crate) fn name_of(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let stem = absolute.file_stem().unwrap_or_default();
    let name: String = stem
        .to_string_lossy()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect();
    match (name.as_str(), absolute.parent()) {
        ("experiment" | "lading" | "run", Some(parent)) if parent.file_name().is_some() => {
            name_of(parent)
        }
        _ => name,
    }
}

/// Cache folder of builds.
pub(crate) fn cache(given: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return std::path::absolute(given).context("find the cache folder");
    }
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or(home)
        .map(|folder| folder.join("stillwell"))
        .context("neither HOME nor XDG_CACHE_HOME is set: give --cache DIR")
}

/// Start of the names of state folders.
const STATE: &str = "stillwell-run-";

/// File in a state folder whose lock its process holds.
const LOCK: &str = "lock";

/// Locks of the state folders of this process. The kernel releases them when the process ends,
/// however it ends. They also count for processes in other PID namespaces.
static LOCKS: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Makes a folder for the state of this process's runs, which no other user may enter. Its path is
/// short, because it holds Unix sockets. Folders of processes that have gone are removed.
pub(crate) fn state_root() -> anyhow::Result<PathBuf> {
    let base = state_base();
    remove_abandoned(&base);
    let (path, lock) = make_locked(&base)?;
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    // Those of earlier runs were removed.
    locks.retain(|lock| lock.metadata().is_ok_and(|data| data.nlink() > 0));
    locks.push(lock);
    Ok(path)
}

/// Makes a state folder in `base`, and a lock in it.
fn make_locked(base: &Path) -> anyhow::Result<(PathBuf, File)> {
    // The name cannot be foreseen, and a folder or link that is there already is an error.
    let number = u32::from_be_bytes(random().context("choose a random name for the state folder")?);
    let path = base.join(format!("{STATE}{number:08x}"));
    let made = DirBuilder::new().mode(0o700).create(&path);
    let locked = made.and_then(|()| {
        let unnamed = path.join("unlocked");
        let lock = File::create_new(&unnamed)?;
        // In a file system without locks no process gets it, and the folder is never removed.
        lock.try_lock().ok();
        // With its name it is locked already: before that, others leave the folder alone.
        fs::rename(&unnamed, path.join(LOCK))?;
        Ok(lock)
    });
    let lock = locked.with_context(|| format!("make the folder {}", path.display()))?;
    Ok((path, lock))
}

/// As [`state_root`], for runs of a target: a guardian ends it if this process is killed.
pub(crate) fn guarded_state_root() -> anyhow::Result<PathBuf> {
    guardian::start();
    state_root()
}

/// Removes the state of processes that were killed.
pub(crate) fn remove_abandoned_state() {
    remove_abandoned(&state_base());
}

/// Returns the folder of all state folders.
fn state_base() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime
        .filter(|path| path.is_absolute() && path.is_dir())
        .unwrap_or_else(std::env::temp_dir)
}

/// Removes the state of this user's processes that were killed. Folders that cannot be removed stay.
fn remove_abandoned(base: &Path) {
    let mounts = read_text(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let path = entry.path();
        let owned = |data: &Metadata| data.is_dir() && data.uid() == user;
        let is_ours = entry.metadata().as_ref().is_ok_and(owned);
        let is_mounted = path.to_str().is_none_or(|path| mounts.contains(path));
        if !is_ours || is_mounted || !is_state(&entry.file_name().to_string_lossy()) {
            continue;
        }
        // A pipe or a link is no lock of ours.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let lock = open(path.join(LOCK), OFlags::RDONLY | flags, Mode::empty()).map(File::from);
        let has_gone = lock.is_ok_and(|lock| lock.try_lock().is_ok());
        if has_gone {
            fs::remove_dir_all(&path).ok();
        }
    }
}

/// Returns true if a state folder has this name.
fn is_state(name: &str) -> bool {
    let number = name.strip_prefix(STATE).unwrap_or_default();
    number.len() == 8 && number.bytes().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn results_are_named_after_what_was_run() {
        assert_eq!(name_of(Path::new("/suites/quick start")), "quick-start");
        assert_eq!(name_of(Path::new("/suites/relay/experiment.yaml")), "relay");
        assert_eq!(
            name_of(Path::new("/suites/case/lading/lading.yaml")),
            "case"
        );
    }

    #[test]
    fn a_results_folder_is_not_in_an_object_store() {
        for (results, expected) in [
            (None, Ok(())),
            (Some("kept"), Ok(())),
            (Some("/srv/s3:/kept"), Ok(())),
            (Some("./s3:/kept"), Ok(())),
            (Some("s3://bench/nightly"), Err(Exit::Usage)),
            (Some("s3:/bench"), Err(Exit::Usage)),
        ] {
            let refused = refuse_store(results.map(Path::new));
            let exit = refused.map_err(|error| error.exit);
            assert_eq!(exit, expected, "{results:?}");
        }
    }

    #[test]
    fn a_folder_that_is_taken_is_not_a_new_one() {
        let ends = |folder: &Path, end: &str| folder.to_string_lossy().ends_with(end);
        let folder = fresh_where("loads", "a", |_| false);
        assert!(ends(&folder, "-a"), "{folder:?}");
        let is_taken = |folder: &Path| ends(folder, "-a") || ends(folder, "-a-2");
        let folder = fresh_where("loads", "a", is_taken);
        assert!(ends(&folder, "-a-3"), "{folder:?}");
    }

    #[test]
    fn a_new_folder_is_made_at_once_and_belongs_to_one_caller() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        let is_taken = |folder: &Path| !claim(&base.join(folder));
        let folders = [(); 2].map(|()| base.join(fresh_where("runs", "a", is_taken)));
        assert_ne!(folders[0], folders[1]);
        for folder in &folders {
            assert_eq!(fs::metadata(folder).unwrap().mode() & 0o777, 0o700);
            assert!(!claim(folder));
        }
        let file = base.join("file");
        fs::write(&file, "").unwrap();
        symlink("nowhere", base.join("link")).unwrap();
        assert!(!claim(&file));
        assert!(!claim(&base.join("link")));
        // No other name could be made there either: its first use reports the error.
        assert!(claim(&file.join("below")));
    }

    #[test]
    fn a_default_folder_stays_only_if_something_was_written_to_it() {
        let base = tempfile::tempdir().unwrap();
        let folders = ["empty", "used"].map(|name| base.path().join(name));
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        fs::write(folders[1].join("file"), "").unwrap();
        remove_empty(&folders);
        assert_eq!(folders.map(|folder| folder.exists()), [false, true]);
    }

    #[test]
    fn state_is_private_and_that_of_killed_processes_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let names = [
            "stillwell-run-00000001",
            "stillwell-run-1",
            "stillwell-4194305-00000001",
            "other-run-00000001",
        ];
        for name in names {
            fs::create_dir(base.path().join(name)).unwrap();
            fs::write(base.path().join(name).join(LOCK), "").unwrap();
        }
        remove_abandoned(base.path());
        let left = names.map(|name| base.path().join(name).exists());
        assert_eq!(left, [false, true, true, true]);
        // One that is being made has no lock yet.
        fs::create_dir(base.path().join(names[0])).unwrap();
        remove_abandoned(base.path());
        assert!(base.path().join(names[0]).exists());

        let (made, _lock) = make_locked(base.path()).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
    }

    /// A process of another PID namespace has no folder in `/proc`.
    #[test]
    fn state_stays_while_its_process_holds_the_lock_and_no_longer() {
        let base = tempfile::tempdir().unwrap();
        let (path, lock) = make_locked(base.path()).unwrap();
        assert!(is_state(&path.file_name().unwrap().to_string_lossy()));
        remove_abandoned(base.path());
        assert!(path.exists());
        // A child of another test has a copy of it until its exec.
        lock.unlock().unwrap();
        remove_abandoned(base.path());
        assert!(!path.exists());
    }
}
