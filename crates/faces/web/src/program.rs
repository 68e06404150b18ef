//! The program behind the pages: its commands, as functions.

use std::path::{Path, PathBuf};

use stillwell_report::FullReport;

/// Functions of the program that serves the pages. All of them may block for seconds.
pub trait Program: Send + Sync + 'static {
    /// Returns the report of saved results.
    ///
    /// # Errors
    /// The results cannot be read.
    fn report(&self, path: &Path) -> Result<FullReport, Refusal>;

    /// Returns the comparison of two saved results.
    ///
    /// # Errors
    /// One of them cannot be read, or they have nothing in common.
    fn compare(&self, baseline: &Path, comparison: &Path) -> Result<FullReport, Refusal>;

    /// Returns the history of suites; `only` is the pattern of a name, or empty.
    ///
    /// # Errors
    /// No suite can be read, or no experiment matches.
    fn history(&self, folders: &[PathBuf], only: &str) -> Result<FullReport, Refusal>;

    /// Returns the newest jobs in the store of a cluster.
    ///
    /// # Errors
    /// The store cannot be read.
    fn cluster_jobs(&self, store: &Path) -> Result<Vec<ClusterJobView>, Refusal>;

    /// Checks a configuration file.
    fn check(&self, file: &Path) -> CheckedFile;

    /// Returns a new folder for results below the working folder, such as `.stillwell/loads/TIME-NAME`: one that is not
    /// taken.
    fn new_folder(&self, kind: &str, name: &str, is_taken: &dyn Fn(&str) -> bool) -> String;

    /// Checks the words of a command line after the name of the program.
    ///
    /// # Errors
    /// The message of the command line.
    fn check_words(&self, words: &[String]) -> Result<(), String>;
}

/// State of a job of a cluster.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClusterJobView {
    /// Its name in the store.
    pub name: String,
    /// The engine and its name of the job; empty if nothing was submitted.
    pub engine: String,
    /// Each generator or task, and its state.
    pub tasks: Vec<(String, String)>,
    /// Reason of an early end.
    pub ended_early: Option<String>,
}

/// A request that cannot be answered, and advice.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Refusal {
    /// The reason.
    pub message: String,
    /// Advice for the user.
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal without advice.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }
}

/// Findings in a configuration file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CheckedFile {
    /// All findings, in the order of lines.
    pub findings: Vec<FileFinding>,
    /// Description of what the file would run; `None` with errors.
    pub summary: Option<String>,
}

/// One finding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileFinding {
    /// True if nothing can be run.
    pub is_error: bool,
    /// Line, from 1; `None` if the finding has no place in this file.
    pub line: Option<usize>,
    /// Column, from 1.
    pub column: Option<usize>,
    /// Code, such as `W101`.
    pub code: String,
    /// The finding in one sentence.
    pub message: String,
    /// Accepted values and advice.
    pub help: Vec<String>,
}
