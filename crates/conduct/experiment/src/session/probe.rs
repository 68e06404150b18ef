//! Finding the rate of an experiment.

use stillwell_capture::{RunIdentity, RunOutcome, RunStage};
use stillwell_plan::ExperimentPlan;
use stillwell_plan::experiment::OperatingPoint;
use stillwell_scope::explain;
use stillwell_units::Nanos;

use super::{Listener, Next, NoRun, Session, last_words, probe_part};
use crate::files::{read_json, remove_folder, write_json};
use crate::policy::describe_outcome;
use crate::request::Circumstances;
use crate::{
    OperatingPointFound, ProblemKind, Reading, RunsLeft, SuiteError, SuiteProgress, choose_rate,
    operating,
};

impl Session<'_> {
    /// `experiment` at the rate at which its pairs run.
    pub(super) fn at_operating_point(
        &mut self,
        index: usize,
        experiment: &ExperimentPlan,
        progress: &mut Listener<'_>,
    ) -> Result<ExperimentPlan, Next> {
        let (share, length) = match experiment.operating_point {
            OperatingPoint::Stated => return Ok(experiment.clone()),
            OperatingPoint::Max => return Ok(operating::at_full_speed(experiment)),
            OperatingPoint::Probe { share, length } => (share, length),
        };
        let probing = operating::probing(experiment, length);
        if experiment.run_plan.generators.is_empty() {
            // Idle: there is no rate to be found.
            self.forecast.revise(probe_part(index), RunsLeft::NONE);
            return Ok(experiment.clone());
        }
        let path = self.results.operating_point(&experiment.name);
        let taken_over = self.options.resume && path.exists();
        if self.options.judge_only && !taken_over {
            return Err(self.incomplete(experiment, progress));
        }
        let point = if taken_over {
            self.forecast.revise(probe_part(index), RunsLeft::NONE);
            read_json(&path).map_err(|error| self.unusable(experiment, &error, progress))?
        } else {
            let point = self.probe(index, &probing, share, length, progress)?;
            write_json(&path, &point)
                .map_err(|error| self.unusable(experiment, &error, progress))?;
            point
        };
        progress(SuiteProgress::OperatingPoint {
            experiment: &experiment.name,
            result: &point,
            taken_over,
        });
        Ok(operating::at(experiment, &point))
    }

    /// Runs the baseline at full speed.
    fn probe(
        &mut self,
        index: usize,
        probing: &ExperimentPlan,
        share: f64,
        length: Nanos,
        progress: &mut Listener<'_>,
    ) -> Result<OperatingPointFound, Next> {
        const BASELINE: usize = 0;
        let targets = self.targets;
        let both = probing.variants.get(BASELINE).zip(targets[index].of_pair(
            BASELINE,
            RunStage::Search,
            1,
        ));
        let Some((baseline, target)) = both else {
            return Err(Next::Experiment);
        };
        let identity = RunIdentity {
            experiment: probing.name.clone(),
            variant: baseline.name.clone(),
            stage: RunStage::Search,
            pair: 0,
            position: 0,
        };
        progress(SuiteProgress::Probing {
            experiment: &probing.name,
            length,
        });
        // What a probe left that was not finished.
        let folder = self.results.probe(&probing.name);
        if let Err(error) = remove_folder(&folder) {
            let reason = format!("remove {}: {error}", folder.display());
            self.storage_problem(&probing.name, reason, progress);
            return Err(Next::End);
        }
        let about = Circumstances {
            options: self.options,
            experiment: probing,
            index,
            variant: BASELINE,
            target,
        };
        let summary = match self.execute(&about, identity, progress) {
            Ok(summary) => summary,
            Err(NoRun::Interrupted) => return Err(Next::End),
            Err(NoRun::Storage(reason)) => {
                self.storage_problem(&probing.name, reason, progress);
                return Err(Next::End);
            }
        };
        let failed = match &summary.outcome {
            RunOutcome::Completed => {
                let reading = Reading::of(&summary, probing);
                match choose_rate(share, probing.design, &reading) {
                    Ok(point) => return Ok(point),
                    Err(error) => error.to_string(),
                }
            }
            RunOutcome::Interrupted { .. } => return Err(Next::End),
            RunOutcome::StorageFailed { .. } => {
                self.storage_problem(&probing.name, describe_outcome(&summary.outcome), progress);
                return Err(Next::End);
            }
            outcome => describe_outcome(outcome),
        };
        let last_words = last_words(&folder);
        let reason = format!("the probe failed: {failed}{last_words}");
        self.problem(&probing.name, ProblemKind::CouldNotStart, reason, progress);
        Err(Next::Experiment)
    }

    fn unusable(
        &mut self,
        experiment: &ExperimentPlan,
        error: &SuiteError,
        progress: &mut Listener<'_>,
    ) -> Next {
        self.storage_problem(&experiment.name, explain(error), progress);
        Next::End
    }
}
