//! Passes the commit of a release build to the program, for `--version`, and packs its relocations.

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
    if is_release && loads_packed_relocations() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns true if the program is built for this machine, whose dynamic linker reads `DT_RELR`: glibc does since 2.36.
/// Such a table of relocations is a fraction of the usual one.
fn loads_packed_relocations() -> bool {
    let variable = |name| std::env::var(name).ok();
    let is_native = variable("TARGET") == variable("HOST");
    is_native
        && variable("CARGO_CFG_TARGET_ENV").is_some_and(|env| env == "gnu")
        && has_glibc_2_36()
}

fn has_glibc_2_36() -> bool {
    let version = output_of("getconf", &["GNU_LIBC_VERSION"]);
    let minor = version.and_then(|text| text.strip_prefix("glibc 2.")?.parse::<u32>().ok());
    minor.is_some_and(|minor| minor >= 36)
}

/// Returns the commit of the working tree, if git knows it.
fn commit() -> Option<String> {
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = output_of("git", &["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    output_of("git", &["rev-parse", "--short=10", "HEAD"])
}

/// Returns what a program prints; `None` if it failed or is not installed.
fn output_of(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
