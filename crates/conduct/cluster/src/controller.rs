//! The controller of a load of several generators.

use std::path::PathBuf;

use stillwell_capture::{GeneratorClock, LoadCapture, LoadMerge, MergeError, OpenError};
use stillwell_plan::LoadPlan;
use stillwell_plan::load::LoadPlanParts;
use stillwell_run::{AddressFamily, Interrupt, LoadEnd};
use stillwell_scope::{clock, explain};
use stillwell_units::{Moment, Nanos, Secrets, human};

use crate::attempt::{boot_id, may_be_of};
use crate::clocks::{self, ClockOffset, ClockOffsets, ClockReading, ClockStage};

use crate::engine::{Engine, EngineError, JobHandle, Submission, TaskState};
use crate::generator::unpack;
use crate::job::{
    ABORT, Abort, ClusterJob, ENGINE, Failed, JOB_SCHEMA, Ready, START, Start, agreed_job,
    beat_name, failed_name, family_number, result_name, shared_plan,
};
use crate::pause::pause;
use crate::rates::FleetRates;
use crate::status::latest_ready;
use crate::store::{Created, JobStore, StoreError};

/// From the agreement on a start to the start: every generator reads the agreement and
/// opens its connections within it.
pub(crate) const START_LEAD: Nanos = Nanos::from_secs(3);
/// Time between two looks at the store.
pub(crate) const LOOK_EVERY: Nanos = Nanos::from_millis(200);
/// Time between two questions to the engine.
const POLL_EVERY: Nanos = Nanos::from_secs(1);
/// The longest wait until every generator is ready.
pub(crate) const READY_MAX: Nanos = Nanos::from_secs(10 * 60);
/// Time from the end of a task to the conclusion that no result comes: shared folders show
/// a new file to others a little later.
pub(crate) const RESULT_DELAY_MAX: Nanos = Nanos::from_secs(3);
/// Time for writing results beside the length of a load and its grace.
pub(crate) const COMMIT_MAX: Nanos = Nanos::from_secs(120);
/// Time from the last sign of life of a task whose node does not answer to the conclusion
/// that no result comes.
const BEATS_MISSING_MAX: Nanos = Nanos::from_secs(30);
/// Time between two questions why a task waits.
const REASON_EVERY: Nanos = Nanos::from_secs(10);
/// Answers of the engine that may be missing in a row.
const POLL_FAILURES_MAX: u32 = 60;
/// Time in which generators end after an abort, beside their grace.
pub(crate) const ABORT_MAX: Nanos = Nanos::from_secs(20);

/// A load of several generators.
pub struct FleetLoad<'a> {
    /// The load of all generators together.
    pub plan: &'a LoadPlan,
    /// Number of generators.
    pub generators: u16,
    /// Address family of names.
    pub family: AddressFamily,
    /// Version of this program.
    pub version: &'a str,
    /// Objects of the job.
    pub store: &'a JobStore,
    /// The engine.
    pub engine: &'a dyn Engine,
    /// The program that each generator runs.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Folder of logs.
    pub logs: PathBuf,
    /// Handling of secrets in the store.
    pub secrets: Secrets,
    /// Requests the early end.
    pub interrupt: &'a Interrupt,
    /// Receives progress for readers.
    pub print_message: &'a dyn Fn(&str),
}

