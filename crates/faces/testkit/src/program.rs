//! Programs that a test needs and the machine may lack.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The executable called `name`, in `PATH` or where daemons live.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into(), "/usr/local/sbin".into()])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Returns the executable called `name`. If it is missing, prints that `test` is skipped, in the form that
/// `cargo xtask ci-skips` parses.
#[must_use]
pub fn program_or_skip(test: &str, name: &str) -> Option<PathBuf> {
    let program = find_program(name);
    if program.is_none() {
        println!("SKIPPED: {test}: {name} is not installed");
    }
    program
}

/// Runs git with `words` in `folder`, as an author of unsigned commits. Returns its output, trimmed.
///
/// # Panics
/// If git is missing or fails.
pub fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=test", "-c", "user.email=test@example.org"])
        .args(["-c", "commit.gpgsign=false"])
        .args(words)
        .output()
        .expect("git is installed");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {words:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
