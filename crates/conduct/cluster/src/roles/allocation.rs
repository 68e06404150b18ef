//! Machines for several runs, one after the other.
//!
//! The tasks of an allocation stay where their engine has started them, so each part of all runs is
//! on the same machine. Each run has objects as one that is a job, below the name of the
//! allocation.

use stillwell_run::Interrupt;
use stillwell_scope::clock;
use stillwell_units::Nanos;

use super::task::register;
use super::{AllocationJob, NO_MORE_RUNS, RunJob};
use crate::attempt::Attempt;
use crate::controller::{FleetError, submit_tasks};
use crate::engine::{Engine, JobHandle, Submission, TaskState, engine_of};
use crate::job::{ABORT, Abort, ENGINE, JOB, Ready};
use crate::pause::pause;
use crate::store::{Created, JobStore, StoreError};

/// Time between two looks at the store for the next run.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// The longest wait of tasks for the next run: their controller is gone.
const IDLE_MAX: Nanos = Nanos::from_secs(5 * 60);
/// Time between two questions to the engine at the end.
const POLL_EVERY: Nanos = Nanos::from_millis(200);
/// The longest wait for tasks that end by themselves.
const LEAVE_MAX: Nanos = Nanos::from_secs(5);
/// The longest wait for the end of all tasks that were cancelled.
const END_MAX: Nanos = Nanos::from_secs(60);

/// Returns the objects of a run of the allocation of `store`.
fn store_of_run(store: &JobStore, number: u32) -> JobStore {
    store.within(&format!("runs/{number:04}"))
}

/// Returns the objects of the allocation with this number, from 1, of a suite whose first one is in `store`.
///
/// # Errors
/// [`StoreError::JobName`] if the name is too long.
pub fn store_of_allocation(store: &JobStore, number: u32) -> Result<JobStore, StoreError> {
    match number {
        0 | 1 => Ok(store.clone()),
        _ => store.beside(&format!("{}.{number}", store.job())),
    }
}

/// Returns the objects of the last allocation of a suite whose first one is in `store`, and those of the
/// earlier ones. Other jobs have their own objects alone.
///
/// # Errors
/// [`StoreError`] if the store does not answer.
pub fn allocations(
    store: &JobStore,
    interrupt: &Interrupt,
) -> Result<(JobStore, Vec<JobStore>), StoreError> {
    let (mut last, mut earlier) = (store.clone(), Vec::new());
    let Some(first) = AllocationJob::read(store, interrupt)? else {
        return Ok((last, earlier));
    };
    for number in 2.. {
        // No job has a name that is too long.
        let Ok(next) = store_of_allocation(store, number) else {
            break;
        };
        if next.get(interrupt, JOB)?.is_none() {
            break;
        }
        // A name that another job had was left out.
        let job = AllocationJob::read(&next, interrupt)?;
        if job.is_some_and(|job| job.is_beside(&first)) {
            earlier.push(std::mem::replace(&mut last, next));
        }
    }
    Ok((last, earlier))
}

/// Machines for several runs, as their controller has them.
#[derive(Debug)]
pub struct Allocation {
    store: JobStore,
    handle: JobHandle,
    runs: u32,
}

impl Allocation {
    /// Makes the job of `store`, and has `engine` start its tasks.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if there is such a job, and errors of store and engine.
    pub fn begin(
        store: JobStore,
        job: &AllocationJob,
        engine: &dyn Engine,
        submission: &Submission<'_>,
        interrupt: &Interrupt,
    ) -> Result<Self, FleetError> {
        if store.create_json(interrupt, JOB, job)? == Created::Before {
            return Err(StoreError::Taken(format!("job {}", store.job())).into());
        }
        let handle = submit_tasks(engine, &store, interrupt, submission)?;
        Ok(Self {
            store,
            handle,
            runs: 0,
        })
    }

