//! Loads of several generators, runs on several machines, and suites over several nodes.
//!
//! A [controller](FleetLoad) splits a load among generators, has an [`Engine`] start them as
//! tasks, and merges their captures. Controller and generators meet only through a
//! [`JobStore`]: none of them listens or connects to another. Every object in it is
//! made once and never changed, so each of them can be ended and started again at any time.
//!
//! | object | made by | content |
//! | --- | --- | --- |
//! | `job.json` | controller | the load without its secrets, and the number of generators |
//! | `engine.json` | controller | the engine's name of the tasks |
//! | `tasks/0000/ready-0.json` | generator | an attempt that is ready; the next one has the next number |
//! | `ping-0.json` | controller | its time; the next one has the next number |
//! | `tasks/0000/pong-A-0.json` | generator | the time at which attempt A read it |
//! | `start.json` | controller | the time of the start, the offsets of clocks, and the attempt of each task that counts |
//! | `tasks/0000/beat-0` | generator | a sign of life, with the requests since the last one; the next one has the next number |
//! | `tasks/0000/result` | generator | the capture |
//! | `tasks/0000/failed.json` | generator | the reason why there will be none |
//! | `abort.json` | controller | the reason why all end early |
//!
//! A [run on several machines](FleetRun) has three more kinds:
//!
//! | object | made by | content |
//! | --- | --- | --- |
//! | `members.json` | controller | the attempt of each task that counts, and the addresses of the hosts |
//! | `tasks/0000/prepared`, `bound`, `target-ready`, `quiet`, `stopped` | task | a point of the run that others wait for |
//! | `tasks/0000/sent` | generator | the same, with the events that each stream has begun |
//! | `tasks/0000/beat-0` | task | a sign of life, with the totals of its part |
//!
//! The tasks of an [allocation](Allocation) do several such runs, one after the other. Its job has
//! `job.json`, `engine.json`, `tasks/0000/ready-0.json` and, when it ends, `abort.json`. The objects
//! of its first run are below `runs/0001`.
//!
//! Only `result` says that a task is complete, also if the engine disagrees.

mod attempt;
mod beats;
mod bundle;
mod clocks;
mod controller;
mod engine;
mod generator;
mod job;
mod pause;
mod rates;
mod roles;
mod status;
mod store;
mod suite;

pub use attempt::{Attempt, AttemptError};
pub use clocks::ClockOffset;
pub use controller::{FleetError, FleetLoad, cancel_job};
pub use engine::{
    Engine, EngineError, JobHandle, KubernetesEngine, KubernetesOptions, LocalEngine, LocalTask,
    SlurmEngine, Submission, TaskState, engine_of,
};
pub use generator::{GenerateError, GeneratorEnd, generate};
pub use job::{ClusterJob, JOB_SCHEMA};
pub use roles::{
    Allocation, AllocationJob, AllocationTask, FleetRun, FleetRunEnd, PlannedRun, RunJob,
    RunTaskContext, RunTaskEnd, allocations, end_left, failed_target, store_of_allocation,
};
pub use status::{GeneratorProgress, JobStatus, job_status};
pub use store::{Created, JobStore, RetryBounds, Store, StoreError};
pub use suite::{ExperimentNode, FleetSuite, SuiteJob, SuiteTask};
