//! Passes the commit of a release build to the program, for `--version`.

use std::process::Command;

fn main() {
    // Test builds leave it out: each commit would compile the program again.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=STILLWELL_COMMIT");
    let given = std::env::var("STILLWELL_COMMIT").ok();
    let commit = given.or_else(|| is_release.then(commit).flatten());
    let text = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=STILLWELL_BUILD={text}");
}

/// Returns the commit of the working tree, if git knows it.
fn commit() -> Option<String> {
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=10", "HEAD"])
}

/// Returns the output of git; `None` if it failed or is not installed.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