/// A load of several generators that has no result.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Nothing to merge.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A plan that is no JSON.
    #[error("write the plan")]
    Plan(#[source] serde_json::Error),
    /// No thread.
    #[error("start a thread")]
    Thread(#[source] std::io::Error),
    /// Results that cannot be written to the disk.
    #[error("unpack the results")]
    Unpack(#[source] OpenError),
    /// Results that cannot be read.
    #[error("pack the results")]
    Pack(#[source] std::io::Error),
    /// The load did not start.
    #[error("the load did not start: {0}")]
    NoStart(String),
    /// More experiments than a job has tasks.
    #[error(
        "a suite with --on has {0} experiments, but at most {max} are possible: select some with \
         --only",
        max = u16::MAX
    )]
    TooManyExperiments(usize),
    /// A run on several machines did not start, or no task has a result.
    #[error("the run did not start: {}{why}", part_before(.part.as_deref()))]
    NoRun {
        /// The part that is the cause, if it is known.
        part: Option<String>,
        /// The reason.
        why: String,
    },
    /// Tasks that did not end in time.
    #[error("tasks of job {0} still run; end them with `stillwell cluster cancel`")]
    StillRunning(String),
}

/// Returns the name of a part as the beginning of a sentence.
fn part_before(part: Option<&str>) -> String {
    part.map_or_else(String::new, |part| format!("{part}: "))
}

impl std::fmt::Debug for FleetLoad<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetLoad")
            .field("generators", &self.generators)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl FleetLoad<'_> {
    /// Makes the load, or goes on with one that another controller began, and returns the
    /// merged capture without version and command line. A generator without a result is
    /// named in it.
    ///
    /// # Errors
    /// [`FleetError`] if there is nothing to report.
    pub fn conduct(&self) -> Result<LoadCapture, FleetError> {
        let job = self.job()?;
        let handle = self.handle(&job)?;
        let start = match self.store.get_json(self.interrupt, START)? {
            Some(start) => {
                // The controller that wrote it may have ended before it deleted them.
                self.forget_secrets(&job, &handle);
                start
            }
            None => match self.start_without_secrets(&job, &handle)? {
                Ok(start) => start,
                Err(why) => {
                    self.abort(&handle, &why);
                    return Err(FleetError::NoStart(why));
                }
            },
        };
        self.collect(&job, &handle, &start)
    }

    fn job(&self) -> Result<ClusterJob, FleetError> {
        let plan = shared_plan(self.plan, self.secrets).map_err(FleetError::Plan)?;
        let job = ClusterJob {
            schema: JOB_SCHEMA.to_owned(),
            version: self.version.to_owned(),
            is_masked: plan != *self.plan,
            plan,
            generators: self.generators,
            family: family_number(self.family),
        };
        Ok(agreed_job(
            self.store,
            self.interrupt,
            self.print_message,
            job,
        )?)
    }

    /// Returns the text with which the engine would start the generators.
    ///
    /// # Errors
    /// [`FleetError`] if it would refuse.
    pub fn render(&self) -> Result<String, FleetError> {
        let plan = shared_plan(self.plan, self.secrets).map_err(FleetError::Plan)?;
        let secrets = (plan != *self.plan).then_some("");
        Ok(self.engine.render(&self.submission(secrets))?)
    }

    fn submission<'b>(&'b self, secrets: Option<&'b str>) -> Submission<'b> {
        Submission {
            job: self.store.job(),
            tasks: self.generators,
            cpus: self.plan.workers / self.generators.max(1),
            connects_tasks: false,
            program: &self.program,
            arguments: self.arguments,
            folder: self.store.store().folder(),
            logs: &self.logs,
            secrets,
            end_max: self.plan.grace,
        }
    }

    fn handle(&self, job: &ClusterJob) -> Result<JobHandle, FleetError> {
        if let Some(handle) = self.store.get_json(self.interrupt, ENGINE)? {
            return Ok(handle);
        }
        let typed = self.typed(job)?;
        let submission = self.submission(typed.as_deref());
        submit_tasks(self.engine, self.store, self.interrupt, &submission)
    }

    /// Returns the plan of `job` with the secrets of this command, if the job is without. The rest is that of the job:
    /// another controller may have made it, with another seed.
    fn typed(&self, job: &ClusterJob) -> Result<Option<String>, FleetError> {
        if !job.is_masked {
            return Ok(None);
        }
        // Both have the same endpoints and client, apart from secrets.
        let parts = LoadPlanParts {
            endpoints: self.plan.endpoints.clone(),
            client: self.plan.client.clone(),
            ..LoadPlanParts::clone(&job.plan)
        };
        let plan = LoadPlan::try_new(parts);
        let plan = plan.map_err(|error| FleetError::NoStart(explain(&error)))?;
        let typed = serde_json::to_string(&plan).map_err(FleetError::Plan)?;
        Ok(Some(typed))
    }

    /// The same as [`Self::start`]; afterwards no generator needs secrets.
    fn start_without_secrets(
        &self,
        job: &ClusterJob,
        handle: &JobHandle,
    ) -> Result<Result<Start, String>, FleetError> {
        let start = self.start(handle);
        self.forget_secrets(job, handle);
        start
    }

    /// Deletes the secrets of generators, if they are still there.
    fn forget_secrets(&self, job: &ClusterJob, handle: &JobHandle) {
        if job.is_masked
            && let Err(error) = self.engine.forget_secrets(handle)
        {
            (self.print_message)(&format!(
                "secrets could not be removed: {}",
                explain(&error)
            ));
        }
    }

    /// Waits until all are ready and agrees on a start, or returns the reason why not.
    fn start(&self, handle: &JobHandle) -> Result<Result<Start, String>, FleetError> {
        let until = clock::now() + READY_MAX;
        let tasks = usize::from(self.generators);
        let mut attempts: Vec<Option<String>> = vec![None; tasks];
        let mut engine = EngineView::new(self.engine, self.store, handle);
        let mut shown = usize::MAX;
        let mut reason = WaitReason::default();
        let counts = |ready: &Ready| may_be_of(&ready.attempt, handle);
        loop {
            for (task, attempt) in attempts.iter_mut().enumerate() {
                let ready = latest_ready::<Ready>(self.store, self.interrupt, task, &counts)?;
                *attempt = ready.map(|ready| ready.attempt);
                if let Some(why) = self.failed(handle, task)? {
                    return Ok(Err(format!("generator {task}: {why}")));
                }
            }
            let ready = attempts.iter().flatten().count();
            if ready != shown {
                (self.print_message)(&format!("{ready} of {tasks} generators are ready"));
                shown = ready;
            }
            if let Some(signal) = self.interrupt.signal() {
                return Ok(Err(format!("interrupted by signal {signal}")));
            }
            if ready == tasks {
                return self.agree(attempts.into_iter().flatten().collect());
            }
            if let Some(task) = engine.ended_before(RESULT_DELAY_MAX)?.into_iter().next() {
                let log = handle.log(task);
                let why = format!("generator {task} ended early; see {}", log.display());
                return Ok(Err(self.failed(handle, task)?.unwrap_or(why)));
            }
            if clock::now() >= until {
                let why =
                    format!("only {ready} of {tasks} generators were ready within {READY_MAX}");
                return Ok(Err(why + &reason.after()));
            }
            if let Some(why) = reason.look(self.engine, handle) {
                (self.print_message)(&format!("a generator is waiting to start: {why}"));
            }
            pause(self.interrupt, LOOK_EVERY);
        }
    }

    /// Compares clocks and writes the start, or returns the reason why there is none. The start of another controller
    /// counts if it was first.
    fn agree(&self, attempts: Vec<String>) -> Result<Result<Start, String>, FleetError> {
        let clocks = self.clocks(ClockStage::BeforeStart, &attempts);
        // A signal ends the comparison without offsets, or with an error if the store is slow.
        if let Some(signal) = self.interrupt.signal() {
            return Ok(Err(format!("interrupted by signal {signal}")));
        }
        let clocks = clocks?;
        let measured = ClockReading::now().monotonic;
        self.print_clocks(&clocks);
        let start = Start {
            at: clock::wall() + START_LEAD,
            attempts,
            clocks,
            measured,
            boot: boot_id(),
        };
        if self.store.create_json(self.interrupt, START, &start)? == Created::Now {
            return Ok(Ok(start));
        }
        let before = self.store.get_json(self.interrupt, START)?;
        Ok(Ok(before.unwrap_or(start)))
    }

    fn clocks(
        &self,
        stage: ClockStage,
        attempts: &[String],
    ) -> Result<Vec<Option<ClockOffsets>>, StoreError> {
        clocks::measure(
            self.store,
            self.interrupt,
            stage,
            attempts,
            &ClockReading::now,
        )
    }

    /// Measures clocks once more after the end of a load, and adds them to `merge`.
    fn add_clocks(&self, start: &Start, merge: &mut LoadMerge) -> Result<(), StoreError> {
        let clocks = self.clocks(ClockStage::AfterEnd, &start.attempts)?;
        let elapsed = ClockReading::now().monotonic.saturating_sub(start.measured);
        let is_same_clock = start.boot == boot_id();
        let mut drifts = Vec::new();
        for (task, (before, after)) in start.clocks.iter().zip(clocks).enumerate() {
            let Some(before) = before else { continue };
            let after = after.filter(|_| is_same_clock);
            let drift = after.and_then(|after| after.monotonic.drift(before.monotonic, elapsed));
            drifts.extend(drift);
            merge.add_clock(
                task,
                GeneratorClock {
                    ahead: before.wall.nanos,
                    error: before.wall.error,
                    drift,
                },
            );
        }
        if let Some(most) = drifts.iter().map(|drift| drift.at_most()).max() {
            let known = drifts.len();
            (self.print_message)(&format!(
                "clocks of {known} generators drifted by {most} ppm at most"
            ));
        }
        Ok(())
    }

    /// Prints how far clocks are off.
    fn print_clocks(&self, clocks: &[Option<ClockOffsets>]) {
        let known = || clocks.iter().flatten().map(|clock| clock.wall);
        let wrong = known().filter(|clock| clock.is_certain());
        if let Some(wrong) = wrong.max_by_key(|clock| clock.nanos.unsigned_abs()) {
            let offset = human::nanos(Nanos::new(wrong.nanos.unsigned_abs()));
            let error = human::nanos(wrong.error);
            (self.print_message)(&format!(
                "a clock differs from that of this machine by {offset} ± {error}; starts are corrected"
            ));
        } else if let Some(most) = known().map(ClockOffset::at_most).max() {
            let most = human::nanos(most);
            (self.print_message)(&format!(
                "clocks agree with that of this machine within {most}"
            ));
        }
    }

    /// Returns why a task failed; attempts of another controller do not fail for the job.
    fn failed(&self, handle: &JobHandle, task: usize) -> Result<Option<String>, StoreError> {
        let failed: Option<Failed> = self.store.get_json(self.interrupt, &failed_name(task))?;
        let failed = failed.filter(|failed| may_be_of(&failed.attempt, handle));
        Ok(failed.map(|failed| failed.why))
    }

    /// Collects the results and merges them.
    fn collect(
        &self,
        job: &ClusterJob,
        handle: &JobHandle,
        start: &Start,
    ) -> Result<LoadCapture, FleetError> {
        let mut merge = LoadMerge::new(job.plan.clone(), self.engine.name(), job.generators);
        let mut open: Vec<usize> = (0..usize::from(job.generators)).collect();
        let mut engine = EngineView::new(self.engine, self.store, handle);
        let mut deadline = self.deadline(job, start);
        let mut is_aborted = false;
        // After an interrupt the results so far are still read.
        let quiet = Interrupt::new();
        // Generators answer pings for some seconds after their results.
        let (mut shown, mut lost_count, mut is_live) = (usize::MAX, 0, false);
        let mut rates = FleetRates::new(job.generators);
        while !open.is_empty() {
            let mut losses = self.take(&quiet, start, &mut open, &mut merge)?;
            is_live |= !open.is_empty();
            if shown != open.len() {
                let of = usize::from(job.generators);
                let results = of - open.len() - lost_count;
                (self.print_message)(&format!("{results} of {of} results have arrived"));
                shown = open.len();
            }
            let ended = engine.ended_before(RESULT_DELAY_MAX)?;
            let ended = ended.into_iter().filter(|task| open.contains(task));
            losses.extend(ended.map(|task| {
                let why = "its process ended without a result".to_owned();
                (task, why)
            }));
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                let why = "it delivered no result in time";
                losses.extend(open.iter().map(|task| (*task, why.to_owned())));
            }
            let interrupted = self.interrupt.signal();
            let interrupted = interrupted.map(|signal| format!("interrupted by signal {signal}"));
            let lost = losses.first();
            let why = lost.map(|(task, why)| format!("generator {task}: {why}"));
            for (task, why) in losses {
                if !open.contains(&task) {
                    continue;
                }
                open.retain(|index| *index != task);
                lost_count += 1;
                merge.miss(task, why);
            }
            if let Some(why) = why.or(interrupted).filter(|_| !is_aborted) {
                is_aborted = true;
                deadline = Some(clock::now() + job.plan.grace + ABORT_MAX);
                if !open.is_empty() {
                    self.abort(handle, &why);
                }
            }
            if let Some(line) = rates.look(self.store, &open) {
                (self.print_message)(&line);
            }
            if !open.is_empty() {
                pause(&quiet, LOOK_EVERY);
            }
        }
        if is_live && !is_aborted {
            self.try_clocks(start, &mut merge);
        }
        let mut capture = merge.finish()?;
        if let Some(signal) = self.interrupt.signal() {
            capture.manifest.end = LoadEnd::Interrupted(signal);
        }
        Ok(capture)
    }

    /// As [`Self::add_clocks`]; the results do not depend on it.
    fn try_clocks(&self, start: &Start, merge: &mut LoadMerge) {
        if let Err(error) = self.add_clocks(start, merge) {
            let why = explain(&error);
            (self.print_message)(&format!("clocks were not compared after the load: {why}"));
        }
    }

    /// Takes the results that are there; returns the tasks that will have none.
    fn take(
        &self,
        quiet: &Interrupt,
        start: &Start,
        open: &mut Vec<usize>,
        merge: &mut LoadMerge,
    ) -> Result<Vec<(usize, String)>, FleetError> {
        let mut losses = Vec::new();
        let mut still_open = Vec::new();
        for task in std::mem::take(open) {
            let Some(bytes) = self.store.get(quiet, &result_name(task))? else {
                let failed: Option<Failed> = self.store.get_json(quiet, &failed_name(task))?;
                // Only the chosen attempt can fail for all.
                let of_chosen = |failed: &Failed| start.attempts.get(task) == Some(&failed.attempt);
                losses.extend(failed.filter(of_chosen).map(|failed| (task, failed.why)));
                still_open.push(task);
                continue;
            };
            match unpack(&bytes) {
                Ok((result, capture)) if start.attempts.get(task) == Some(&result.attempt) => {
                    merge.add(task, result, capture)?;
                }
                Ok((result, _)) => {
                    let attempt = result.attempt;
                    losses.push((task, format!("its result is of another attempt, {attempt}")));
                    still_open.push(task);
                }
                Err(why) => {
                    losses.push((task, format!("its result cannot be read: {why}")));
                    still_open.push(task);
                }
            }
        }
        *open = still_open;
        Ok(losses)
    }

    /// Returns when the results are due at the latest.
    fn deadline(&self, job: &ClusterJob, start: &Start) -> Option<Moment> {
        let length = job.plan.until.duration?;
        let end = start.at + length + job.plan.grace + COMMIT_MAX;
        Some(clock::now() + end.saturating_sub(clock::wall()))
    }

    /// Has all generators end early.
    fn abort(&self, handle: &JobHandle, why: &str) {
        (self.print_message)(&format!("ending all generators: {why}"));
        try_end_job(self.store, self.engine, handle, why, self.print_message);
    }
}

