//! One run on several machines: the target, the sinks and the generators are tasks.
//!
//! Payload goes from machine to machine as the experiment says. Everything else goes through the
//! store, so nothing else listens.

mod allocation;
mod clock_bounds;
mod controller;
mod exchange;
mod figures;
mod task;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillwell_capture::RunIdentity;
use stillwell_plan::{RunHosts, RunPlan, RunRoles};
use stillwell_run::Interrupt;
use stillwell_units::{Nanos, RunId};

pub use allocation::{Allocation, AllocationTask, allocations, end_left, store_of_allocation};
pub use controller::{FleetRun, FleetRunEnd, failed_target};
pub(crate) use figures::PartTotals;
pub use task::{RunTaskContext, RunTaskEnd};

use crate::job::{ALLOCATION_SCHEMA, Job, RUN_SCHEMA, read_job};
use crate::store::{JobStore, StoreError};

/// A run on several machines, as its tasks read it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RunJob {
    /// Names the shape.
    pub schema: String,
    /// Version of the controller; tasks of another one refuse.
    pub version: String,
    /// Working folder of the command.
    pub folder: PathBuf,
    /// The command line as typed. No secrets are in it.
    pub words: Vec<String>,
    /// Seed of the run.
    pub seed: String,
    /// Name of the run, which all stamps have.
    pub run: RunId,
    /// Roles of the tasks.
    pub roles: RunRoles,
    /// The run of a suite; of others the tasks read the file again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Box<PlannedRun>>,
}

/// A run of a suite.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PlannedRun {
    /// Its plan on one machine. Secrets in it are masked, unless they are kept in results, too.
    pub plan: RunPlan,
    /// True if secrets are masked: each task reads them from the files of the suite.
    pub is_masked: bool,
    /// The folder that replaces `{files}`.
    pub files: Option<PathBuf>,
    /// The folder that replaces `{experiment}`.
    pub experiment: PathBuf,
    /// Its place in the suite.
    pub identity: RunIdentity,
}

impl RunJob {
    /// Returns the run that the command line `words` in `folder` names.
    #[must_use]
    pub fn new(
        version: &str,
        (folder, words): (PathBuf, Vec<String>),
        seed: String,
        run: RunId,
        roles: RunRoles,
    ) -> Self {
        Self {
            schema: RUN_SCHEMA.to_owned(),
            version: version.to_owned(),
            folder,
            words,
            seed,
            run,
            roles,
            planned: None,
        }
    }

    /// The same job for a run of a suite.
    #[must_use]
    pub fn planned(self, run: PlannedRun) -> Self {
        Self {
            planned: Some(Box::new(run)),
            ..self
        }
    }

    /// Returns the run of the job of `store`; `None` if the job is another one.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn read(store: &JobStore, interrupt: &Interrupt) -> Result<Option<Self>, StoreError> {
        read_job(store, interrupt, RUN_SCHEMA)
    }
}

impl Job for RunJob {
    const SCHEMA: &'static str = RUN_SCHEMA;

    fn is_equivalent(&self, other: &Self) -> bool {
        self.roles == other.roles
            && self.folder == other.folder
            && self.version == other.version
            && self.planned == other.planned
            // A run that no suite plans is that of its command line.
            && (self.planned.is_some() || self.words == other.words)
    }
}

/// Reason of an end that is not early.
pub(crate) const NO_MORE_RUNS: &str = "no more runs";

/// Machines for several runs, as their tasks read it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AllocationJob {
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
    /// Roles of the tasks.
    pub roles: RunRoles,
    /// A name that no other allocation has.
    pub id: RunId,
    /// Folder of results, on the machine of the command.
    #[serde(default)]
    pub results: PathBuf,
}

impl AllocationJob {
    /// Returns the machines for the suite that the command line `words` in `folder` names.
    #[must_use]
    pub fn new(
        version: &str,
        (folder, words): (PathBuf, Vec<String>),
        seed: String,
        id: RunId,
        roles: RunRoles,
    ) -> Self {
        Self {
            schema: ALLOCATION_SCHEMA.to_owned(),
            version: version.to_owned(),
            folder,
            words,
            seed,
            roles,
            id,
            results: PathBuf::new(),
        }
    }

    /// The same machines for a suite with these results.
    #[must_use]
    pub fn with_results(self, results: PathBuf) -> Self {
        Self { results, ..self }
    }

    /// Returns true if a command in `folder` with these roles can continue its suite.
    #[must_use]
    pub fn is_of(&self, roles: RunRoles, folder: &Path) -> bool {
        self.roles == roles && self.folder == folder
    }

    /// Returns true if both are of one suite.
    pub(crate) fn is_beside(&self, first: &Self) -> bool {
        self.results == first.results && self.is_of(first.roles, &first.folder)
    }

    /// Returns the allocation of the job of `store`; `None` if the job is another one.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn read(store: &JobStore, interrupt: &Interrupt) -> Result<Option<Self>, StoreError> {
        read_job(store, interrupt, ALLOCATION_SCHEMA)
    }
}

/// An attempt of a task that has come to the store.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Member {
    pub(crate) attempt: String,
    pub(crate) node: String,
    pub(crate) boot: String,
    /// Its host on the network of the run.
    pub(crate) address: IpAddr,
    /// Start of its process, since 1970 by its own clock.
    pub(crate) began: Nanos,
}

/// The attempts that count.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Members {
    /// One for each task.
    pub(crate) tasks: Vec<Member>,
    pub(crate) hosts: RunHosts,
}

impl Members {
    /// Returns the attempts, one for each task.
    pub(crate) fn attempts(&self) -> Vec<String> {
        let attempts = self.tasks.iter().map(|member| member.attempt.clone());
        attempts.collect()
    }
}
