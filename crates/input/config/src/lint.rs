//! Old spellings in files of other tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_legacy::lading::LadingRig;
use stillwell_legacy::{lading, lint, smp};
use stillwell_text::{Diagnostic, Diagnostics, Source, code};

use crate::discover::is_lading_text;
use crate::files::{Disk, EntryKind, Files, read_source};
use crate::smp::named_files;

/// How deep below a folder files are looked for.
const DEPTH_MAX: usize = 8;
/// How many files are looked at before a path is taken for a mistake.
const FILES_MAX: usize = 20_000;
/// Folders that hold builds or packages, never configurations.
const SKIPPED: [&str; 3] = ["target", "node_modules", "results"];

/// What was found in one file.
#[derive(Clone, Debug)]
pub struct Linted {
    /// The file.
    pub path: PathBuf,
    /// Its old spellings, in the order of the file.
    pub found: Diagnostics,
    /// How many of them can be written as today.
    pub fixable: usize,
    /// The text with those written as today; none where nothing would change.
    pub fixed: Option<String>,
}

/// Looks for old spellings in `paths`: files of lading's and experiments of SMP's,
/// or folders somewhere below which they stand. Files of any other kind have none.
///
/// # Errors
/// What cannot be read; and a file whose rewriting would change what it means,
/// which would be a defect of ours.
pub fn lint_files(paths: &[PathBuf]) -> Result<Vec<Linted>, Diagnostics> {
    lint_files_from(&Disk, paths)
}

/// [`lint_files`] on any files.
pub(crate) fn lint_files_from(
    files: &dyn Files,
    paths: &[PathBuf],
) -> Result<Vec<Linted>, Diagnostics> {
    let mut found = Diagnostics::new();
    let mut texts = Vec::new();
    for path in paths {
        if files.kind(path).is_none() {
            let message = format!("there is nothing at {}", path.display());
            found.push(Diagnostic::error(code::UNREADABLE, message));
        }
        walk(files, path, 0, &mut texts);
    }
    let mut linted = Vec::new();
    for path in texts {
        match read_source(files, &path) {
            Ok(source) => linted.extend(lint_file(files, path, &source, &mut found)),
            Err(error) => found.push(*error),
        }
    }
    if found.has_errors() {
        return Err(found);
    }
    Ok(linted)
}

/// The files below `path` that may be configurations, in the order of names.
fn walk(files: &dyn Files, path: &Path, depth: usize, texts: &mut Vec<PathBuf>) {
    match files.kind(path) {
        Some(EntryKind::File) => texts.push(path.to_path_buf()),
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

fn lint_file(
    files: &dyn Files,
    path: PathBuf,
    source: &Arc<Source>,
    found: &mut Diagnostics,
) -> Option<Linted> {
    let is_lading = is_lading_text(source.text());
    let is_experiment = path.ends_with("experiment.yaml");
    if !is_lading && !is_experiment {
        return None;
    }
    let findings = lint::lint(source);
    let fixed = Some(lint::fix(source)).filter(|fixed| fixed != source.text());
    if let Some(text) = &fixed {
        let fixed = Source::new(source.path(), text.as_str());
        let is_same = if is_lading {
            rig_of(files, &path, source) == rig_of(files, &path, &fixed)
        } else {
            experiment_of(source) == experiment_of(&fixed)
        };
        if !is_same {
            let message = format!(
                "{}: today's spelling would mean something else; nothing was rewritten",
                source.path().display()
            );
            found.push(Diagnostic::error(code::UNREAD_KEY, message));
        }
    }
    Some(Linted {
        path,
        fixable: findings.iter().filter(|one| one.is_fixable()).count(),
        found: findings.into_iter().map(|one| one.diagnostic).collect(),
        fixed,
    })
}

/// What a file of lading's means, and how much is wrong with it.
fn rig_of(files: &dyn Files, path: &Path, source: &Arc<Source>) -> (String, usize) {
    let named = named_files(files, path, source);
    let (rig, found) = lading::read(source, false, named);
    let plan =
        |rig: LadingRig| format!("{:?}", (rig.seed, rig.generators, rig.sinks, rig.observer));
    (rig.map(plan).unwrap_or_default(), found.errors())
}

fn experiment_of(source: &Arc<Source>) -> (String, usize) {
    let (experiment, found) = smp::read(source, "");
    let checks = experiment.map(|experiment| format!("{:?}", experiment.checks));
    (checks.unwrap_or_default(), found.errors())
}
