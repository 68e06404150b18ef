//! The pairs in a results folder.

use std::fs;

use stillwell_capture::RunStage;
use stillwell_plan::ExperimentPlan;
use stillwell_verdict::RunSummary;

use super::{Results, summary_of};
use crate::SuiteError;
use crate::files::{read_json, remove_folder};
use crate::policy::is_result;

/// Runs of a pair from an earlier session.
#[derive(Debug)]
pub(crate) enum PairLeft {
    /// All its runs, which completed.
    Finished(Vec<RunSummary>),
    /// Runs of which one failed.
    Lost(Vec<RunSummary>),
    /// Nothing that could be used.
    Unfinished,
}

impl Results {
    /// The summaries of all runs of an experiment that there are, by stage, pair
    /// and place of the variant. A run that was only cut off runs again, and says
    /// nothing.
    ///
    /// # Errors
    /// [`SuiteError::Read`] for one that is there and not readable.
    pub fn summaries(&self, experiment: &ExperimentPlan) -> Result<Vec<RunSummary>, SuiteError> {
        let mut runs = Vec::new();
        for (stage, pair) in self.pairs(&experiment.name) {
            for variant in &experiment.variants {
                let folder = self.run_of(&experiment.name, stage, pair, &variant.name);
                let path = summary_of(&folder);
                if path.exists() {
                    let run: RunSummary = read_json(&path)?;
                    runs.extend(is_result(&run.outcome).then_some(run));
                }
            }
        }
        Ok(runs)
    }

    /// The pairs that have a folder, in the order in which they were run.
    pub(crate) fn pairs(&self, experiment: &str) -> Vec<(RunStage, u32)> {
        let entries = fs::read_dir(self.experiment(experiment));
        let entries = entries.into_iter().flatten().flatten();
        let mut pairs: Vec<(RunStage, u32)> = entries
            .filter_map(|entry| place_of(entry.file_name().to_str()?))
            .collect();
        pairs.sort_unstable();
        pairs
    }

    /// Returns the runs of a pair from an earlier session.
    pub(crate) fn pair_left(
        &self,
        experiment: &ExperimentPlan,
        stage: RunStage,
        pair: u32,
    ) -> PairLeft {
        let mut runs = Vec::new();
        for variant in &experiment.variants {
            let folder = self.run_of(&experiment.name, stage, pair, &variant.name);
            let Ok(summary) = read_json::<RunSummary>(&summary_of(&folder)) else {
                continue;
            };
            let here = summary.identity.as_ref().is_some_and(|identity| {
                identity.experiment == experiment.name
                    && identity.variant == variant.name
                    && identity.stage == stage
                    && identity.pair == pair
            });
            if here {
                runs.push(summary);
            }
        }
        let completed = runs.iter().filter(|run| run.outcome.is_completed()).count();
        if completed == experiment.variants.len() {
            PairLeft::Finished(runs)
        } else if completed < runs.len() && runs.iter().all(|run| is_result(&run.outcome)) {
            PairLeft::Lost(runs)
        } else {
            PairLeft::Unfinished
        }
    }

    /// Moves what an unfinished pair left out of the way of its next attempt.
    pub(crate) fn set_aside(
        &self,
        experiment: &str,
        stage: RunStage,
        pair: u32,
    ) -> Result<(), SuiteError> {
        let old = self.pair(experiment, stage, pair);
        if !old.exists() {
            return Ok(());
        }
        let discarded = self.experiment(experiment).join("discarded");
        let stage = stage_prefix(stage);
        let free = (1_u32..)
            .map(|attempt| discarded.join(format!("{stage}-{pair:03}-{attempt}")))
            .find(|path| !path.exists());
        let moved = match free {
            Some(free) => fs::create_dir_all(&discarded).and_then(|()| fs::rename(&old, free)),
            None => remove_folder(&old),
        };
        moved.map_err(|source| SuiteError::Write { path: old, source })
    }
}

/// Prefix of the folders of a stage's pairs.
pub(super) const fn stage_prefix(stage: RunStage) -> &'static str {
    match stage {
        RunStage::Search => "pair",
        RunStage::Confirm => "confirm",
    }
}

/// The pair whose folder is called so.
fn place_of(folder: &str) -> Option<(RunStage, u32)> {
    [RunStage::Search, RunStage::Confirm]
        .into_iter()
        .find_map(|stage| {
            let number = folder
                .strip_prefix(stage_prefix(stage))?
                .strip_prefix('-')?;
            // `pair-1` and `pair-+01` are not ours.
            let is_pair_number =
                number.len() >= 3 && number.bytes().all(|byte| byte.is_ascii_digit());
            let pair = number
                .parse()
                .ok()
                .filter(|pair| is_pair_number && *pair > 0)?;
            Some((stage, pair))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_pairs_are_recognised() {
        for (folder, place) in [
            ("pair-001", Some((RunStage::Search, 1))),
            ("confirm-012", Some((RunStage::Confirm, 12))),
            ("pair-1234", Some((RunStage::Search, 1234))),
            ("pair-000", None),
            ("pair-+01", None),
            ("pair-1", None),
            ("pair-", None),
            ("pair-001-1", None),
            ("probe", None),
            ("confirmed-001", None),
        ] {
            assert_eq!(place_of(folder), place, "{folder}");
        }
    }
}
