//! The controller of a run on several machines.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use stillwell_capture::{
    GeneratorClock, LedgerRecord, Manifest, RunMachines, RunOutcome, RunPart, RunTask,
    RunTaskResult,
};
use stillwell_plan::{RunHosts, RunPlan, RunRoles, TaskRole};
use stillwell_run::{Interrupt, Milestone, Progress, join_ledgers};
use stillwell_scope::{clock, explain};
use stillwell_units::{Moment, Nanos, human};

use super::clock_bounds::{error_over, lead_of};
use super::figures::RunFigures;
use super::{Member, Members, RunJob};
use crate::attempt::{boot_id, may_be_of};
use crate::bundle;
use crate::clocks::{self, ClockOffsets, ClockReading, ClockStage};
use crate::controller::{
    COMMIT_MAX, EngineView, FleetError, READY_MAX, RESULT_DELAY_MAX, START_LEAD, WaitReason,
    submit_tasks,
};
use crate::engine::{Engine, JobHandle, Submission};
use crate::job::{
    ABORT, Abort, ENGINE, Failed, MEMBERS, START, Start, agreed_job, failed_name, of_task,
    result_name,
};
use crate::pause::pause;
use crate::status::latest_ready;
use crate::store::{Created, JobStore, StoreError};

/// Time between two looks at the store.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// Time in which tasks end after an abort, beside the grace of the target and the close of a run.
const ABORT_MAX: Nanos = Nanos::from_secs(20);
/// Further time of an inspector or `perf` to end.
const PROFILE_STOP_MAX: Nanos = Nanos::from_secs(11);
/// Further time in which `perf` writes its profile.
const PROFILE_SCRIPT_MAX: Nanos = Nanos::from_secs(60);
/// The longest wait of a part for others at its end.
const STOP_MAX: Nanos = Nanos::from_secs(40);

/// The controller of a run on several machines.
pub struct FleetRun<'a> {
    /// The plan, as the command line names it.
    pub plan: &'a RunPlan,
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
    /// Receives progress for readers.
    pub print_message: &'a dyn Fn(&str),
    /// Receives phases and figures of the run.
    pub show: &'a dyn Fn(Progress),
}

/// Results of a run on several machines.
#[derive(Debug)]
pub struct FleetRunEnd {
    /// Record of the run: that of the task with the target, with the plan of all tasks, the
    /// machines and the outcome of the whole.
    pub manifest: Manifest,
    /// The captures of tasks, in the order of tasks; those without a result are left out.
    pub parts: Vec<RunPart>,
}

impl std::fmt::Debug for FleetRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetRun")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// Results while they are collected.
struct Collected {
    ends: Vec<Option<Result<RunTaskResult, String>>>,
    /// The part that failed first, and why.
    failure: Option<(usize, String)>,
    /// True if some tasks may still answer pings.
    is_live: bool,
}

