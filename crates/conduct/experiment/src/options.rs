//! Options of a suite of experiments.

use std::path::PathBuf;

/// Where a lab's things lie, and how it is begun.
#[derive(Clone, Debug)]
pub struct SuiteOptions {
    /// The results folder.
    pub results: PathBuf,
    /// Whether to go on with what is in it.
    pub resume: bool,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// The running executable: `{self}`.
    pub stillwell: PathBuf,
    /// Where builds are kept.
    pub cache: PathBuf,
    /// Where runs get their state folders; keep it short, and for this process
    /// alone.
    pub state_root: PathBuf,
    /// Whether state folders stay when their runs have ended.
    pub keep_state: bool,
}