/// The reason why a task does not begin.
#[derive(Debug)]
pub(crate) struct WaitReason {
    next: Moment,
    reason: Option<String>,
}

impl Default for WaitReason {
    fn default() -> Self {
        Self {
            next: clock::now() + REASON_EVERY,
            reason: None,
        }
    }
}

impl WaitReason {
    /// Queries the engine now and then; returns a reason that is new.
    pub(crate) fn look(&mut self, engine: &dyn Engine, handle: &JobHandle) -> Option<&str> {
        if clock::now() < self.next {
            return None;
        }
        self.next = clock::now() + REASON_EVERY;
        // It is only for readers.
        let reason = engine.waiting(handle).ok()?;
        let is_new = reason != self.reason;
        self.reason = reason;
        self.reason.as_deref().filter(|_| is_new)
    }

    /// Returns the last reason as the end of a sentence.
    pub(crate) fn after(&self) -> String {
        let reason = self.reason.as_ref();
        reason.map_or_else(String::new, |reason| format!(": {reason}"))
    }
}

/// States of the tasks by their engine, which is polled rarely.
pub(crate) struct EngineView<'a> {
    engine: &'a dyn Engine,
    store: &'a JobStore,
    handle: &'a JobHandle,
    next: Moment,
    failures: u32,
    /// Since when each task has ended, or has given no sign of life.
    ended: Vec<Option<(TaskState, Moment)>>,
    /// Signs of life of each task, as far as they were read.
    beats: Vec<u32>,
}

