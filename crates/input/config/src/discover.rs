//! Which experiments a path stands for.

use std::path::{Path, PathBuf};

use stillwell_text::{Diagnostic, Source, code, parse};

use crate::files::{EntryKind, Files};
use crate::smp::load_of;

/// How deep below a lab experiments are looked for.
const DEPTH_MAX: usize = 8;
/// How many folders are looked at before a path is taken for a mistake.
const FOLDERS_MAX: usize = 20_000;
/// Folders that hold builds or packages, never experiments.
const SKIPPED: [&str; 3] = ["target", "node_modules", "results"];

/// One experiment that was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Case {
    /// Unique in its lab.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Its file; an SMP case may have none.
    pub(crate) file: Option<PathBuf>,
    pub(crate) kind: CaseKind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CaseKind {
    Native,
    Smp,
}

/// The experiments that the absolute `path` stands for, in the order of names:
/// a file, the folder of one, or a lab somewhere below which they stand.
pub(crate) fn discover(files: &dyn Files, path: &Path) -> Result<Vec<Case>, Box<Diagnostic>> {
    match files.kind(path) {
        None => {
            let message = format!("there is nothing at {}", path.display());
            Err(Box::new(Diagnostic::error(code::UNREADABLE, message)))
        }
        Some(EntryKind::File) => case_of_file(files, path).map(|case| vec![case]),
        Some(EntryKind::Folder) => {
            let mut cases = Vec::new();
            let mut looked = 0;
            walk(files, path, 0, &mut looked, &mut cases)?;
            if cases.is_empty() {
                let message = format!("there is no experiment in {}", path.display());
                let error = Diagnostic::error(code::NOTHING_FOUND, message);
                let error = error.help(
                    "an experiment is a folder with an `experiment.yaml`, a `lading/lading.yaml` or a `lading.yaml`",
                );
                return Err(Box::new(error));
            }
            Ok(cases)
        }
    }
}

fn walk(
    files: &dyn Files,
    folder: &Path,
    depth: usize,
    looked: &mut usize,
    cases: &mut Vec<Case>,
) -> Result<(), Box<Diagnostic>> {
    *looked += 1;
    if *looked > FOLDERS_MAX {
        let message = format!("more than {FOLDERS_MAX} folders: this is hardly a lab");
        let error = Diagnostic::error(code::NOTHING_FOUND, message);
        return Err(Box::new(
            error.help("name the folder that holds the experiments"),
        ));
    }
    if let Some(case) = case_of_folder(files, folder) {
        cases.push(case);
        return Ok(());
    }
    if depth == DEPTH_MAX {
        return Ok(());
    }
    let Ok(entries) = files.list(folder) else {
        return Ok(());
    };
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        let is_skipped = name.starts_with('.') || SKIPPED.contains(&name.as_ref());
        if !is_skipped && files.kind(&entry) == Some(EntryKind::Folder) {
            walk(files, &entry, depth + 1, looked, cases)?;
        }
    }
    Ok(())
}

fn case_of_folder(files: &dyn Files, folder: &Path) -> Option<Case> {
    let file = folder.join("experiment.yaml");
    let has_file = files.kind(&file) == Some(EntryKind::File);
    // The folder `lading` of a case is none itself.
    let is_part = folder.file_name().is_some_and(|name| name == "lading");
    let load = load_of(files, folder).filter(|_| !is_part);
    // Beside an experiment of ours a `lading.yaml` is just a file.
    let is_flat = load.as_deref().and_then(Path::parent) == Some(folder);
    let has_load = load.is_some() && !(is_flat && has_file);
    if !has_file && !has_load {
        return None;
    }
    let kind = if has_load || is_smp_text(files, &file) {
        CaseKind::Smp
    } else {
        CaseKind::Native
    };
    Some(Case {
        name: name_of(folder),
        folder: folder.to_path_buf(),
        file: has_file.then_some(file),
        kind,
    })
}

fn case_of_file(files: &dyn Files, path: &Path) -> Result<Case, Box<Diagnostic>> {
    let folder = path.parent().unwrap_or(path);
    let is_experiment = path
        .file_name()
        .is_some_and(|name| name == "experiment.yaml");
    if is_experiment && let Some(case) = case_of_folder(files, folder) {
        return Ok(case);
    }
    if files.read(path).is_ok_and(|text| is_lading_text(&text)) {
        let message = format!("{} is one rig, not an experiment", path.display());
        let error = Diagnostic::error(code::NOTHING_FOUND, message).help(
            "run it with `stillwell rig`, or name the case's folder, which has an `experiment.yaml`",
        );
        return Err(Box::new(error));
    }
    let stem = path.file_stem().unwrap_or_default();
    Ok(Case {
        name: stem.to_string_lossy().into_owned(),
        folder: folder.to_path_buf(),
        file: Some(path.to_path_buf()),
        kind: CaseKind::Native,
    })
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    if name.is_empty() {
        "experiment".to_owned()
    } else {
        name
    }
}

fn is_smp_text(files: &dyn Files, path: &Path) -> bool {
    let keys = ["optimization_goal", "target", "config_only"];
    files.read(path).is_ok_and(|text| has_key(&text, &keys))
}

/// Whether a text is a `lading.yaml`, by the keys at its top.
pub(crate) fn is_lading_text(text: &str) -> bool {
    let keys = ["generator", "blackhole", "target_metrics", "telemetry"];
    has_key(text, &keys) && !has_key(text, &["workload", "subject", "variants"])
}

fn has_key(text: &str, keys: &[&str]) -> bool {
    let Ok((root, _)) = parse(&Source::new("", text)) else {
        // What is not YAML is judged line by line, so that its mistakes are
        // told in the right words.
        let is_key = |line: &str| keys.iter().any(|key| line.starts_with(&format!("{key}:")));
        return text.lines().any(is_key);
    };
    keys.iter().any(|key| root.entry(key).is_some())
}

/// The first line of prose of a README: no heading, badge, picture or tag.
pub(crate) fn first_prose(text: &str) -> Option<String> {
    let mut in_fence = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            in_fence = !in_fence;
            continue;
        }
        let is_underline = line.chars().all(|c| matches!(c, '=' | '-' | '*' | '_'));
        if !in_fence && !is_underline && !line.starts_with(['#', '[', '!', '<', '|', '>']) {
            return Some(line.to_owned());
        }
    }
    None
}

/// Whether `name` is meant by `pattern`, in which `*` stands for anything.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    if first.len() == pattern.len() {
        return rest.is_empty();
    }
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, matched) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "anything", true),
            ("http_*", "http_to_http", true),
            ("*_json", "http_to_http_json", true),
            ("h*http*n", "http_to_http_json", true),
            ("*x*", "http", false),
            ("ab*ba", "aba", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, name), matched, "{pattern} {name}");
        }
    }

    #[test]
    fn prose_is_neither_heading_nor_badge() {
        let text = "# Title\n\n[![badge](x)](y)\n```\ncode\n```\n\nWhat it does.\nMore.\n";
        assert_eq!(first_prose(text).as_deref(), Some("What it does."));
        assert_eq!(first_prose("Title\n=====\n").as_deref(), Some("Title"));
        assert_eq!(first_prose("# Only\n"), None);
    }
}
