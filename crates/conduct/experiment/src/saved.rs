//! Runs on disk: captures, and what their suite wanted to know of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use stillwell_capture::{Capture, OpenError, RunStage};
use stillwell_plan::StoppingPlan;
use stillwell_units::human::counted;
use stillwell_verdict::across::{PairKey, SavedRun};
use stillwell_verdict::{RunSummary, summarise};

use crate::results::{Results, SuiteRecord, summary_of};

/// Maximum number of levels between a capture and its suite: results/EXPERIMENT/PAIR/VARIANT.
const SUITE_LEVELS: usize = 3;

/// The reason why a run cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("open the capture {}", folder.display())]
pub struct SavedRunError {
    /// The folder of its capture.
    folder: PathBuf,
    /// Why.
    #[source]
    source: OpenError,
}

/// Reads runs of Stillwell, and the plan of each suite once.
#[derive(Debug, Default)]
pub struct SavedReader {
    suites: BTreeMap<PathBuf, Option<SuiteRecord>>,
    confirmations: u32,
}

impl SavedReader {
    /// Reads the run in `folder`; none, if it is one of a confirmation.
    ///
    /// # Errors
    /// [`SavedRunError`] where its capture cannot be read.
    pub fn read(&mut self, folder: &Path) -> Result<Option<SavedRun>, SavedRunError> {
        let summary = summary(folder)?;
        let identity = summary.identity.as_ref();
        if identity.is_some_and(|item| item.stage == RunStage::Confirm) {
            self.confirmations += 1;
            return Ok(None);
        }
        let mut saved = SavedRun::new(summary);
        saved.folder = Some(folder.to_path_buf());
        self.add_plan(&mut saved, folder);
        Ok(Some(saved))
    }

    fn add_plan(&mut self, saved: &mut SavedRun, folder: &Path) {
        let Some(identity) = saved.summary.identity.clone() else {
            return;
        };
        let folder = folder
            .canonicalize()
            .unwrap_or_else(|_| folder.to_path_buf());
        let mut above = folder.ancestors().skip(1).take(SUITE_LEVELS);
        let Some(root) = above.find(|above| above.join("suite.json").is_file()) else {
            return;
        };
        saved.pair = (identity.pair > 0).then(|| PairKey {
            suite: root.to_path_buf(),
            experiment: identity.experiment.clone(),
            pair: identity.pair,
        });
        // Without a readable plan the runs are still there to be compared.
        let record = self
            .suites
            .entry(root.to_path_buf())
            .or_insert_with(|| Results::new(root.to_path_buf()).record().ok());
        let plan = record.as_ref().and_then(|record| {
            let mut experiments = record.plan.experiments.iter();
            experiments.find(|plan| plan.name == identity.experiment)
        });
        if let Some(plan) = plan {
            saved.design = Some(plan.design);
            saved.goals.clone_from(&plan.goals);
            saved.variants = plan.variants.iter().map(|item| item.name.clone()).collect();
            saved.looked_at = !matches!(plan.stopping, StoppingPlan::Fixed { .. });
        }
    }

    /// Returns what readers should know of what was not read.
    #[must_use]
    pub fn into_remarks(self) -> Option<String> {
        (self.confirmations > 0).then(|| {
            format!(
                "{} not included; `stillwell report` shows {}",
                counted(
                    self.confirmations,
                    "confirmation run is",
                    "confirmation runs are"
                ),
                if self.confirmations == 1 {
                    "it"
                } else {
                    "them"
                }
            )
        })
    }
}

/// The summary from the end of the run, or a new one: for an interrupted run, or one of an older
/// version.
fn summary(folder: &Path) -> Result<RunSummary, SavedRunError> {
    let kept = fs::read(summary_of(folder)).ok();
    let kept = kept.and_then(|bytes| serde_json::from_slice::<RunSummary>(&bytes).ok());
    match kept.filter(|summary| !summary.series.is_empty()) {
        Some(summary) => Ok(summary),
        None => {
            let capture = Capture::open(folder).map_err(|source| SavedRunError {
                folder: folder.to_path_buf(),
                source,
            })?;
            Ok(summarise(&capture))
        }
    }
}
