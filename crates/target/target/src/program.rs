//! Lookup of programs.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// A program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is none at this path.
    #[error("there is no program at {}", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The file is not executable.
    #[error("{} is not an executable file", path.display())]
    NotExecutable {
        /// The path.
        path: PathBuf,
    },
    /// A bare name that no folder of `PATH` has.
    #[error("there is no program `{}` in PATH", name.display())]
    NotInPath {
        /// The name.
        name: PathBuf,
    },
}

/// Returns the absolute path of `program`; a bare name is looked up in `PATH`.
///
/// # Errors
/// [`ProgramError`] if there is no such executable.
pub fn find(program: &Path) -> Result<PathBuf, ProgramError> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        let path = std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
        return match (path.exists(), is_executable(&path)) {
            (false, _) => Err(ProgramError::Missing { path }),
            (true, false) => Err(ProgramError::NotExecutable { path }),
            (true, true) => Ok(path),
        };
    }
    let searched = env::var_os("PATH").unwrap_or_default();
    find_in(program, &searched).ok_or_else(|| ProgramError::NotInPath {
        name: program.to_owned(),
    })
}

fn find_in(name: &Path, searched: &OsStr) -> Option<PathBuf> {
    if name.as_os_str().is_empty() {
        return None;
    }
    env::split_paths(searched)
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
        .and_then(|path| std::path::absolute(path).ok())
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_or_named() {
        let shell = find(Path::new("sh")).unwrap();
        assert!(shell.is_absolute() && shell.ends_with("sh"));
        assert_eq!(find(&shell).unwrap(), shell);
        let missing = find(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "there is no program at /nowhere/at/all"
        );
        let plain = find(Path::new("/etc/passwd")).unwrap_err();
        assert!(
            matches!(plain, ProgramError::NotExecutable { .. }),
            "{plain}"
        );
        let unknown = find(Path::new("no-such-program-here")).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "there is no program `no-such-program-here` in PATH"
        );
        assert!(find(Path::new("")).is_err());
    }
}