    /// Returns the objects of the next run, which the tasks do once it has a job.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn next_run(&mut self, interrupt: &Interrupt) -> Result<JobStore, StoreError> {
        self.runs += 1;
        let store = store_of_run(&self.store, self.runs);
        store.create_json(interrupt, ENGINE, &self.handle)?;
        Ok(store)
    }

    /// Returns the number of runs that were begun.
    #[must_use]
    pub const fn runs(&self) -> u32 {
        self.runs
    }

    /// Returns true unless a task has ended, by its engine.
    #[must_use]
    pub fn is_whole(&self, engine: &dyn Engine) -> bool {
        let is_there = |state: &TaskState| !matches!(state, TaskState::Ended);
        // An engine that does not answer says nothing about its tasks.
        let states = engine.poll(&self.handle);
        states.map_or(true, |states| states.iter().all(is_there))
    }

    /// Returns true if it was cancelled by another process.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.store.get(&Interrupt::new(), ABORT), Ok(Some(_)))
    }

    /// Ends all tasks, and waits until they have ended.
    ///
    /// # Errors
    /// [`FleetError`] if they may still run.
    pub fn end(self, engine: &dyn Engine) -> Result<(), FleetError> {
        end(&self.store, engine, &self.handle)
    }
}

/// Ends the tasks of the allocation of `store`, whose controller is gone, and waits until they have
/// ended.
///
/// # Errors
/// [`FleetError`] if they may still run.
pub fn end_left(store: &JobStore) -> Result<(), FleetError> {
    match store.get_json::<JobHandle>(&Interrupt::new(), ENGINE)? {
        Some(handle) => end(store, &*engine_of(&handle)?, &handle),
        None => Ok(()),
    }
}

fn end(store: &JobStore, engine: &dyn Engine, handle: &JobHandle) -> Result<(), FleetError> {
    let abort = Abort {
        why: NO_MORE_RUNS.to_owned(),
        part: None,
    };
    // Without a store the engine ends them.
    drop(store.create_json(&Interrupt::new(), ABORT, &abort));
    if have_ended(engine, handle, LEAVE_MAX) {
        return Ok(());
    }
    engine.cancel(handle)?;
    match have_ended(engine, handle, END_MAX) {
        true => Ok(()),
        false => Err(FleetError::StillRunning(store.job().to_owned())),
    }
}

/// Waits until all tasks have ended, for `at_most`.
fn have_ended(engine: &dyn Engine, handle: &JobHandle, at_most: Nanos) -> bool {
    let until = clock::now() + at_most;
    let quiet = Interrupt::new();
    loop {
        let states = engine.poll(handle);
        let has_ended = |state: &TaskState| matches!(state, TaskState::Ended | TaskState::NodeLost);
        if states.is_ok_and(|states| states.iter().all(has_ended)) {
            return true;
        }
        if clock::now() >= until {
            return false;
        }
        pause(&quiet, POLL_EVERY);
    }
}

/// Machines for several runs, as one of their tasks has them.
#[derive(Debug)]
pub struct AllocationTask<'a> {
    store: &'a JobStore,
    interrupt: &'a Interrupt,
    runs: u32,
}

impl<'a> AllocationTask<'a> {
    /// Makes the attempt known.
    ///
    /// # Errors
    /// [`FleetError`] if the store does not answer.
    pub fn begin(
        store: &'a JobStore,
        attempt: &Attempt,
        interrupt: &'a Interrupt,
    ) -> Result<Self, FleetError> {
        let ready = Ready {
            attempt: attempt.name.clone(),
            node: attempt.node.clone(),
            began: clock::wall(),
        };
        register(store, interrupt, attempt, &ready)?;
        Ok(Self {
            store,
            interrupt,
            runs: 0,
        })
    }

