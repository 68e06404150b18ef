//! Default folders.

use std::fs::{self, DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_config::files::read_text;
use stillwell_experiment::timestamp;
use stillwell_scope::clock;

use crate::command::guardian;
use crate::command::random::random;

/// Results of `run` and `observe`, below the working directory.
pub(crate) const HOME: &str = ".stillwell";

/// A new folder below `kind`, named by the time and `name`, so names sort
/// by age.
pub(crate) fn fresh(kind: &str, name: &str) -> PathBuf {
    let wall = clock::wall().as_u64() / 1_000_000_000;
    Path::new(HOME)
        .join(kind)
        .join(format!("{}-{name}", timestamp(wall)))
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

/// Makes a folder for the state of this process's runs, which no other user may enter. Its path is
/// short, because it holds Unix sockets. Folders of processes that have gone are removed.
pub(crate) fn state_root() -> anyhow::Result<PathBuf> {
    let base = state_base();
    remove_abandoned(&base, None);
    // The name cannot be foreseen, and a folder or link that is there already is an error.
    let number = u32::from_be_bytes(random().context("choose a random name for the state folder")?);
    let path = base.join(format!("stillwell-{}-{number:08x}", std::process::id()));
    let made = DirBuilder::new().mode(0o700).create(&path);
    made.with_context(|| format!("make the folder {}", path.display()))?;
    Ok(path)
}

/// As [`state_root`], for runs of a target: a guardian ends it if this process is killed.
pub(crate) fn guarded_state_root() -> anyhow::Result<PathBuf> {
    guardian::start();
    state_root()
}

/// Removes the state of processes that were killed, and of `ended`, which may still be a zombie.
pub(crate) fn remove_abandoned_state(ended: Option<u32>) {
    remove_abandoned(&state_base(), ended);
}

/// Returns the folder of all state folders.
fn state_base() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime
        .filter(|path| path.is_absolute() && path.is_dir())
        .unwrap_or_else(std::env::temp_dir)
}

/// Removes the state of our own processes that were killed. What cannot be removed stays.
fn remove_abandoned(base: &Path, ended: Option<u32>) {
    let mounts = read_text(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let path = entry.path();
        let owned = |data: &Metadata| data.is_dir() && data.uid() == user;
        let is_ours = entry.metadata().as_ref().is_ok_and(owned);
        let process = process_of(&entry.file_name().to_string_lossy());
        let has_gone = process.is_some_and(|id| {
            Some(id) == ended || !Path::new("/proc").join(id.to_string()).exists()
        });
        let is_mounted = path.to_str().is_none_or(|path| mounts.contains(path));
        if is_ours && has_gone && !is_mounted {
            fs::remove_dir_all(&path).ok();
        }
    }
}

/// Returns the process whose state is in a folder with this name.
fn process_of(name: &str) -> Option<u32> {
    let (process, number) = name.strip_prefix("stillwell-")?.split_once('-')?;
    let is_number = number.len() == 8 && number.bytes().all(|c| c.is_ascii_hexdigit());
    process.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
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
    fn state_is_private_and_that_of_killed_processes_is_removed() {
        let base = tempfile::tempdir().unwrap();
        // No process has this number: it is above the kernel's largest.
        let names = [
            "stillwell-4194305-00000001",
            "stillwell-4194305",
            "other-4194305-00000001",
        ];
        for name in names {
            fs::create_dir(base.path().join(name)).unwrap();
        }
        let alive = format!("stillwell-{}-00000001", std::process::id());
        fs::create_dir(base.path().join(&alive)).unwrap();
        remove_abandoned(base.path(), None);
        let left = |name: &str| base.path().join(name).exists();
        assert!(!left(names[0]));
        assert!(left(names[1]) && left(names[2]) && left(&alive));

        let made = state_root().unwrap();
        let mode = fs::metadata(&made).unwrap().mode();
        fs::remove_dir(&made).unwrap();
        assert_eq!(mode & 0o777, 0o700);
    }
}
