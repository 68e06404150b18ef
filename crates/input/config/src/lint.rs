//! Old spellings in files of other tools.

use std::path::{Path, PathBuf};

use stillwell_text::{Diagnostic, Diagnostics, code};

use crate::discover::Lookup;
use crate::files::{EntryKind, Files, read_source};
use crate::foreign::{ForeignFile, Linted};

/// Maximum depth of files below a folder.
const DEPTH_MAX: usize = 8;
/// Maximum number of files in a search; above it, the path is probably a mistake.
const FILES_MAX: usize = 20_000;
/// Folders that hold builds or packages, never configurations.
const SKIPPED: [&str; 3] = ["target", "node_modules", "results"];

/// [`Loader::lint`](crate::Loader::lint).
pub(crate) fn lint(lookup: Lookup<'_>, paths: &[PathBuf]) -> Result<Vec<Linted>, Diagnostics> {
    let files = lookup.files;
    let mut diagnostics = Diagnostics::new();
    let mut texts = Vec::new();
    for path in paths {
        if files.kind(path).is_none() {
            let message = format!("no such file or folder: {}", path.display());
            diagnostics.push(Diagnostic::error(code::UNREADABLE, message));
        }
        walk(files, path, 0, &mut texts);
    }
    let mut linted = Vec::new();
    for path in texts {
        match read_source(files, &path) {
            Ok(source) => {
                let file = ForeignFile {
                    files,
                    path: &path,
                    source: &source,
                };
                let mut formats = lookup.formats.iter();
                linted.extend(formats.find_map(|format| format.lint(&file, &mut diagnostics)));
            }
            Err(error) => diagnostics.push(*error),
        }
    }
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Ok(linted)
}

/// The files below `path` that may be configurations, in the order of names.
fn walk(files: &dyn Files, path: &Path, depth: usize, texts: &mut Vec<PathBuf>) {
    match files.kind(path) {
        Some(EntryKind::File | EntryKind::Special) => texts.push(path.to_path_buf()),
        Some(EntryKind::Folder) if depth < DEPTH_MAX => {
            for entry in files.list(path).unwrap_or_default() {
                let name = entry.file_name().unwrap_or_default().to_string_lossy();
                let is_text = name.ends_with(".yaml") || name.ends_with(".yml");
                let is_folder = files.kind(&entry) == Some(EntryKind::Folder);
                let is_skipped = name.starts_with('.') || SKIPPED.contains(&name.as_ref());
                if (is_text || is_folder) && !is_skipped && texts.len() < FILES_MAX {
                    walk(files, &entry, depth + 1, texts);
                }
            }
        }
        _ => {}
    }
}
