//! The crate graph: the dependencies of crates, the order of the members, and that each
//! inherits the workspace's lints. The facts come from `cargo metadata`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::Problem;
use super::table::{
    CRATES, Entry, FORBIDDEN_IN_PURE, OWNED, PERMITTED_IN_TESTS, Permitted, entry, table_name,
};

/// Permitted sources of published dependencies.
const REGISTRIES: [&str; 2] = [
    "registry+https://github.com/rust-lang/crates.io-index",
    "sparse+https://index.crates.io/",
];

/// The part of `cargo metadata` that is read.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    workspace_root: String,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    source: Option<String>,
    kind: Option<String>,
    path: Option<String>,
}

/// Reads the workspace at `root` from cargo.
pub(super) fn load(root: &Path) -> anyhow::Result<Metadata> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("start `cargo metadata`")?;
    if !output.status.success() {
        bail!(
            "`cargo metadata` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("read what `cargo metadata` printed")
}

impl Metadata {
    /// Number of members of the workspace.
    pub(super) fn crates(&self) -> usize {
        self.workspace_members.len()
    }

    /// Holds the graph against the tables. `root_manifest` is the text of the workspace's `Cargo.toml`.
    pub(super) fn check(&self, root_manifest: &str) -> Vec<Problem> {
        let mut problems = self.check_order(root_manifest);
        problems.extend(self.check_use(root_manifest));
        problems.extend(check_profiles(root_manifest));
        for package in &self.packages {
            let manifest = self.relative(&package.manifest_path);
            let Some(entry) = entry(table_name(&package.name)) else {
                let message = format!("package `{}` is not in the table of crates", package.name);
                problems.push(Problem::new(&manifest, 1, message));
                continue;
            };
            for dependency in &package.dependencies {
                let message = self.check_dependency(entry, dependency);
                problems.extend(message.map(|message| Problem::new(&manifest, 1, message)));
            }
        }
        problems
    }

    fn check_order(&self, root_manifest: &str) -> Vec<Problem> {
        let names: Vec<&str> = self
            .workspace_members
            .iter()
            .filter_map(|id| self.packages.iter().find(|package| package.id == *id))
            .map(|package| table_name(&package.name))
            .collect();
        let line = line_of(root_manifest, "members");
        let missing = CRATES
            .iter()
            .filter(|entry| !names.contains(&entry.name))
            .map(|entry| {
                format!(
                    "`{}` is in the table of crates but not a member",
                    entry.name
                )
            });
        // As written: cargo puts members that others need first.
        let written = members(root_manifest);
        let places: Vec<usize> = written.iter().filter_map(|name| place(name)).collect();
        let out_of_order = places
            .windows(2)
            .filter(|pair| pair[0] > pair[1])
            .map(|pair| {
                let (first, second) = (CRATES[pair[0]].name, CRATES[pair[1]].name);
                format!("member `{first}` is before `{second}`: the order is that of the data")
            });
        missing
            .chain(out_of_order)
            .map(|message| Problem::new("Cargo.toml", line, message))
            .collect()
    }

    /// Checks that a member uses each dependency that the workspace declares.
    fn check_use(&self, root_manifest: &str) -> Vec<Problem> {
        let dependencies = self
            .packages
            .iter()
            .flat_map(|package| &package.dependencies);
        let used: BTreeSet<&str> = dependencies.map(|used| used.name.as_str()).collect();
        let lines = (1..).zip(root_manifest.lines());
        let declared = lines
            .skip_while(|(_, line)| *line != "[workspace.dependencies]")
            .skip(1)
            .take_while(|(_, line)| !line.starts_with('['))
            .filter_map(|(number, line)| Some((number, line.split_once('=')?.0.trim())));
        let unused = declared.filter(|(_, name)| !name.starts_with('#') && !used.contains(name));
        let problem = |(line, name)| {
            let message = format!("no crate uses the dependency `{name}`: remove it");
            Problem::new("Cargo.toml", line, message)
        };
        unused.map(problem).collect()
    }

    /// Returns the problem with one dependency, if any.
    fn check_dependency(&self, entry: &Entry, dependency: &Dependency) -> Option<String> {
        let Dependency { name, source, .. } = dependency;
        let in_tests = dependency.kind.as_deref() == Some("dev");
        match (source, &dependency.path) {
            (Some(source), _) if !REGISTRIES.contains(&source.as_str()) => Some(format!(
                "`{name}` comes from {source}, not from the public registry"
            )),
            (Some(_), _) if in_tests => None,
            (Some(_), _) => check_external(entry, name),
            (None, Some(path)) if !Path::new(path).starts_with(&self.workspace_root) => {
                Some(format!("`{name}` lies outside the workspace"))
            }
            (None, _) => check_internal(entry, table_name(name), in_tests),
        }
    }

    fn relative(&self, path: &str) -> String {
        let path = Path::new(path);
        let relative = path.strip_prefix(&self.workspace_root).unwrap_or(path);
        relative.to_string_lossy().into_owned()
    }
}

fn check_internal(entry: &Entry, name: &str, in_tests: bool) -> Option<String> {
    let permitted = match entry.permitted {
        Permitted::Any => true,
        Permitted::Only(permitted) => permitted.contains(&name),
    };
    if permitted || (in_tests && PERMITTED_IN_TESTS.contains(&name)) {
        return None;
    }
    let whose = if in_tests { "tests of crate" } else { "crate" };
    Some(format!(
        "{whose} `{}` must not depend on `{name}`",
        entry.name
    ))
}

fn check_external(entry: &Entry, name: &str) -> Option<String> {
    if entry.pure && FORBIDDEN_IN_PURE.contains(&name) {
        return Some(format!(
            "pure crate `{}` must not depend on `{name}`",
            entry.name
        ));
    }
    let (_, owners) = OWNED.iter().find(|(owned, _)| *owned == name)?;
    if owners.contains(&entry.name) {
        return None;
    }
    let owners = owners.join(", ");
    Some(format!(
        "crate `{}` must not depend on `{name}`: only {owners} may",
        entry.name
    ))
}

/// A member's manifest has `[lints]` with `workspace = true`.
pub(super) fn check_lints(path: &str, manifest: &str) -> Option<Problem> {
    let inherits = manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[lints]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .any(|line| line.replace(' ', "") == "workspace=true");
    (!inherits).then(|| {
        Problem::new(
            path,
            1,
            "does not inherit the lints: add `[lints] workspace = true`",
        )
    })
}

fn place(name: &str) -> Option<usize> {
    CRATES.iter().position(|entry| entry.name == name)
}

/// A crate of hot paths, which the profile `release` builds as one unit, is optimised in `quick-build` too.
fn check_profiles(root_manifest: &str) -> Vec<Problem> {
    let hot = overrides(root_manifest, "release", "codegen-units = 1");
    let cold = overrides(root_manifest, "quick-build", "opt-level = 0");
    let both = cold
        .into_iter()
        .filter(|(_, name)| hot.iter().any(|(_, hot)| hot == name));
    let problem = |(line, name)| {
        let message = format!("`{name}` has a hot path: leave it out of the profile `quick-build`");
        Problem::new("Cargo.toml", line, message)
    };
    both.map(problem).collect()
}

/// The packages for which `profile` has `setting` in the line below the head of its table, with the line of that head.
fn overrides<'a>(root_manifest: &'a str, profile: &str, setting: &str) -> Vec<(usize, &'a str)> {
    let head = format!("[profile.{profile}.package.");
    let lines = root_manifest.lines();
    let pairs = (1..).zip(lines.clone().zip(lines.skip(1)));
    let set = pairs.filter(|(_, (_, next))| *next == setting);
    let named = set.filter_map(|(number, (line, _))| {
        let name = line.strip_prefix(head.as_str())?.strip_suffix(']')?;
        Some((number, name))
    });
    named.collect()
}

/// The last parts of the members' paths, in the order in which a manifest lists them.
fn members(root_manifest: &str) -> Vec<&str> {
    let lines = root_manifest.lines().map(str::trim);
    let listed = lines.skip_while(|line| !line.starts_with("members"));
    let listed = listed.take_while(|line| !line.starts_with(']'));
    let quoted = listed.filter_map(|line| line.strip_prefix('"')?.split('"').next());
    quoted.filter_map(|path| path.rsplit('/').next()).collect()
}

/// The line, from 1, that begins with `word`; 1 where none does.
fn line_of(text: &str, word: &str) -> usize {
    let line = text.lines().position(|line| line.starts_with(word));
    line.map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests;