impl<'a> EngineView<'a> {
    pub(crate) fn new(engine: &'a dyn Engine, store: &'a JobStore, handle: &'a JobHandle) -> Self {
        Self {
            engine,
            store,
            handle,
            next: clock::now(),
            failures: 0,
            ended: vec![None; handle.tasks.into()],
            beats: vec![0; handle.tasks.into()],
        }
    }

    /// Returns the tasks that ended longer than `delay` ago.
    pub(crate) fn ended_before(&mut self, delay: Nanos) -> Result<Vec<usize>, EngineError> {
        let now = clock::now();
        if now >= self.next {
            self.next = now + POLL_EVERY;
            match self.engine.poll(self.handle) {
                Ok(states) => {
                    self.failures = 0;
                    self.take(states, now);
                }
                Err(error) if self.failures >= POLL_FAILURES_MAX => return Err(error),
                Err(_) => self.failures += 1,
            }
        }
        let is_over = |(state, since): (TaskState, Moment)| {
            let delay = match state {
                TaskState::NodeLost => BEATS_MISSING_MAX,
                _ => delay,
            };
            now.since(since) >= delay
        };
        let ended = self.ended.iter().enumerate();
        let ended = ended.filter(|(_, state)| state.is_some_and(is_over));
        Ok(ended.map(|(task, _)| task).collect())
    }

