//! Runs of ours: captures, and what their lab wanted to know of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_capture::{Capture, RunStage};
use stillwell_experiment::{LabRecord, Results};
use stillwell_plan::{GoalPlan, StoppingPlan};
use stillwell_verdict::{RunSummary, summarise};

use super::read::{Run, Source};

/// How far above a capture its lab may lie: results/EXPERIMENT/PAIR/VARIANT.
const LAB_ABOVE: usize = 3;

/// A run of ours.
#[derive(Debug)]
pub(super) struct Saved {
    /// The run in numbers.
    pub(super) summary: RunSummary,
    /// The capture, where it is not only the summary that is there.
    pub(super) folder: Option<PathBuf>,
    /// Which pair of which lab it belongs to, if to any.
    pub(super) pair: Option<PairKey>,
    /// What its experiment compares by, if that is known.
    pub(super) goals: Vec<GoalPlan>,
    /// The variants of its experiment in the order of its plan, if known.
    pub(super) variants: Vec<String>,
    /// Whether its experiment looked at its runs more than once.
    pub(super) looked_at: bool,
}

/// Which pair a run belongs to.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PairKey {
    pub(super) lab: PathBuf,
    pub(super) experiment: String,
    pub(super) pair: u32,
}

/// Reads runs of ours, and each lab's plan once.
#[derive(Default)]
pub(super) struct SavedReader {
    labs: BTreeMap<PathBuf, Option<LabRecord>>,
    confirmations: u32,
}

impl SavedReader {
    /// The run in `folder`; none, if it is one of a confirmation.
    pub(super) fn read(&mut self, folder: &Path) -> anyhow::Result<Option<Run>> {
        let summary = summary(folder)?;
        let identity = summary.identity.as_ref();
        if identity.is_some_and(|own| own.stage == RunStage::Confirm) {
            self.confirmations += 1;
            return Ok(None);
        }
        let mut saved = Saved::new(summary);
        saved.folder = Some(folder.to_path_buf());
        self.add_plan(&mut saved, folder);
        Ok(Some(saved.into_run(folder.display().to_string())))
    }

    fn add_plan(&mut self, saved: &mut Saved, folder: &Path) {
        let Some(identity) = saved.summary.identity.clone() else {
            return;
        };
        let folder = folder
            .canonicalize()
            .unwrap_or_else(|_| folder.to_path_buf());
        let mut above = folder.ancestors().skip(1).take(LAB_ABOVE);
        let Some(root) = above.find(|above| above.join("lab.json").is_file()) else {
            return;
        };
        saved.pair = (identity.pair > 0).then(|| PairKey {
            lab: root.to_path_buf(),
            experiment: identity.experiment.clone(),
            pair: identity.pair,
        });
        // Without a readable plan the runs are still there to be compared.
        let record = self
            .labs
            .entry(root.to_path_buf())
            .or_insert_with(|| Results::new(root.to_path_buf()).record().ok());
        let plan = record.as_ref().and_then(|record| {
            let mut experiments = record.plan.experiments.iter();
            experiments.find(|plan| plan.name == identity.experiment)
        });
        if let Some(plan) = plan {
            saved.goals.clone_from(&plan.goals);
            saved.variants = plan.variants.iter().map(|own| own.name.clone()).collect();
            saved.looked_at = !matches!(plan.stopping, StoppingPlan::Fixed { .. });
        }
    }

    pub(super) fn into_remarks(self) -> Option<String> {
        (self.confirmations > 0).then(|| {
            format!(
                "{} runs that confirmed what a search had found are not part of it; \
                 `stillwell report` has what they said",
                self.confirmations
            )
        })
    }
}

impl Saved {
    const fn new(summary: RunSummary) -> Self {
        Self {
            summary,
            folder: None,
            pair: None,
            goals: Vec::new(),
            variants: Vec::new(),
            looked_at: false,
        }
    }

    /// The run whose summary is this text, if it is one.
    pub(super) fn from_summary(text: &str) -> Option<Self> {
        let summary: RunSummary = serde_json::from_str(text).ok()?;
        Some(Self::new(summary))
    }

    pub(super) fn into_run(self, label: String) -> Run {
        let identity = self.summary.identity.as_ref();
        Run {
            label,
            experiment: identity.map(|own| own.experiment.clone()),
            variant: identity.map(|own| own.variant.clone()),
            source: Source::Saved(Box::new(self)),
        }
    }
}

/// What was summed up when the run ended, or is now: from an interrupted run, or
/// by an older version.
fn summary(folder: &Path) -> anyhow::Result<RunSummary> {
    let kept = fs::read(folder.join("summary.json")).ok();
    let kept = kept.and_then(|bytes| serde_json::from_slice::<RunSummary>(&bytes).ok());
    match kept.filter(|summary| !summary.series.is_empty()) {
        Some(summary) => Ok(summary),
        None => {
            let capture = Capture::open(folder);
            let capture =
                capture.with_context(|| format!("open the capture {}", folder.display()))?;
            Ok(summarise(&capture))
        }
    }
}
