//! Suites of which each experiment is a task: whole, on one node.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillwell_run::Interrupt;
use stillwell_scope::{Scope, clock, explain};
use stillwell_units::Nanos;

use crate::attempt::{Attempt, is_foreign, may_be_of};
use crate::beats;
use crate::bundle;
use crate::controller::{
    EngineView, FleetError, RESULT_DELAY_MAX, WaitReason, submit_tasks, try_end_job,
};
use crate::engine::{Engine, JobHandle, Submission};
use crate::job::{
    ABORT, Abort, ENGINE, Failed, Job, Ready, SUITE_SCHEMA, agreed_job, failed_name, read_job,
    ready_name, result_name,
};
use crate::pause::pause;
use crate::store::{Created, JobStore, StoreError};

/// Time between two looks at the store.
const LOOK_EVERY: Nanos = Nanos::from_millis(500);
/// Time in which results arrive after the end of aborted runs.
const ABORT_MAX: Nanos = Nanos::from_secs(60);
/// Most attempts of one task.
const ATTEMPTS_MAX: u32 = 64;
/// The deadline of the thread that gives signs of life.
const CLOSE_MAX: Nanos = Nanos::from_secs(2);

/// A suite, as its tasks read it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SuiteJob {
    /// Names the shape.
    pub schema: String,
    /// Version of the controller; tasks of another one refuse.
    pub version: String,
    /// Working folder of the command.
    pub folder: PathBuf,
    /// The command line as typed. No secrets are in it.
    pub words: Vec<String>,
    /// Seed of the suite.
    pub seed: String,
    /// Names of the experiments: each one is a task.
    pub experiments: Vec<String>,
    /// Fingerprint of the plan without its seeds.
    #[serde(default)]
    pub fingerprint: String,
}

impl SuiteJob {
    /// Returns the suite of `experiments` that the command line `words` in `folder` names. Its plan without seeds has this
    /// fingerprint.
    #[must_use]
    pub fn new(
        version: &str,
        folder: PathBuf,
        words: Vec<String>,
        seed: String,
        experiments: Vec<String>,
        fingerprint: String,
    ) -> Self {
        Self {
            schema: SUITE_SCHEMA.to_owned(),
            version: version.to_owned(),
            folder,
            words,
            seed,
            experiments,
            fingerprint,
        }
    }

    /// Returns the suite of the job of `store`; `None` if the job is another one.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn read(store: &JobStore, interrupt: &Interrupt) -> Result<Option<Self>, StoreError> {
        read_job(store, interrupt, SUITE_SCHEMA)
    }
}

impl Job for SuiteJob {
    const SCHEMA: &'static str = SUITE_SCHEMA;

    fn is_equivalent(&self, other: &Self) -> bool {
        // Command lines may differ in what does not change the plan, such as the folder of results.
        self.experiments == other.experiments
            && self.folder == other.folder
            && self.version == other.version
            && self.fingerprint == other.fingerprint
    }
}

/// The node of an experiment, and the time.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ExperimentNode {
    /// Name of the attempt.
    pub attempt: String,
    /// Name of the node.
    pub node: String,
    /// Identity of the boot of the node.
    pub boot: String,
    /// Start of the task, since 1970 by its own clock.
    pub began: Nanos,
    /// End of the task.
    pub ended: Nanos,
}

/// The controller of a suite.
pub struct FleetSuite<'a> {
    /// Objects of the job.
    pub store: &'a JobStore,
    /// The engine.
    pub engine: &'a dyn Engine,
    /// The program that each task runs.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Folder of logs.
    pub logs: PathBuf,
    /// Requests the early end.
    pub interrupt: &'a Interrupt,
    /// Longest time from a request for the early end to the end of a run.
    pub end_max: Nanos,
    /// Receives progress for readers.
    pub print_message: &'a dyn Fn(&str),
}

