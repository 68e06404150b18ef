//! Default folders.

use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_experiment::timestamp;
use stillwell_scope::clock;

/// Results of `run` and `rig`, below the working directory.
pub(crate) const HOME: &str = ".stillwell";

/// A new folder below `kind`, named by the time and `name`, so that names sort
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
        ("experiment" | "lading" | "rig", Some(parent)) if parent.file_name().is_some() => {
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

/// A folder for the state of this process's runs: short, because it holds Unix
/// sockets, whose paths are.
pub(crate) fn state_root() -> PathBuf {
    std::env::temp_dir().join(format!("stillwell-{}", std::process::id()))
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
}
