//! Who carries a run out.

use stillwell_capture::{Capture, OpenError};
use stillwell_run::{ConductError, Interrupt, Progress, RunRequest};
use stillwell_verdict::{RunSummary, summarise};

use crate::LabError;
use crate::files::write_json;
use crate::results::summary_of;

/// Carries runs out.
pub trait Executor {
    /// Carries `request` out and leaves the summary beside the capture, as
    /// `summary.json`.
    ///
    /// # Errors
    /// [`ExecutorError`] where there is nothing to read afterwards. A run that
    /// failed in any other way is a summary that says so.
    fn execute(
        &mut self,
        request: RunRequest,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RunSummary, ExecutorError>;
}

/// A run left nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// Not even a capture could be made.
    #[error("conduct the run")]
    Conduct {
        /// Why not.
        source: ConductError,
    },
    /// Its capture cannot be read.
    #[error("read the capture")]
    Capture {
        /// Why not.
        source: OpenError,
    },
    /// Its summary cannot be kept.
    #[error("keep the summary")]
    Summary {
        /// Why not.
        source: LabError,
    },
}

/// Carries runs out on this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Executor for Local {
    fn execute(
        &mut self,
        request: RunRequest,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RunSummary, ExecutorError> {
        let folder = request.folder.clone();
        let manifest = stillwell_run::conduct(request, interrupt, progress)
            .map_err(|source| ExecutorError::Conduct { source })?;
        // Read back from the files: what is judged is what is kept.
        let mut capture =
            Capture::open(&folder).map_err(|source| ExecutorError::Capture { source })?;
        // Only how it ended is not: a full disk does not take that news.
        capture.manifest.outcome = manifest.outcome;
        let summary = summarise(&capture);
        write_json(&summary_of(&folder), &summary)
            .map_err(|source| ExecutorError::Summary { source })?;
        Ok(summary)
    }
}
