//! Experiments of a path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_text::{Diagnostic, Source, code};

use crate::files::{EntryKind, Files, read_source};
use crate::foreign::{CaseFolder, ForeignFormat};

/// Maximum depth of experiments below the folder of a suite.
const DEPTH_MAX: usize = 8;
/// Maximum number of folders in a search; above it, the path is probably a mistake.
const FOLDERS_MAX: usize = 4_000;
/// Maximum number of files and folders that a search looks at.
const ENTRIES_MAX: usize = 50_000;
/// Folders that hold builds or packages, never experiments.
const SKIPPED: [&str; 3] = ["target", "node_modules", "results"];

/// Files and formats in which experiments are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup<'l> {
    pub(crate) files: &'l dyn Files,
    pub(crate) formats: &'l [&'l dyn ForeignFormat],
}

/// One experiment that was found.
#[derive(Clone, Debug)]
pub(crate) struct Case<'l> {
    /// Unique in its suite.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Its file; a case of another format may have none.
    pub(crate) file: Option<CaseFile>,
    pub(crate) kind: CaseKind<'l>,
}

/// The file of an experiment, read once.
#[derive(Clone, Debug)]
pub(crate) struct CaseFile {
    pub(crate) path: PathBuf,
    pub(crate) source: Result<Arc<Source>, Box<Diagnostic>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum CaseKind<'l> {
    Native,
    Foreign(&'l dyn ForeignFormat),
}

impl CaseFile {
    pub(crate) fn read(files: &dyn Files, path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            source: read_source(files, path),
        }
    }
}

impl Case<'_> {
    /// The case as a format reads it.
    pub(crate) fn as_folder<'f>(&'f self, files: &'f dyn Files) -> CaseFolder<'f> {
        CaseFolder {
            files,
            name: &self.name,
            folder: &self.folder,
            experiment: self.file.as_ref().map(source_of),
        }
    }

    /// Its file, if it is in the native format.
    pub(crate) fn native_file(&self) -> Option<&CaseFile> {
        match self.kind {
            CaseKind::Native => self.file.as_ref(),
            CaseKind::Foreign(_) => None,
        }
    }
}

fn source_of(file: &CaseFile) -> Result<&Arc<Source>, &Diagnostic> {
    file.source.as_ref().map_err(Box::as_ref)
}

/// Rest of what a search may look at.
#[derive(Debug)]
struct SearchBudget {
    folders: usize,
    entries: usize,
}

/// The limit that a search reached.
#[derive(Clone, Copy, Debug)]
enum SearchLimit {
    Folders,
    Entries,
}

fn too_many(path: &Path, limit: SearchLimit) -> Box<Diagnostic> {
    let limit = match limit {
        SearchLimit::Folders => format!("{FOLDERS_MAX} folders"),
        SearchLimit::Entries => format!("{ENTRIES_MAX} files"),
    };
    let path = path.display();
    let message = format!("{path} has more than {limit}: it is probably not a suite");
    let error = Diagnostic::error(code::NOTHING_FOUND, message);
    Box::new(error.help("name the folder that holds the experiments"))
}