impl std::fmt::Debug for FleetSuite<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetSuite")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl FleetSuite<'_> {
    /// Makes the job, or returns the one that another controller made.
    ///
    /// # Errors
    /// [`FleetError`] if there are too many experiments, the name is taken, or the store does not answer.
    pub fn job(&self, job: SuiteJob) -> Result<SuiteJob, FleetError> {
        tasks_of(job.experiments.len())?;
        Ok(agreed_job(
            self.store,
            self.interrupt,
            self.print_message,
            job,
        )?)
    }

    /// Returns the text with which the engine would start this number of experiments.
    ///
    /// # Errors
    /// [`FleetError`] if there are too many, or it would refuse.
    pub fn render(&self, experiments: usize) -> Result<String, FleetError> {
        Ok(self.engine.render(&self.submission(experiments)?)?)
    }

    /// Has all experiments run, and writes the results of each to a folder below `folder`, which
    /// has its index as its name. Returns where each ran, or why it has no result.
    ///
    /// # Errors
    /// [`FleetError`] if store or engine do not work.
    pub fn conduct(
        &self,
        job: &SuiteJob,
        folder: &Path,
    ) -> Result<Vec<Result<ExperimentNode, String>>, FleetError> {
        let handle = self.handle(job)?;
        let of = job.experiments.len();
        let mut ends: Vec<Option<Result<ExperimentNode, String>>> = vec![None; of];
        let mut engine = EngineView::new(self.engine, self.store, &handle);
        let mut deadline = None;
        let quiet = Interrupt::new();
        let mut shown = usize::MAX;
        let mut reason = WaitReason::default();
        while ends.iter().any(Option::is_none) {
            for (task, end) in ends.iter_mut().enumerate().filter(|(_, end)| end.is_none()) {
                *end = self.end(&quiet, &handle, task, &folder.join(task.to_string()))?;
            }
            for task in engine.ended_before(RESULT_DELAY_MAX)? {
                let why = || Err("its process ended without a result".to_owned());
                ends[task].get_or_insert_with(why);
            }
            let complete = ends.iter().flatten().count();
            if shown != complete {
                shown = complete;
                (self.print_message)(&format!("{complete} of {of} experiments have ended"));
            }
            if let (Some(signal), None) = (self.interrupt.signal(), deadline) {
                deadline = Some(clock::now() + self.end_max + ABORT_MAX);
                let why = format!("interrupted by signal {signal}");
                try_end_job(self.store, self.engine, &handle, &why, self.print_message);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                break;
            }
            if let Some(why) = reason.look(self.engine, &handle) {
                (self.print_message)(&format!("a task is waiting to start: {why}"));
            }
            pause(&quiet, LOOK_EVERY);
        }
        let missing = || Err("it delivered no result in time".to_owned());
        Ok(ends
            .into_iter()
            .map(|end| end.unwrap_or_else(missing))
            .collect())
    }

    fn handle(&self, job: &SuiteJob) -> Result<JobHandle, FleetError> {
        if let Some(handle) = self.store.get_json(self.interrupt, ENGINE)? {
            return Ok(handle);
        }
        let submission = self.submission(job.experiments.len())?;
        submit_tasks(self.engine, self.store, self.interrupt, &submission)
    }

    fn submission(&self, experiments: usize) -> Result<Submission<'_>, FleetError> {
        Ok(Submission {
            job: self.store.job(),
            tasks: tasks_of(experiments)?,
            cpus: 1,
            connects_tasks: false,
            program: &self.program,
            arguments: self.arguments,
            folder: self.store.store().folder(),
            logs: &self.logs,
            secrets: None,
            end_max: self.end_max,
        })
    }

    /// Returns the end of an experiment, if it has one. An attempt of another controller does not fail for the suite, and its
    /// result may be incomplete: that controller cancels it.
    fn end(
        &self,
        quiet: &Interrupt,
        handle: &JobHandle,
        task: usize,
        folder: &Path,
    ) -> Result<Option<Result<ExperimentNode, String>>, StoreError> {
        if let Some(bytes) = self.store.get(quiet, &result_name(task))? {
            return Ok(Some(
                match bundle::unpack::<ExperimentNode>(&bytes, folder) {
                    Ok(node) if !may_be_of(&node.attempt, handle) => {
                        let attempt = node.attempt;
                        Err(format!("its result is of another attempt, {attempt}"))
                    }
                    unpacked => unpacked,
                },
            ));
        }
        let failed: Option<Failed> = self.store.get_json(quiet, &failed_name(task))?;
        let failed = failed.filter(|failed| may_be_of(&failed.attempt, handle));
        Ok(failed.map(|failed| Err(failed.why)))
    }
}

