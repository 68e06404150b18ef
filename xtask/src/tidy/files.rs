//! Selection of the files, and text that no file may hold.

use std::path::Path;

use anyhow::Context as _;

use super::Problem;

/// Hidden folders that belong to the project; all others are local.
const HIDDEN_FOLDERS: [&str; 3] = [".cargo", ".ci", ".github"];

/// Folders of one person's machine, without their last slash, so this file does not find itself.
const MACHINE_FOLDERS: [&str; 3] = ["/work", "/root", "/home"];

/// A text file of the repository.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    /// The whole text.
    pub(super) text: String,
}

/// Every text file below `root`, sorted by path. What is built or measured is left out, and so is what is not UTF-8.
pub(super) fn read_all(root: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let mut sources = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let place = root.join(&folder);
        let entries = std::fs::read_dir(&place)
            .with_context(|| format!("list folder {}", place.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("list folder {}", place.display()))?;
            let kind = entry.file_type().context("read the kind of a file")?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() {
                name.clone()
            } else {
                format!("{folder}/{name}")
            };
            if kind.is_dir() && is_ours(&folder, &name) {
                folders.push(path);
            } else if kind.is_file() && name != ".git" {
                let bytes = std::fs::read(entry.path()).with_context(|| format!("read {path}"))?;
                let text = String::from_utf8(bytes).ok();
                sources.extend(text.map(|text| SourceFile { path, text }));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// Returns true for a folder `name` inside `parent` that belongs to the repository.
fn is_ours(parent: &str, name: &str) -> bool {
    if name.starts_with('.') {
        return parent.is_empty() && HIDDEN_FOLDERS.contains(&name);
    }
    // The fuzz targets are a workspace of their own.
    let built = name == "target" && ["", "fuzz"].contains(&parent);
    let measured = parent.starts_with("examples/") && name == "results";
    !built && !measured
}

/// No text speaks of the folders of one machine.
pub(super) fn check_machine_paths(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for folder in MACHINE_FOLDERS {
            let needle = format!("{folder}/");
            let starts_a_path = |at: usize| {
                let before = line[..at].chars().next_back();
                before.is_none_or(|char| !char.is_alphanumeric() && !"._-~}$/*<>".contains(char))
            };
            if line.match_indices(&needle).any(|(at, _)| starts_a_path(at)) {
                let message = format!("names a folder of one machine: `{needle}`");
                problems.push(Problem::new(path, index + 1, message));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::{MACHINE_FOLDERS, check_machine_paths, is_ours};

    #[test]
    fn folders_of_one_machine_are_found() {
        for folder in MACHINE_FOLDERS {
            let text = format!("fine\nsee `{folder}/notes.txt`\n");
            let problems = check_machine_paths("README.md", &text);
            assert_eq!(problems.len(), 1, "{text}");
            assert_eq!(problems[0].line, 2);
        }
    }

    #[test]
    fn paths_that_merely_contain_the_words_pass() {
        for folder in MACHINE_FOLDERS {
            let text =
                format!("target{folder}/x https://example.com{folder}/x ~{folder}/x {folder}\n");
            assert_eq!(check_machine_paths("README.md", &text), []);
        }
    }

    #[test]
    fn what_is_built_or_measured_is_left_out() {
        assert!(is_ours("", "crates"));
        assert!(is_ours("", ".ci"));
        assert!(is_ours("crates/judge/report/src", "results"));
        assert!(!is_ours("", "target"));
        assert!(is_ours("", "fuzz"));
        assert!(!is_ours("fuzz", "target"));
        assert!(!is_ours("", ".git"));
        assert!(!is_ours("", ".stillwell"));
        assert!(!is_ours("examples/quickstart", "results"));
    }
}