    /// Waits for the next run; `None` if there are no more, or the controller is gone.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn next_run(&mut self) -> Result<Option<(JobStore, RunJob)>, StoreError> {
        self.runs += 1;
        let store = store_of_run(self.store, self.runs);
        let until = clock::now() + IDLE_MAX;
        loop {
            let is_over = self.interrupt.signal().is_some()
                || self
                    .store
                    .get_json::<Abort>(self.interrupt, ABORT)?
                    .is_some();
            if is_over || clock::now() >= until {
                return Ok(None);
            }
            if let Some(job) = RunJob::read(&store, self.interrupt)? {
                return Ok(Some((store, job)));
            }
            pause(self.interrupt, LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use stillwell_plan::RunRoles;
    use stillwell_units::RunId;

    use super::*;
    use crate::engine::LocalEngine;
    use crate::store::{RetryBounds, Store};

    /// Tasks that end at once: `true` with any words.
    fn begin(store: &JobStore, id: u8) -> Result<Allocation, FleetError> {
        let roles = RunRoles {
            generators: 1,
            sinks: 0,
        };
        let line = (PathBuf::from("/"), Vec::new());
        let id = RunId::from_bytes([id; 16]);
        let job = AllocationJob::new("1", line, "s".to_owned(), id, roles);
        let logs = store.store().folder().unwrap().join("logs");
        let submission = Submission {
            job: store.job(),
            tasks: roles.tasks(),
            cpus: 1,
            connects_tasks: true,
            program: std::path::Path::new("true"),
            arguments: &[],
            folder: None,
            logs: &logs,
            secrets: None,
            end_max: Nanos::ZERO,
        };
        let quiet = Interrupt::new();
        Allocation::begin(store.clone(), &job, &LocalEngine, &submission, &quiet)
    }

    fn attempt() -> Attempt {
        Attempt {
            task: 1,
            name: "a".to_owned(),
            node: "n".to_owned(),
            boot: "b".to_owned(),
            shift: Default::default(),
        }
    }

    #[test]
    fn tasks_get_each_run_in_turn_until_the_allocation_ends() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        let store = JobStore::new(store, "a", RetryBounds::default()).unwrap();
        let quiet = Interrupt::new();
        let mut allocation = begin(&store, 1).unwrap();
        let taken = begin(&store, 2).unwrap_err();
        assert!(
            matches!(taken, FleetError::Store(StoreError::Taken(_))),
            "{taken}"
        );
        let mut task = AllocationTask::begin(&store, &attempt(), &quiet).unwrap();
        for number in 1..=2 {
            let of_run = allocation.next_run(&quiet).unwrap();
            let line = (PathBuf::from("/"), Vec::new());
            let id = RunId::from_bytes([number; 16]);
            let roles = AllocationJob::read(&store, &quiet).unwrap().unwrap().roles;
            let job = RunJob::new("1", line, "s".to_owned(), id, roles);
            of_run.create_json(&quiet, JOB, &job).unwrap();
            let (seen, read) = task.next_run().unwrap().unwrap();
            assert_eq!(seen.job(), format!("a/runs/{number:04}"));
            assert_eq!(read, job);
            let handle: Option<JobHandle> = of_run.get_json(&quiet, ENGINE).unwrap();
            assert_eq!(handle.unwrap(), allocation.handle);
        }
        assert!(!allocation.is_cancelled());
        allocation.end(&LocalEngine).unwrap();
        assert!(task.next_run().unwrap().is_none());
        end_left(&store).unwrap();
        end_left(&store.beside("b").unwrap()).unwrap();
    }

    #[test]
    fn a_job_is_its_last_allocation() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        let store = JobStore::new(store, "a", RetryBounds::default()).unwrap();
        let quiet = Interrupt::new();
        let names = || {
            let (last, earlier) = allocations(&store, &quiet).unwrap();
            let stores = earlier.iter().chain([&last]);
            stores
                .map(|store| store.job().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(), ["a"]);
        begin(&store, 1).unwrap().end(&LocalEngine).unwrap();
        assert_eq!(names(), ["a"]);
        // The name of the second one is taken by a job that is none.
        let job = AllocationJob::read(&store, &quiet).unwrap().unwrap();
        let foreign = job.with_results(PathBuf::from("/other"));
        let second = store_of_allocation(&store, 2).unwrap();
        second.create_json(&quiet, JOB, &foreign).unwrap();
        begin(&store_of_allocation(&store, 3).unwrap(), 3).unwrap();
        assert_eq!(names(), ["a", "a.3"]);
    }
}