/// Returns the number of tasks for this number of experiments.
fn tasks_of(experiments: usize) -> Result<u16, FleetError> {
    u16::try_from(experiments).map_err(|_| FleetError::TooManyExperiments(experiments))
}

/// One experiment of a suite, as a task.
#[derive(Debug)]
pub struct SuiteTask<'a> {
    store: &'a JobStore,
    attempt: &'a Attempt,
    began: Nanos,
    beats: Scope,
}

impl<'a> SuiteTask<'a> {
    /// Makes the attempt known, and begins to give signs of life. Returns `None` if the experiment
    /// has a result, the suite was given up, or the job has the tasks of another controller.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer; no thread.
    pub fn begin(
        store: &'a JobStore,
        attempt: &'a Attempt,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, FleetError> {
        let task = usize::from(attempt.task);
        let is_over = store.get(interrupt, &result_name(task))?.is_some()
            || store.get_json::<Abort>(interrupt, ABORT)?.is_some();
        if is_over || is_foreign(store, interrupt, &attempt.name)? {
            return Ok(None);
        }
        let began = clock::wall();
        let ready = Ready {
            attempt: attempt.name.clone(),
            node: attempt.node.clone(),
            began,
        };
        for number in 0..ATTEMPTS_MAX {
            let name = ready_name(task, number);
            if store.create_json(interrupt, &name, &ready)? == Created::Now {
                let beats = beats::start(store, task, &Interrupt::new(), &Default::default());
                return Ok(Some(Self {
                    store,
                    attempt,
                    began,
                    beats: beats.map_err(FleetError::Thread)?,
                }));
            }
        }
        Err(FleetError::NoStart(format!(
            "task {task} was started more than {ATTEMPTS_MAX} times"
        )))
    }

    /// Writes the results in `folder` to the store, unless the job has the tasks of another controller. The first attempt
    /// that does so counts.
    ///
    /// # Errors
    /// [`FleetError`] if the store does not answer, or the results cannot be read; the reason is
    /// in the store, too, if that can be reached.
    pub fn commit(self, folder: &Path) -> Result<Created, FleetError> {
        let quiet = Interrupt::new();
        if is_foreign(self.store, &quiet, &self.attempt.name)? {
            self.beats.close(CLOSE_MAX);
            return Ok(Created::Before);
        }
        let node = ExperimentNode {
            attempt: self.attempt.name.clone(),
            node: self.attempt.node.clone(),
            boot: self.attempt.boot.clone(),
            began: self.began,
            ended: clock::wall(),
        };
        let task = usize::from(self.attempt.task);
        let created = match bundle::pack(folder, &node) {
            Ok(bytes) => self.store.create(&quiet, &result_name(task), &bytes)?,
            Err(error) => {
                self.fail(format!(
                    "its result cannot be packed: {}; it is left in {} on {}",
                    explain(&error),
                    folder.display(),
                    self.attempt.node
                ));
                return Err(FleetError::Pack(error));
            }
        };
        self.beats.close(CLOSE_MAX);
        Ok(created)
    }

    /// Writes the reason why there is no result, unless the job has the tasks of another controller.
    pub fn fail(&self, why: String) {
        let quiet = Interrupt::new();
        let is_foreign = is_foreign(self.store, &quiet, &self.attempt.name);
        if !matches!(is_foreign, Ok(false)) {
            return;
        }
        let task = usize::from(self.attempt.task);
        let failed = Failed {
            attempt: self.attempt.name.clone(),
            why,
        };
        // The engine still says that the process ended.
        drop(self.store.create_json(&quiet, &failed_name(task), &failed));
    }
}

#[cfg(test)]
mod tests;
