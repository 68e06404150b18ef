//! The executor of runs.

use std::path::Path;

use stillwell_capture::{Capture, Manifest, OpenError};
use stillwell_plan::stopping::DesignPlan;
use stillwell_run::{ConductError, Interrupt, Progress, RunRequest, Together};
use stillwell_units::{Nanos, Seed};
use stillwell_verdict::{RunSummary, summarise, summarise_from};

use crate::SuiteError;
use crate::files::write_json;
use crate::quiet::{self, HostUse};
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

    /// Carries both runs of a pair out as `design` says (those of a paired one after the other) and
    /// leaves the summary of each beside its capture, in the order of `requests`. `turns` is the
    /// seed of all random choices that two simultaneous runs share: the turns, or the CPUs.
    /// `progress` also receives the place of the run in `requests`.
    ///
    /// # Errors
    ///
    /// [`ExecutorError`] for each run that left no readable capture. If the host does not permit
    /// the design, both summaries say that the runs could not start.
    fn execute_pair(
        &mut self,
        requests: [RunRequest; 2],
        design: DesignPlan,
        turns: &Seed,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(usize, Progress),
    ) -> [Result<RunSummary, ExecutorError>; 2];

    /// Watches the host for `over`; `None` where that cannot be done, or if interrupted.
    fn watch_host(&mut self, _over: Nanos, _interrupt: &Interrupt) -> Option<HostUse> {
        None
    }

    /// Waits for `length`, or until `interrupt`.
    fn pause(&mut self, _length: Nanos, _interrupt: &Interrupt) {}

    /// Sums up again the run whose capture is in `folder`, with `warmup` left
    /// out, and replaces its `summary.json`.
    ///
    /// # Errors
    /// [`ExecutorError`] where the capture cannot be read or the summary not be
    /// kept.
    fn sum_up(&mut self, folder: &Path, warmup: Nanos) -> Result<RunSummary, ExecutorError> {
        let capture = Capture::open(folder).map_err(|source| ExecutorError::Capture { source })?;
        let summary = summarise_from(&capture, warmup);
        write_json(&summary_of(folder), &summary)
            .map_err(|source| ExecutorError::Summary { source })?;
        Ok(summary)
    }
}

/// A run left nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// Not even a capture could be made.
    #[error("start the run")]
    Conduct {
        /// The reason why not.
        source: ConductError,
    },
    /// The captures of several machines cannot be put together.
    #[error("merge the captures of the tasks: {0}")]
    Merge(String),
    /// Its capture cannot be read.
    #[error("read the capture")]
    Capture {
        /// The reason why not.
        source: OpenError,
    },
    /// Its summary cannot be kept.
    #[error("write the summary")]
    Summary {
        /// The reason why not.
        source: SuiteError,
    },
}

/// Carries runs out on this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Executor for Local {
    fn watch_host(&mut self, over: Nanos, interrupt: &Interrupt) -> Option<HostUse> {
        HostUse::watch(over, interrupt)
    }

    fn pause(&mut self, length: Nanos, interrupt: &Interrupt) {
        quiet::pause(length, interrupt);
    }

    fn execute(
        &mut self,
        request: RunRequest,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RunSummary, ExecutorError> {
        let folder = request.folder.clone();
        summarize(
            stillwell_run::conduct(request, interrupt, progress),
            &folder,
        )
    }

    fn execute_pair(
        &mut self,
        requests: [RunRequest; 2],
        design: DesignPlan,
        turns: &Seed,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(usize, Progress),
    ) -> [Result<RunSummary, ExecutorError>; 2] {
        let Some(together) = Together::of(design) else {
            let mut place = 0..;
            return requests.map(|request| {
                let run = place.next().unwrap_or_default();
                self.execute(request, interrupt, &mut |event| progress(run, event))
            });
        };
        let mut folders = requests
            .each_ref()
            .map(|request| request.folder.clone())
            .into_iter();
        let ended =
            stillwell_run::conduct_together(requests, together, *turns, interrupt, progress);
        ended.map(|conducted| summarize(conducted, &folders.next().unwrap_or_default()))
    }
}

/// Sums up the run that was conducted into `folder`.
fn summarize(
    conducted: Result<Manifest, ConductError>,
    folder: &Path,
) -> Result<RunSummary, ExecutorError> {
    let manifest = conducted.map_err(|source| ExecutorError::Conduct { source })?;
    // Read back from the files: what is judged is what is kept.
    let mut capture = Capture::open(folder).map_err(|source| ExecutorError::Capture { source })?;
    // Only how it ended is not: a full disk does not take that news.
    capture.manifest.outcome = manifest.outcome;
    let summary = summarise(&capture);
    write_json(&summary_of(folder), &summary)
        .map_err(|source| ExecutorError::Summary { source })?;
    Ok(summary)
}