impl FleetRun<'_> {
    /// Makes the job, or returns the one that another controller made.
    ///
    /// # Errors
    /// [`FleetError`] if the name is taken, or the store does not answer.
    pub fn job(&self, job: RunJob) -> Result<RunJob, FleetError> {
        Ok(agreed_job(
            self.store,
            self.interrupt,
            self.print_message,
            job,
        )?)
    }

    /// Returns the text with which the engine would start the tasks of `roles`.
    ///
    /// # Errors
    /// [`FleetError`] if it would refuse.
    pub fn render(&self, roles: RunRoles) -> Result<String, FleetError> {
        Ok(self.engine.render(&self.submission(roles))?)
    }

    /// Has the tasks run, and writes the capture of each to a folder below `folder`, which has the
    /// index of the task as its name.
    ///
    /// # Errors
    /// [`FleetError`] if the run did not start, or no task has a result.
    pub fn conduct(&self, job: &RunJob, folder: &Path) -> Result<FleetRunEnd, FleetError> {
        let handle = self.handle(job)?;
        let (members, start) = match self.begin(job, &handle)? {
            Ok(begun) => begun,
            Err((part, why)) => {
                // The first reason counts, also if the store does not answer.
                if let Err(error) = self.abort(part.clone(), &why) {
                    (self.print_message)(&format!("failed to end all tasks: {}", explain(&error)));
                }
                self.end_tasks(job, &handle);
                return Err(FleetError::NoRun { part, why });
            }
        };
        let collected = self.collect(job, &handle, &members, &start, folder)?;
        self.end_tasks(job, &handle);
        self.put_together(job, &members, &start, collected, folder)
    }

    fn handle(&self, job: &RunJob) -> Result<JobHandle, FleetError> {
        if let Some(handle) = self.store.get_json(self.interrupt, ENGINE)? {
            return Ok(handle);
        }
        let submission = self.submission(job.roles);
        submit_tasks(self.engine, self.store, self.interrupt, &submission)
    }

    fn submission(&self, roles: RunRoles) -> Submission<'_> {
        let workers = self.plan.generators.iter();
        let workers = workers.map(|generator| generator.concurrency.workers());
        Submission {
            job: self.store.job(),
            tasks: roles.tasks(),
            cpus: workers.fold(0, u16::saturating_add).max(1),
            connects_tasks: true,
            program: &self.program,
            arguments: self.arguments,
            folder: self.store.store().folder(),
            logs: &self.logs,
            secrets: None,
            end_max: self.plan.target.stop.grace + self.plan.phases.close,
        }
    }

    /// Waits until all tasks are there and ready, and agrees on a start. Otherwise returns the part
    /// that prevents it, and the reason.
    #[expect(
        clippy::type_complexity,
        reason = "a start, a run that does not start, and a store that does not answer"
    )]
    fn begin(
        &self,
        job: &RunJob,
        handle: &JobHandle,
    ) -> Result<Result<(Members, Start), (Option<String>, String)>, FleetError> {
        let members = self.store.get_json(self.interrupt, MEMBERS)?;
        let start = self.store.get_json(self.interrupt, START)?;
        if let (Some(members), Some(start)) = (members, start) {
            // An earlier controller started it, so parts that have failed are results.
            return Ok(Ok((members, start)));
        }
        let until = clock::now() + READY_MAX;
        let tasks = usize::from(job.roles.tasks());
        let mut engine = EngineView::new(self.engine, self.store, handle);
        let mut reason = WaitReason::default();
        let (mut members, mut shown) = (None, usize::MAX);
        let counts = |member: &Member| may_be_of(&member.attempt, handle);
        loop {
            let mut there = vec![None; tasks];
            let mut ready = 0;
            for (task, member) in there.iter_mut().enumerate() {
                if let Some(why) = self.failed(handle, task)? {
                    return Ok(Err((Some(name_of(job, task)), why)));
                }
                *member = latest_ready::<Member>(self.store, self.interrupt, task, &counts)?;
                let name = of_task(task, Milestone::Ready.name());
                ready += usize::from(self.store.get(self.interrupt, &name)?.is_some());
            }
            if std::mem::replace(&mut shown, ready) != ready {
                (self.print_message)(&format!("{ready} of {tasks} tasks are ready"));
            }
            if let Some(signal) = self.interrupt.signal() {
                return Ok(Err((None, format!("interrupted by signal {signal}"))));
            }
            let there: Vec<Member> = there.into_iter().flatten().collect();
            if members.is_none() && there.len() == tasks {
                members = Some(match self.gather(job, there)? {
                    Ok(members) => members,
                    Err(why) => return Ok(Err((None, why))),
                });
            }
            if let (Some(members), true) = (&members, ready == tasks) {
                let start = self.agree(job, members)?;
                return Ok(start
                    .map(|start| (members.clone(), start))
                    .map_err(|why| (None, why)));
            }
            if let Some(task) = engine.ended_before(RESULT_DELAY_MAX)?.into_iter().next() {
                return Ok(Err(self.end_of(job, handle, task)?));
            }
            if clock::now() >= until {
                let why = format!("only {ready} of {tasks} tasks were ready within {READY_MAX}");
                return Ok(Err((None, why + &reason.after())));
            }
            if let Some(why) = reason.look(self.engine, handle) {
                (self.print_message)(&format!("a task is waiting to start: {why}"));
            }
            pause(self.interrupt, LOOK_EVERY);
        }
    }

    /// Returns the part whose task ended before the start, and the reason.
    fn end_of(
        &self,
        job: &RunJob,
        handle: &JobHandle,
        task: usize,
    ) -> Result<(Option<String>, String), StoreError> {
        let name = name_of(job, task);
        Ok(match self.failed(handle, task)? {
            Some(why) => (Some(name), why),
            None => {
                let log = handle.log(task);
                let why = format!("its process ended early; see {}", log.display());
                (Some(format!("task of {name}")), why)
            }
        })
    }

    /// Chooses the attempts that count, and their addresses.
    fn gather(
        &self,
        job: &RunJob,
        there: Vec<Member>,
    ) -> Result<Result<Members, String>, StoreError> {
        let roles = job.roles;
        let Some(target) = there.first().map(|member| member.address) else {
            return Ok(Err("the run has no target".to_owned()));
        };
        let sinks = tasks_with_sinks(roles);
        let sinks = sinks.filter_map(|task| there.get(task).map(|member| member.address));
        let sinks: Vec<IpAddr> = match roles.sinks {
            // Beside the target no other machine has to reach them.
            0 => RunHosts::default().sinks,
            _ => sinks.collect(),
        };
        let is_one_machine = there.iter().all(|member| member.boot == there[0].boot);
        let hidden = there.iter().find(|member| member.address.is_loopback());
        if let (Some(member), false) = (hidden, is_one_machine) {
            return Ok(Err(format!(
                "node {} has the address {}, which others cannot reach; set STILLWELL_ADDRESS on \
                 it, or correct the name in its /etc/hosts",
                member.node, member.address
            )));
        }
        let members = Members {
            tasks: there,
            hosts: RunHosts { target, sinks },
        };
        if self.store.create_json(self.interrupt, MEMBERS, &members)? == Created::Now {
            return Ok(Ok(members));
        }
        let before = self.store.get_json(self.interrupt, MEMBERS)?;
        Ok(Ok(before.unwrap_or(members)))
    }

    /// Compares clocks and writes the start, or returns the reason why there is none. The start of another controller
    /// counts if it was first.
    fn agree(&self, job: &RunJob, members: &Members) -> Result<Result<Start, String>, StoreError> {
        if let Some(start) = self.store.get_json(self.interrupt, START)? {
            return Ok(Ok(start));
        }
        let attempts = members.attempts();
        let clocks = self.clocks(ClockStage::BeforeStart, &attempts);
        // A signal ends the comparison without offsets, or with an error if the store is slow.
        if let Some(signal) = self.interrupt.signal() {
            return Ok(Err(format!("interrupted by signal {signal}")));
        }
        let clocks = clocks?;
        if let Some(task) = clocks.iter().position(Option::is_none) {
            let name = name_of(job, task);
            return Ok(Err(format!(
                "the clock of {name} could not be compared: it did not answer in time"
            )));
        }
        let start = Start {
            at: clock::wall() + START_LEAD,
            attempts,
            clocks,
            measured: ClockReading::now().monotonic,
            boot: boot_id(),
        };
        let error = self.clock_error(job, members, &start, None);
        (self.print_message)(&match error {
            Some(error) => format!(
                "latencies between machines are accurate to ± {}",
                human::nanos(error)
            ),
            None => "all tasks run on one machine and share its clock".to_owned(),
        });
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
        let read = &ClockReading::now;
        clocks::measure(self.store, self.interrupt, stage, attempts, read)
    }

    /// Returns the bound on the error of latencies from generators to sinks; `None` if all have one
    /// clock.
    fn clock_error(
        &self,
        job: &RunJob,
        members: &Members,
        start: &Start,
        after: Option<(&[Option<ClockOffsets>], Nanos)>,
    ) -> Option<Nanos> {
        let roles = job.roles;
        let generators = usize::from(roles.sinks) + 1..usize::from(roles.tasks());
        let pairs = tasks_with_sinks(roles)
            .flat_map(|sinks| generators.clone().map(move |task| (task, sinks)));
        let errors = pairs.filter_map(|(task, sinks)| {
            let before = lead_of(members, &start.clocks, task, sinks)?;
            let Some((clocks, elapsed)) = after else {
                return Some(before.error);
            };
            let after = lead_of(members, clocks, task, sinks);
            Some(error_over(before, after, elapsed))
        });
        errors.max().filter(|error| *error > Nanos::ZERO)
    }

    /// Returns why a task failed; attempts of another controller do not fail for the run.
    fn failed(&self, handle: &JobHandle, task: usize) -> Result<Option<String>, StoreError> {
        let failed: Option<Failed> = self.store.get_json(&Interrupt::new(), &failed_name(task))?;
        let failed = failed.filter(|failed| may_be_of(&failed.attempt, handle));
        Ok(failed.map(|failed| failed.why))
    }

    /// Returns why the attempt of a task that counts failed.
    fn failed_in(&self, start: &Start, task: usize) -> Result<Option<String>, StoreError> {
        let failed: Option<Failed> = self.store.get_json(&Interrupt::new(), &failed_name(task))?;
        let failed = failed.filter(|failed| start.attempts.get(task) == Some(&failed.attempt));
        Ok(failed.map(|failed| failed.why))
    }

    /// Collects the results. The first failure ends all tasks.
    fn collect(
        &self,
        job: &RunJob,
        handle: &JobHandle,
        members: &Members,
        start: &Start,
        folder: &Path,
    ) -> Result<Collected, FleetError> {
        let mut engine = EngineView::new(self.engine, self.store, handle);
        let mut collected = Collected {
            ends: vec![None; members.tasks.len()],
            failure: None,
            is_live: false,
        };
        let quiet = Interrupt::new();
        let is_generator =
            |task: u16| matches!(job.roles.role(task), Some(TaskRole::Generators(_)));
        let mut figures = RunFigures::new(start, (0..job.roles.tasks()).map(is_generator));
        let mut deadline = self.deadline(start);
        let (mut is_aborted, mut shown) = (false, usize::MAX);
        while collected.ends.iter().any(Option::is_none) {
            let before = collected.ends.iter().flatten().count();
            self.take(&quiet, start, folder, &mut collected)?;
            let of = collected.ends.len();
            let complete = collected.ends.iter().flatten().count();
            collected.is_live = complete > before;
            if std::mem::replace(&mut shown, complete) != complete {
                (self.print_message)(&format!("{complete} of {of} results have arrived"));
            }
            let mut lost = engine.ended_before(RESULT_DELAY_MAX)?;
            let mut default_why = "its process ended without a result";
            if clock::now() >= deadline {
                default_why = "it delivered no result in time";
                lost = (0..of).collect();
            }
            for task in lost {
                if collected.ends[task].is_none() {
                    let why = self.failed_in(start, task)?;
                    let why = why.unwrap_or_else(|| default_why.to_owned());
                    collected.ends[task] = Some(Err(why.clone()));
                    collected.failure.get_or_insert((task, why));
                }
            }
            let failure = collected.failure.as_ref();
            let failure =
                failure.map(|(task, why)| (Some(self.name(job, members, *task)), why.clone()));
            let interrupted = || {
                let signal = self.interrupt.signal()?;
                Some((None, format!("interrupted by signal {signal}")))
            };
            if let (Some((part, why)), false) = (failure.or_else(interrupted), is_aborted) {
                is_aborted = true;
                deadline = clock::now() + self.abort_length();
                self.abort(part, &why)?;
            }
            if collected.ends.iter().any(Option::is_none) {
                let is_open = |task: usize| collected.ends[task].is_none();
                figures.look(self.store, &self.plan.phases, &is_open, self.show);
                pause(&quiet, LOOK_EVERY);
            }
        }
        Ok(collected)
    }

    /// Takes results and failures that are new.
    fn take(
        &self,
        quiet: &Interrupt,
        start: &Start,
        folder: &Path,
        collected: &mut Collected,
    ) -> Result<(), FleetError> {
        for task in 0..collected.ends.len() {
            if collected.ends[task].is_some() {
                continue;
            }
            if let Some(bytes) = self.store.get(quiet, &result_name(task))? {
                let result = bundle::unpack(&bytes, &folder.join(task.to_string()));
                if let Err(why) = &result {
                    collected.failure.get_or_insert_with(|| (task, why.clone()));
                }
                collected.ends[task] = Some(result);
            }
            if let Some(why) = self.failed_in(start, task)? {
                collected.failure.get_or_insert((task, why));
            }
        }
        Ok(())
    }

    /// Returns when the results are due at the latest.
    fn deadline(&self, start: &Start) -> Moment {
        let end = start.at + self.length() + STOP_MAX + self.plan.phases.close + COMMIT_MAX;
        clock::now() + end.saturating_sub(clock::wall())
    }

    /// Longest time from an abort to the results: that of a target whose profile is written at its end.
    fn abort_length(&self) -> Nanos {
        let observer = &self.plan.observer;
        let mut length = self.plan.target.stop.grace + self.plan.phases.close + ABORT_MAX;
        if observer.inspector.is_some() || observer.perf.is_some() {
            length += PROFILE_STOP_MAX;
        }
        if observer.perf.is_some() {
            length += PROFILE_SCRIPT_MAX;
        }
        length
    }

    /// Longest time from the start to the end of the target.
    fn length(&self) -> Nanos {
        let phases = &self.plan.phases;
        phases.warmup + phases.measure + phases.drain + self.plan.target.stop.grace
    }

    /// Has all tasks end early, each through its phases.
    fn abort(&self, part: Option<String>, why: &str) -> Result<(), FleetError> {
        let named = part
            .as_ref()
            .map_or(String::new(), |part| format!("{part}: "));
        (self.print_message)(&format!("ending all tasks: {named}{why}"));
        let abort = Abort {
            why: why.to_owned(),
            part,
        };
        self.store.create_json(&Interrupt::new(), ABORT, &abort)?;
        Ok(())
    }

    /// Ends what the engine still runs of an aborted run.
    fn end_tasks(&self, job: &RunJob, handle: &JobHandle) {
        let aborted = self.store.get(&Interrupt::new(), ABORT);
        if !matches!(aborted, Ok(None))
            && let Err(error) = self.engine.cancel(handle)
        {
            let job = &job.run;
            (self.print_message)(&format!(
                "tasks of run {job} may still be running; end them with `stillwell cluster \
                 cancel`: {error}"
            ));
        }
    }

    fn name(&self, job: &RunJob, members: &Members, task: usize) -> String {
        let name = name_of(job, task);
        match members.tasks.get(task) {
            Some(member) => format!("{name} on {}", member.node),
            None => name,
        }
    }

    /// Returns the offsets of clocks after the end, where they say something, and the time since they were measured before
    /// the start.
    fn clocks_after(
        &self,
        start: &Start,
        collected: &Collected,
    ) -> (Vec<Option<ClockOffsets>>, Nanos) {
        // Another host, or one that was started again, has another monotonic clock.
        let is_same_clock = start.boot == boot_id();
        let after = match is_same_clock && collected.is_live && collected.failure.is_none() {
            true => self.clocks(ClockStage::AfterEnd, &start.attempts).ok(),
            false => None,
        };
        // A controller may read results much later.
        let most = START_LEAD + self.length() + STOP_MAX;
        let elapsed = match is_same_clock {
            true => ClockReading::now().monotonic.saturating_sub(start.measured),
            false => most,
        };
        let after = after.unwrap_or_else(|| vec![None; collected.ends.len()]);
        (after, elapsed.min(most))
    }

    /// Puts the results together.
    fn put_together(
        &self,
        job: &RunJob,
        members: &Members,
        start: &Start,
        collected: Collected,
        folder: &Path,
    ) -> Result<FleetRunEnd, FleetError> {
        let (after, elapsed) = self.clocks_after(start, &collected);
        let clock_error = self.clock_error(job, members, start, Some((&after, elapsed)));
        // A part that vanished is the cause also if another one was first to notice.
        let lost = (0..).zip(&collected.ends).find_map(|(task, end)| {
            let why = end.as_ref()?.as_ref().err()?;
            Some((task, why.clone()))
        });
        let failure = lost.or(collected.failure);
        let mut machines = RunMachines {
            engine: self.engine.name().to_owned(),
            clock_error,
            tasks: Vec::new(),
        };
        let (mut parts, mut manifests) = (Vec::new(), Vec::new());
        for (task, end) in collected.ends.into_iter().enumerate() {
            let index = u16::try_from(task).unwrap_or(u16::MAX);
            let Some(role) = job.roles.role(index) else {
                continue;
            };
            let result = end.unwrap_or_else(|| Err("it delivered no result".to_owned()));
            let clock = |clocks: &[Option<ClockOffsets>]| clocks.get(task).copied().flatten();
            let clock = clock(&start.clocks).map(|before| (before, clock(&after)));
            let run_task = task_of(role, result, clock, elapsed);
            if run_task.result.is_ok() {
                let part = folder.join(task.to_string());
                manifests.push((role, Manifest::open(&part).map_err(FleetError::Unpack)?));
                parts.push(RunPart {
                    role,
                    name: run_task.name(),
                    folder: part,
                });
            }
            machines.tasks.push(run_task);
        }
        let plan = self.plan.over(job.roles).map_err(FleetError::NoStart)?;
        let (ledger, damage) = match joined_ledger(job, &plan, &parts) {
            Ok(ledger) => (ledger, None),
            Err(damage) => (None, Some(damage)),
        };
        // A run that ended early may have no ledger.
        let is_whole = manifests.iter().all(|(_, its)| its.outcome.is_completed());
        let failure = failure.or_else(|| damage.filter(|_| is_whole));
        let failure = failure.map(|(task, why)| {
            let role = u16::try_from(task)
                .ok()
                .and_then(|task| job.roles.role(task));
            (role, self.name(job, members, task), why)
        });
        let Some((_, mut manifest)) = manifests.first().cloned() else {
            return Err(no_result(failure.map(|(_, part, why)| (part, why))));
        };
        let outcome = self.outcome(failure, &manifests);
        manifest.plan = plan;
        if job.roles.sinks > 1 {
            manifest.ledger = ledger;
        }
        manifest.machines = Some(machines);
        manifest.outcome = outcome;
        Ok(FleetRunEnd { manifest, parts })
    }

    /// Returns the outcome of the whole: the first failure, by the words of the part itself if it
    /// is that of the target.
    fn outcome(
        &self,
        failure: Option<(Option<TaskRole>, String, String)>,
        manifests: &[(TaskRole, Manifest)],
    ) -> RunOutcome {
        if let Some(signal) = self.interrupt.signal() {
            return RunOutcome::Interrupted { signal };
        }
        let failed = |role: Option<TaskRole>| {
            let of_role = |(its, manifest): &&(TaskRole, Manifest)| {
                role.is_none_or(|role| role == *its) && !manifest.outcome.is_completed()
            };
            manifests.iter().find(of_role)
        };
        match failure {
            Some((role, part, reason)) => match failed(role) {
                Some((TaskRole::Target, manifest)) => manifest.outcome.clone(),
                _ => RunOutcome::PartFailed { part, reason },
            },
            None => failed(None).map_or(RunOutcome::Completed, |(_, manifest)| {
                manifest.outcome.clone()
            }),
        }
    }
}