impl<'l> Lookup<'l> {
    /// Returns the experiments of the absolute `path` in the order of names:
    /// a file, the folder of an experiment, or a folder with experiments below it.
    pub(crate) fn discover(self, path: &Path) -> Result<Vec<Case<'l>>, Box<Diagnostic>> {
        match self.files.kind(path) {
            None => {
                let message = format!("no such file or folder: {}", path.display());
                Err(Box::new(Diagnostic::error(code::UNREADABLE, message)))
            }
            Some(EntryKind::File | EntryKind::Special) => {
                self.case_of_file(path).map(|case| vec![case])
            }
            Some(EntryKind::Folder) => {
                let mut cases = Vec::new();
                let mut left = SearchBudget {
                    folders: FOLDERS_MAX,
                    entries: ENTRIES_MAX,
                };
                self.walk(path, 0, &mut left, &mut cases)
                    .map_err(|limit| too_many(path, limit))?;
                if cases.is_empty() {
                    return Err(self.no_experiment(path));
                }
                Ok(cases)
            }
        }
    }

    /// The first format that recognises `text` as a run.
    pub(crate) fn format_of_run(self, text: &str) -> Option<&'l dyn ForeignFormat> {
        let mut formats = self.formats.iter().copied();
        formats.find(|format| format.is_single_run(text))
    }

    /// The first format that recognises the file at `path` as a bench.
    pub(crate) fn format_of_bench(
        self,
        path: &Path,
        text: Option<&str>,
    ) -> Option<&'l dyn ForeignFormat> {
        let mut formats = self.formats.iter().copied();
        formats.find(|format| format.is_bench(path, text))
    }

    fn no_experiment(self, path: &Path) -> Box<Diagnostic> {
        let message = format!("there is no experiment in {}", path.display());
        let error = Diagnostic::error(code::NOTHING_FOUND, message);
        let foreign = self.formats.iter().flat_map(|format| format.case_files());
        let mut files: Vec<String> = foreign.map(|file| format!("a `{file}`")).collect();
        files.insert(0, "an `experiment.yaml`".to_owned());
        let last = files.pop().unwrap_or_default();
        let files = match files.is_empty() {
            true => last,
            false => format!("{} or {last}", files.join(", ")),
        };
        Box::new(error.help(format!("an experiment is a folder with {files}")))
    }

    fn walk(
        self,
        folder: &Path,
        depth: usize,
        left: &mut SearchBudget,
        cases: &mut Vec<Case<'l>>,
    ) -> Result<(), SearchLimit> {
        let folders = left.folders.checked_sub(1);
        left.folders = folders.ok_or(SearchLimit::Folders)?;
        if let Some(case) = self.case_of_folder(folder) {
            cases.push(case);
            return Ok(());
        }
        if depth == DEPTH_MAX {
            return Ok(());
        }
        let Ok(entries) = self.files.list(folder) else {
            return Ok(());
        };
        let rest = left.entries.checked_sub(entries.len());
        left.entries = rest.ok_or(SearchLimit::Entries)?;
        for entry in entries {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            let is_skipped = name.starts_with('.') || SKIPPED.contains(&name.as_ref());
            if !is_skipped && self.files.kind(&entry) == Some(EntryKind::Folder) {
                self.walk(&entry, depth + 1, left, cases)?;
            }
        }
        Ok(())
    }

    fn case_of_folder(self, folder: &Path) -> Option<Case<'l>> {
        let path = folder.join("experiment.yaml");
        let has_file = self.files.kind(&path) == Some(EntryKind::File);
        let mut case = Case {
            name: name_of(folder),
            folder: folder.to_path_buf(),
            file: has_file.then(|| CaseFile::read(self.files, &path)),
            kind: CaseKind::Native,
        };
        let mut formats = self.formats.iter().copied();
        let foreign = formats.find(|format| format.is_case(&case.as_folder(self.files)));
        match foreign {
            Some(format) => case.kind = CaseKind::Foreign(format),
            None if !has_file => return None,
            None => {}
        }
        Some(case)
    }

    fn case_of_file(self, path: &Path) -> Result<Case<'l>, Box<Diagnostic>> {
        let folder = path.parent().unwrap_or(path);
        let is_experiment = path
            .file_name()
            .is_some_and(|name| name == "experiment.yaml");
        if is_experiment && let Some(case) = self.case_of_folder(folder) {
            return Ok(case);
        }
        let file = CaseFile::read(self.files, path);
        let text = file.source.as_ref().map(|source| source.text());
        if text.is_ok_and(|text| self.format_of_run(text).is_some()) {
            let message = format!("{} is one run, not an experiment", path.display());
            let error = Diagnostic::error(code::NOTHING_FOUND, message).help(
                "run it with `stillwell observe`, or name the case's folder, which has an `experiment.yaml`",
            );
            return Err(Box::new(error));
        }
        let stem = path.file_stem().unwrap_or_default();
        Ok(Case {
            name: stem.to_string_lossy().into_owned(),
            folder: folder.to_path_buf(),
            file: Some(file),
            kind: CaseKind::Native,
        })
    }
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

/// Returns true if `only` selects `name`: without patterns, all names are selected.
pub(crate) fn is_selected(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|pattern| matches(pattern, name))
}

/// Returns true if `name` matches `pattern`, in which `*` is any text.
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
        let text = "# Title\n\n[![badge](x)](y)\n```\ncode\n```\n\nIts operations.\nMore.\n";
        assert_eq!(first_prose(text).as_deref(), Some("Its operations."));
        assert_eq!(first_prose("Title\n=====\n").as_deref(), Some("Title"));
        assert_eq!(first_prose("# Only\n"), None);
    }
}