    fn take(&mut self, states: Vec<TaskState>, now: Moment) {
        for (task, state) in states.into_iter().enumerate().take(self.ended.len()) {
            let before = self.ended[task].filter(|(before, _)| *before == state);
            let is_alive = match state {
                TaskState::Waiting | TaskState::Running => true,
                TaskState::Ended => false,
                // Its generator may still reach the store.
                TaskState::NodeLost => self.has_new_beat(task),
            };
            self.ended[task] = match state {
                TaskState::Waiting | TaskState::Running => None,
                _ if is_alive => Some((state, now)),
                _ => before.or(Some((state, now))),
            };
        }
    }

    fn has_new_beat(&mut self, task: usize) -> bool {
        let before = self.beats[task];
        let has = |number: u32| {
            let key = format!("{}/{}", self.store.job(), beat_name(task, number));
            // A store that does not answer is read again with the next poll.
            matches!(self.store.store().get(&key), Ok(Some(_)))
        };
        let new = (before..).take_while(|number| has(*number)).count();
        self.beats[task] = before.saturating_add(u32::try_from(new).unwrap_or(u32::MAX));
        new > 0
    }
}

/// Ends all generators of a job early, and deletes the secrets that they were given: the controller may
/// be gone.
///
/// # Errors
/// [`FleetError`] if store or engine do not answer.
pub fn cancel_job(
    store: &JobStore,
    engine: &dyn Engine,
    handle: Option<&JobHandle>,
    why: &str,
) -> Result<(), FleetError> {
    let forgotten = handle.map_or(Ok(()), |handle| engine.forget_secrets(handle));
    end_job(store, engine, handle, why)?;
    forgotten?;
    Ok(())
}