/// Returns the capture of the target of a run that did not start, if the target is the cause and has
/// left one. It has the target's last lines. `plan` is that of the run.
#[must_use]
pub fn failed_target(store: &JobStore, plan: &RunPlan, folder: &Path) -> Option<FleetRunEnd> {
    let bytes = store.get(&Interrupt::new(), &result_name(0)).ok()??;
    let folder = folder.join("0");
    let result: RunTaskResult = bundle::unpack(&bytes, &folder).ok()?;
    let manifest = Manifest::open(&folder).ok()?;
    let is_cause = matches!(
        manifest.outcome,
        RunOutcome::CouldNotStart { .. }
            | RunOutcome::NeverReady { .. }
            | RunOutcome::TargetDied { .. }
    );
    let name = format!("{} on {}", TaskRole::Target.name(), result.node);
    is_cause.then(|| FleetRunEnd {
        manifest: Manifest {
            plan: plan.clone(),
            ..manifest
        },
        parts: vec![RunPart {
            role: TaskRole::Target,
            name,
            folder,
        }],
    })
}

/// Returns the error of a run of which no task has a result.
fn no_result(failure: Option<(String, String)>) -> FleetError {
    let (part, why) = failure.unzip();
    FleetError::NoRun {
        part,
        why: why.unwrap_or_else(|| "no task has a result".to_owned()),
    }
}

