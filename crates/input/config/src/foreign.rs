//! Formats of other tools, which this crate does not know: a table of them is handed in.
//!
//! A file is read once. The first [`ForeignFormat`] that recognises the text or the folder parses
//! it.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_plan::{ExperimentPlan, RunPlan};
use stillwell_text::{Diagnostic, Diagnostics, Node, Source, parse};

use crate::files::Files;

/// The format of another tool.
pub trait ForeignFormat: Debug {
    /// Name of the format, as results show it.
    fn name(&self) -> &'static str;

    /// Returns true if `text` is a file of this format that describes one run.
    fn is_single_run(&self, _text: &str) -> bool {
        false
    }

    /// Reads the run of a file that [`ForeignFormat::is_single_run`] recognised; mistakes go to
    /// `found`. `has_subject`: a program is between generators and sinks.
    fn read_run(
        &self,
        _file: &ForeignFile<'_>,
        _has_target: bool,
        _found: &mut Diagnostics,
    ) -> Option<RunPlan> {
        None
    }

    /// Files in a folder, relative to it, that make it a case of this format.
    fn case_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns true if the folder holds an experiment in this format.
    fn is_case(&self, _folder: &CaseFolder<'_>) -> bool {
        false
    }

    /// Reads the experiment in a folder that [`ForeignFormat::is_case`] recognised;
    /// mistakes go to `found`.
    fn read_case(&self, _folder: &CaseFolder<'_>, _found: &mut Diagnostics) -> Option<ForeignCase> {
        None
    }

    /// Returns true if the file at `path` describes a bench in this format; its text may be
    /// unknown.
    fn is_bench(&self, _path: &Path, _text: Option<&str>) -> bool {
        false
    }

    /// Reads a file that [`ForeignFormat::is_bench`] recognised, as the tree of a bench file;
    /// mistakes go to `found`.
    fn read_bench(&self, _file: &ForeignFile<'_>, _found: &mut Diagnostics) -> Option<Node> {
        None
    }

    /// Codecs that it adds to those of a bench: lines of a grammar without stamps.
    fn line_codecs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Looks for old spellings in a file; none if the file has another format.
    fn lint(&self, _file: &ForeignFile<'_>, _found: &mut Diagnostics) -> Option<Linted> {
        None
    }
}

/// A file that was read.
#[derive(Clone, Copy, Debug)]
pub struct ForeignFile<'f> {
    /// The file system on which it is.
    pub files: &'f dyn Files,
    /// Its path.
    pub path: &'f Path,
    /// Its text.
    pub source: &'f Arc<Source>,
}

/// A folder that may hold an experiment.
#[derive(Clone, Copy, Debug)]
pub struct CaseFolder<'f> {
    /// The file system on which it is.
    pub files: &'f dyn Files,
    /// Name of the experiment.
    pub name: &'f str,
    /// The folder.
    pub folder: &'f Path,
    /// Its `experiment.yaml`, or the reason why that cannot be read; none if there is none.
    pub experiment: Option<Result<&'f Arc<Source>, &'f Diagnostic>>,
}

/// An experiment of another format.
#[derive(Clone, Debug)]
pub struct ForeignCase {
    /// The plan.
    pub plan: ExperimentPlan,
    /// It names a program, or has mistakes that hide if it does.
    pub has_program: bool,
}

/// Old spellings of one file.
#[derive(Clone, Debug)]
pub struct Linted {
    /// The file.
    pub path: PathBuf,
    /// Its old spellings, in the order of the file.
    pub diagnostics: Diagnostics,
    /// Number of them that can be converted to current keys.
    pub fixable: usize,
    /// The text with those written as today; none where nothing would change.
    pub fixed: Option<String>,
}

/// Returns true if one of `keys` is at the top of `text`.
#[must_use]
pub fn has_key(text: &str, keys: &[&str]) -> bool {
    let Ok((root, _)) = parse(&Source::new("", text)) else {
        // Text that is not YAML is judged line by line, so its mistakes are
        // reported in the words of its format.
        let is_key = |line: &str| keys.iter().any(|key| line.starts_with(&format!("{key}:")));
        return text.lines().any(is_key);
    };
    keys.iter().any(|key| root.entry(key).is_some())
}
