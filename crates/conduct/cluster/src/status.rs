//! The state of a job, from its store.

use serde::de::DeserializeOwned;
use stillwell_plan::RunRoles;
use stillwell_run::Interrupt;

use crate::engine::JobHandle;
use crate::job::{
    ABORT, Abort, ClusterJob, ENGINE, Failed, JOB, Ready, START, Start, failed_name, ready_name,
    result_name,
};
use crate::roles::{AllocationJob, NO_MORE_RUNS, RunJob};
use crate::store::{JobStore, StoreError};
use crate::suite::SuiteJob;

/// State of a job.
#[derive(Clone, Debug)]
pub struct JobStatus {
    /// The tasks by their engine's name, if they were submitted.
    pub handle: Option<JobHandle>,
    /// True once the start is agreed on.
    pub is_started: bool,
    /// The reason of an early end.
    pub abort: Option<String>,
    /// Each generator, or each task of a run or suite.
    pub generators: Vec<GeneratorProgress>,
    /// Roles of the tasks of a run.
    pub roles: Option<RunRoles>,
    /// Names of the experiments of a suite, one for each task.
    pub experiments: Option<Vec<String>>,
}

/// State of a generator.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GeneratorProgress {
    /// None was started, or it has not come to the store.
    Waiting,
    /// It is ready, or sends, on this node.
    Ready(String),
    /// Its result is there.
    Complete,
    /// It failed, for this reason.
    Failed(String),
}

impl GeneratorProgress {
    /// Returns true until there is a result or a failure.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Waiting | Self::Ready(_))
    }
}

/// Returns the state of the job of `store`; `None` if there is no such job.
///
/// # Errors
/// [`StoreError`] if the store does not answer.
pub fn job_status(
    store: &JobStore,
    interrupt: &Interrupt,
) -> Result<Option<JobStatus>, StoreError> {
    let allocation = AllocationJob::read(store, interrupt)?.map(|job| job.roles);
    let run = RunJob::read(store, interrupt)?.map(|job| job.roles);
    let roles = run.or(allocation);
    let experiments = SuiteJob::read(store, interrupt)?.map(|suite| suite.experiments);
    let tasks = match (&experiments, roles) {
        (Some(experiments), _) => experiments.len(),
        (_, Some(roles)) => roles.tasks().into(),
        _ => match store.get_json::<ClusterJob>(interrupt, JOB)? {
            Some(job) => job.generators.into(),
            None => return Ok(None),
        },
    };
    let abort = store.get_json::<Abort>(interrupt, ABORT)?;
    let abort = abort.map(|abort| abort.why);
    let generators = (0..tasks).map(|task| match progress(store, interrupt, task)? {
        // The tasks of an allocation have a result in each run.
        GeneratorProgress::Ready(_) if allocation.is_some() && abort.is_some() => {
            Ok(GeneratorProgress::Complete)
        }
        progress => Ok(progress),
    });
    let generators = generators.collect::<Result<_, StoreError>>()?;
    Ok(Some(JobStatus {
        handle: store.get_json(interrupt, ENGINE)?,
        // Experiments of a suite do not wait for each other, and each run of an allocation has a start.
        is_started: experiments.is_some()
            || allocation.is_some()
            || store.get_json::<Start>(interrupt, START)?.is_some(),
        abort: abort.filter(|why| why != NO_MORE_RUNS),
        generators,
        roles,
        experiments,
    }))
}

fn progress(
    store: &JobStore,
    interrupt: &Interrupt,
    task: usize,
) -> Result<GeneratorProgress, StoreError> {
    if store.get(interrupt, &result_name(task))?.is_some() {
        return Ok(GeneratorProgress::Complete);
    }
    if let Some(failed) = store.get_json::<Failed>(interrupt, &failed_name(task))? {
        return Ok(GeneratorProgress::Failed(failed.why));
    }
    Ok(
        match latest_ready::<Ready>(store, interrupt, task, &|_| true)? {
            Some(ready) => GeneratorProgress::Ready(ready.node),
            None => GeneratorProgress::Waiting,
        },
    )
}

/// Returns the last attempt of a task that is ready, of those that count.
pub(crate) fn latest_ready<T: DeserializeOwned>(
    store: &JobStore,
    interrupt: &Interrupt,
    task: usize,
    counts: &dyn Fn(&T) -> bool,
) -> Result<Option<T>, StoreError> {
    let mut latest = None;
    for number in 0.. {
        match store.get_json(interrupt, &ready_name(task, number))? {
            Some(ready) if counts(&ready) => latest = Some(ready),
            Some(_) => {}
            None => break,
        }
    }
    Ok(latest)
}