/// Ends all generators of a job early: they read the reason in the store, and their engine
/// ends them.
///
/// # Errors
/// [`FleetError`] if store or engine do not answer.
fn end_job(
    store: &JobStore,
    engine: &dyn Engine,
    handle: Option<&JobHandle>,
    why: &str,
) -> Result<(), FleetError> {
    let abort = Abort {
        why: why.to_owned(),
        part: None,
    };
    // The engine ends them also where the store is gone.
    let written = store.create_json(&Interrupt::new(), ABORT, &abort);
    if let Some(handle) = handle {
        engine.cancel(handle)?;
    }
    written?;
    Ok(())
}

/// As [`end_job`]. If it fails, readers get a message: results that are there count also if tasks cannot be ended.
pub(crate) fn try_end_job(
    store: &JobStore,
    engine: &dyn Engine,
    handle: &JobHandle,
    why: &str,
    print_message: &dyn Fn(&str),
) {
    if let Err(error) = end_job(store, engine, Some(handle), why) {
        print_message(&format!(
            "tasks may still run; end them with `stillwell cluster cancel`: {}",
            explain(&error)
        ));
    }
}

/// Has the engine start the tasks of `submission`, and makes them those of the job. If that fails, the engine may have
/// accepted them before it failed: they read in the store that they end at once.
pub(crate) fn submit_tasks(
    engine: &dyn Engine,
    store: &JobStore,
    interrupt: &Interrupt,
    submission: &Submission<'_>,
) -> Result<JobHandle, FleetError> {
    match engine.submit(submission) {
        Ok(handle) => keep_handle(engine, store, interrupt, handle),
        Err(error) => {
            if error.may_leave_tasks() {
                end_unconfirmed(store, &error);
            }
            Err(error.into())
        }
    }
}

