//! The present state, with runs summed up as it requires.

use stillwell_plan::ExperimentPlan;
use stillwell_plan::stopping::WarmupPlan;
use stillwell_scope::explain;
use stillwell_verdict::{Standing, standing};

use super::course::Course;
use super::{Listener, Next, Session};
use crate::SuiteProgress;
use crate::files::write_json;
use crate::warmup::WarmupRecord;

impl Session<'_> {
    /// Returns the state of an experiment and the next step. Runs with another warm-up than the
    /// measured one are summed up again before.
    pub(super) fn next_standing(
        &mut self,
        plan: &ExperimentPlan,
        course: &mut Course,
        progress: &mut Listener<'_>,
    ) -> Result<Standing, Next> {
        let before = standing(plan, &course.runs);
        let warmup = before.warmup;
        if plan.warmup == WarmupPlan::Stated {
            return Ok(before);
        }
        let mut again = false;
        for run in &mut course.runs {
            let Some(identity) = run.identity.as_ref().filter(|_| run.warmup != warmup) else {
                continue;
            };
            // What did not complete has nothing to be cut.
            if !run.outcome.is_completed() {
                continue;
            }
            let folder =
                self.results
                    .run_of(&plan.name, identity.stage, identity.pair, &identity.variant);
            match self.executor.sum_up(&folder, warmup) {
                Ok(summary) => *run = summary,
                Err(error) => {
                    let reason = format!("summarize {}: {}", folder.display(), explain(&error));
                    self.storage_problem(&plan.name, reason, progress);
                    return Err(Next::End);
                }
            }
            again = true;
        }
        if !again {
            return Ok(before);
        }
        self.freeze(plan, &before, progress)?;
        Ok(standing(plan, &course.runs))
    }

    /// Writes the warm-up that was found down, once.
    fn freeze(
        &mut self,
        plan: &ExperimentPlan,
        standing: &Standing,
        progress: &mut Listener<'_>,
    ) -> Result<(), Next> {
        let path = self.results.warmup(&plan.name);
        if path.exists() {
            return Ok(());
        }
        let record = WarmupRecord::new(plan.run_plan.phases.warmup, standing.warmup);
        if let Err(error) = write_json(&path, &record) {
            self.storage_problem(&plan.name, explain(&error), progress);
            return Err(Next::End);
        }
        progress(SuiteProgress::WarmupFound {
            experiment: &plan.name,
            result: &record,
        });
        Ok(())
    }
}
