//! A task of a suite whose runs are on several machines.

use std::path::Path;

use stillwell_cluster::{
    AllocationJob, AllocationTask, Attempt, JobStore, PlannedRun, RunTaskContext, RunTaskEnd,
};
use stillwell_plan::target::Places;
use stillwell_plan::{RunPlan, SuitePlan};
use stillwell_run::{Exports, Interrupt, RunRequest};
use stillwell_target::prepare_privileges;
use stillwell_units::{Nanos, RunId};

use super::plans;
use crate::arguments::{ColorWhen, Command, RunArguments};
use crate::command::fleet::{could_not, typed_line, usage};
use crate::command::run::load;
use crate::command::{output, places, reflection, select};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::{secrets, signals};

/// Is a task: one part of each run, in turn.
pub(crate) fn be_task(
    job: &AllocationJob,
    store: &JobStore,
    attempt: &Attempt,
) -> Result<Exit, CommandError> {
    let line = (job.folder.as_path(), job.words.as_slice());
    let (command, _) = typed_line(&job.version, line, &job.seed)?;
    let Command::Run(arguments) = command else {
        return Err(usage(
            "the job in the store was not made by `stillwell run`",
        ));
    };
    // Namespaces of one's own are a matter for processes with one thread.
    output::report_privileges(Some(&prepare_privileges()), false);
    let interrupt = Interrupt::new();
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal)).map_err(could_not)?;
    let state = places::guarded_state_root().map_err(could_not)?;
    let mut task = PartTask {
        arguments: &arguments,
        attempt,
        interrupt: &interrupt,
        state: &state,
        suite: None,
    };
    let end = task.carry_out(store);
    signals.close(Nanos::SECOND);
    // It holds only temporary state.
    drop(std::fs::remove_dir_all(&state));
    Paint::print_message(&format!("{} parts of runs are in the store", end?));
    Ok(Exit::Held)
}

/// The task of this process.
struct PartTask<'a> {
    arguments: &'a RunArguments,
    attempt: &'a Attempt,
    interrupt: &'a Interrupt,
    /// Folder of the state of runs.
    state: &'a Path,
    /// The suite with its secrets, once a run needs them.
    suite: Option<SuitePlan>,
}

impl PartTask<'_> {
    /// Does its part of each run, and returns the number of those that count.
    fn carry_out(&mut self, store: &JobStore) -> Result<u32, CommandError> {
        let begun = AllocationTask::begin(store, self.attempt, self.interrupt);
        let mut allocation = begun.map_err(could_not)?;
        let mut committed = 0;
        while let Some((store, job)) = allocation.next_run().map_err(could_not)? {
            let task = RunTaskContext {
                store: &store,
                attempt: self.attempt,
                job: &job,
                interrupt: self.interrupt,
            };
            let planned = job.planned.as_deref();
            let planned = planned.ok_or_else(|| usage("the run has no plan"))?;
            let plan = match self.plan(planned) {
                Ok(plan) => plan,
                Err(why) => {
                    task.fail(why.clone());
                    return Err(could_not(anyhow::anyhow!(why)));
                }
            };
            let end = task.carry_out(&plan, |part, fleet| {
                let request = self.request(part, planned);
                let request = request.map_err(|error| error.to_string())?;
                Ok(RunRequest {
                    run: job.run,
                    fleet: Some(fleet),
                    ..request
                })
            });
            // The next run begins with an empty folder.
            drop(std::fs::remove_dir_all(self.state.join("run")));
            match end.map_err(could_not)? {
                RunTaskEnd::Committed => committed += 1,
                RunTaskEnd::GivenUp => {}
                // Another attempt of this task has taken over, for all runs that follow.
                RunTaskEnd::NotNeeded => break,
            }
        }
        Ok(committed)
    }

    /// Returns the plan of a run with its secrets.
    fn plan(&mut self, run: &PlannedRun) -> Result<RunPlan, String> {
        if !run.is_masked {
            return Ok(run.plan.clone());
        }
        let suite = match self.suite.take() {
            Some(suite) => suite,
            None => self.read_suite().map_err(|error| error.to_string())?,
        };
        plans::typed(run, self.suite.insert(suite))
    }

    fn read_suite(&self) -> Result<SuitePlan, CommandError> {
        let overrides = select::overrides(&self.arguments.select);
        load(self.arguments, &overrides, &Paint::new(ColorWhen::Never))
    }

    fn request(&self, part: RunPlan, run: &PlannedRun) -> std::io::Result<RunRequest> {
        let name = format!("stillwell-{}", self.attempt.name);
        Ok(RunRequest {
            plan: part,
            places: Places {
                stillwell: std::env::current_exe()?,
                state: self.state.join("run"),
                files: run.files.clone(),
                experiment: run.experiment.clone(),
            },
            folder: std::path::absolute(std::env::temp_dir().join(name))?,
            identity: Some(run.identity.clone()),
            command: secrets::command_words(),
            secrets: secrets::handling(),
            run: RunId::from_bytes([0; 16]),
            exports: Exports::default(),
            fleet: None,
            describer: reflection::describer(),
        })
    }
}