/// Ends the tasks of a job whose submission failed with `error`. A job with a handle has those of another controller,
/// which go on.
fn end_unconfirmed(store: &JobStore, error: &EngineError) {
    let quiet = Interrupt::new();
    if !matches!(store.get(&quiet, ENGINE), Ok(None)) {
        return;
    }
    let abort = Abort {
        why: format!("the submission failed: {}", explain(error)),
        part: None,
    };
    // The error of the engine is reported, also if the store does not answer.
    drop(store.create_json(&quiet, ABORT, &abort));
}

/// Makes the tasks of `handle` those of the job. If another controller has started some, or the store does not answer,
/// they are cancelled, and their secrets are deleted. Tasks that another controller has started go on.
fn keep_handle(
    engine: &dyn Engine,
    store: &JobStore,
    interrupt: &Interrupt,
    handle: JobHandle,
) -> Result<JobHandle, FleetError> {
    let (is_of_job, error) = match store.create_json(interrupt, ENGINE, &handle) {
        Ok(Created::Now) => return Ok(handle),
        Ok(Created::Before) => match store.get_json::<JobHandle>(interrupt, ENGINE) {
            // With Kubernetes the name of the Job follows from store and job: then both controllers have one Job.
            Ok(kept) => (
                kept.is_some_and(|kept| kept.id == handle.id),
                StoreError::Taken(format!("job {}", store.job())),
            ),
            Err(error) => (false, error),
        },
        Err(error) => (false, error),
    };
    if !is_of_job && !handle.is_others {
        // A task that goes on without its secrets would report a failure.
        let ended = engine.cancel(&handle);
        // Those of the tasks of the other controller stay.
        engine.withdraw_secrets(&handle)?;
        ended?;
    }
    Err(error.into())
}

#[cfg(test)]
mod tests;
