//! Options of a suite of experiments.

use std::path::PathBuf;

use stillwell_run::{CallDescriber, RunMetrics};
use stillwell_units::Secrets;

use crate::Problem;

/// Paths and options of a suite.
#[derive(Clone, Debug)]
pub struct SuiteOptions {
    /// The results folder.
    pub results: PathBuf,
    /// True if to go on with what is in it.
    pub resume: bool,
    /// True if nothing is built or run: what is in the folder is judged, wherever it was measured.
    /// Experiments without a folder are not judged, but the correction for several experiments counts them. Needs `resume`.
    pub judge_only: bool,
    /// True if a pair waits until the machine is quiet, within limits.
    pub wait_for_quiet: bool,
    /// Problems of experiments that were measured elsewhere, for `judge_only`: they count as problems of this suite.
    pub problems: Vec<Problem>,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// Handling of secrets in results.
    pub secrets: Secrets,
    /// The running executable: `{self}`.
    pub stillwell: PathBuf,
    /// Folder of builds.
    pub cache: PathBuf,
    /// Folder of the state folders of runs; keep its path short, and use it for one process alone.
    pub state_root: PathBuf,
    /// True if state folders stay when their runs have ended.
    pub keep_state: bool,
    /// Export of samples to other programs during runs.
    pub metrics: Option<RunMetrics>,
    /// Source of descriptions of gRPC calls.
    pub describer: CallDescriber,
}