/// Returns the record of a task whose clock was compared at the start and perhaps at the end,
/// `elapsed` later.
fn task_of(
    role: TaskRole,
    result: Result<RunTaskResult, String>,
    clock: Option<(ClockOffsets, Option<ClockOffsets>)>,
    elapsed: Nanos,
) -> RunTask {
    RunTask {
        role,
        result,
        clock: clock.map(|(before, after)| GeneratorClock {
            ahead: before.wall.nanos,
            error: before.wall.error,
            drift: after.and_then(|after| after.monotonic.drift(before.monotonic, elapsed)),
        }),
        warnings: Vec::new(),
    }
}

/// Joins the delivery ledgers of several tasks with sinks; a single one is in its capture. An error
/// has the task.
fn joined_ledger(
    job: &RunJob,
    plan: &RunPlan,
    parts: &[RunPart],
) -> Result<Option<LedgerRecord>, (usize, String)> {
    let parts = parts
        .iter()
        .filter(|part| matches!(part.role, TaskRole::Sinks(_)));
    let folders: Vec<&Path> = parts.map(|part| part.folder.as_path()).collect();
    // Without the arrivals of all of them nothing can be said of any event.
    if job.roles.sinks < 2 || folders.len() < usize::from(job.roles.sinks) {
        return Ok(None);
    }
    join_ledgers(&plan.generators, &job.run, &folders).map_err(|error| {
        let task = tasks_with_sinks(job.roles).nth(error.part);
        (task.unwrap_or_default(), error.reason)
    })
}

/// Returns the tasks with sinks; that with the target has them if no other one has.
fn tasks_with_sinks(roles: RunRoles) -> impl Iterator<Item = usize> {
    let first = usize::from(roles.sinks.min(1));
    first..first + usize::from(roles.sinks.max(1))
}

/// Returns the name of a task of `job` for readers.
fn name_of(job: &RunJob, task: usize) -> String {
    let role = u16::try_from(task)
        .ok()
        .and_then(|task| job.roles.role(task));
    role.map_or_else(|| format!("task {task}"), TaskRole::name)
}

#[cfg(test)]
mod tests;
