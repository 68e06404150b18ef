//! The objects of a job.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stillwell_plan::LoadPlan;
use stillwell_run::{AddressFamily, Interrupt};
use stillwell_units::{Nanos, Secrets};

use crate::clocks::ClockOffsets;
use crate::store::{Created, JobStore, StoreError};

/// Names the shape of [`ClusterJob`].
pub const JOB_SCHEMA: &str = "stillwell/cluster-job/v1";

/// Names the shape of a job that is a suite.
pub(crate) const SUITE_SCHEMA: &str = "stillwell/cluster-suite/v1";

/// Names the shape of a job that is one run.
pub(crate) const RUN_SCHEMA: &str = "stillwell/cluster-run/v2";

/// Names the shape of a job whose tasks do several runs.
pub(crate) const ALLOCATION_SCHEMA: &str = "stillwell/cluster-allocation/v1";

pub(crate) const JOB: &str = "job.json";
pub(crate) const ENGINE: &str = "engine.json";
pub(crate) const START: &str = "start.json";
pub(crate) const ABORT: &str = "abort.json";
pub(crate) const MEMBERS: &str = "members.json";

/// A load and its generators.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ClusterJob {
    /// [`JOB_SCHEMA`].
    pub schema: String,
    /// Version of the controller; generators of another one refuse.
    pub version: String,
    /// The load of all generators together. Secrets in it are masked, unless they are kept
    /// in results, too.
    pub plan: LoadPlan,
    /// True if secrets are masked: each generator gets the plan as typed from its engine.
    #[serde(default)]
    pub is_masked: bool,
    /// Number of generators.
    pub generators: u16,
    /// Address family: 4, 6, or 0 for any.
    pub family: u8,
}

impl ClusterJob {
    /// Returns the address family.
    #[must_use]
    pub const fn address_family(&self) -> AddressFamily {
        match self.family {
            4 => AddressFamily::V4,
            6 => AddressFamily::V6,
            _ => AddressFamily::Any,
        }
    }
}

impl Job for ClusterJob {
    const SCHEMA: &'static str = JOB_SCHEMA;

    fn is_equivalent(&self, other: &Self) -> bool {
        let (plan, typed) = (&self.plan, &other.plan);
        self.generators == other.generators
            && plan.endpoints == typed.endpoints
            && plan.pace == typed.pace
            && plan.client == typed.client
            && plan.workers == typed.workers
            && plan.until == typed.until
            && plan.warmup == typed.warmup
    }
}

/// A job of any kind.
pub(crate) trait Job: Serialize + DeserializeOwned {
    /// Names its shape.
    const SCHEMA: &'static str;

    /// Returns true if `other` does the same; names and seeds may differ.
    fn is_equivalent(&self, other: &Self) -> bool;
}

/// Makes a job in `store`, or returns the one that another controller made.
///
/// # Errors
/// [`StoreError::Taken`] if that one does something else, and errors of the store.
pub(crate) fn agreed_job<J: Job>(
    store: &JobStore,
    interrupt: &Interrupt,
    print_message: &dyn Fn(&str),
    job: J,
) -> Result<J, StoreError> {
    if store.create_json(interrupt, JOB, &job)? == Created::Now {
        return Ok(job);
    }
    match read_job::<J>(store, interrupt, J::SCHEMA)? {
        Some(before) if before.is_equivalent(&job) => {
            print_message(&format!("job {}: continuing", store.job()));
            Ok(before)
        }
        _ => Err(StoreError::Taken(format!("job {}", store.job()))),
    }
}

/// Reads the job of `store`, if its shape has the name `schema`.
pub(crate) fn read_job<T: DeserializeOwned>(
    store: &JobStore,
    interrupt: &Interrupt,
    schema: &str,
) -> Result<Option<T>, StoreError> {
    #[derive(Deserialize)]
    struct JobShape {
        schema: String,
    }
    let shape: Option<JobShape> = store.get_json(interrupt, JOB)?;
    if shape.is_none_or(|shape| shape.schema != schema) {
        return Ok(None);
    }
    store.get_json(interrupt, JOB)
}

/// Returns `plan` with its secrets handled as `secrets` says.
pub(crate) fn shared_plan(
    plan: &LoadPlan,
    secrets: Secrets,
) -> Result<LoadPlan, serde_json::Error> {
    serde_json::from_value(secrets.json(serde_json::to_value(plan)?))
}

/// Number of [`AddressFamily`] in a job.
pub(crate) const fn family_number(family: AddressFamily) -> u8 {
    match family {
        AddressFamily::Any => 0,
        AddressFamily::V4 => 4,
        AddressFamily::V6 => 6,
    }
}

/// An attempt that is ready.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Ready {
    pub(crate) attempt: String,
    pub(crate) node: String,
    /// Start of its process, since 1970 by its own clock.
    pub(crate) began: Nanos,
}

/// The start of a load.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Start {
    /// Time of the start, since 1970.
    pub(crate) at: Nanos,
    /// The attempt of each task that counts.
    pub(crate) attempts: Vec<String>,
    /// Offsets of the clocks of each of them, if they are known.
    pub(crate) clocks: Vec<Option<ClockOffsets>>,
    /// Time of that measurement, by the monotonic clock of the controller.
    pub(crate) measured: Nanos,
    /// Identity of the boot of the controller's machine, which that clock is of.
    pub(crate) boot: String,
}

impl Start {
    /// Returns the time of the start by the clock of a task.
    pub(crate) fn at_of(&self, task: usize) -> Nanos {
        let clock = self.clocks.get(task).copied().flatten();
        clock.map_or(self.at, |clock| clock.wall.apply(self.at))
    }
}

/// The reason why there is no result.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Failed {
    pub(crate) attempt: String,
    pub(crate) why: String,
}

/// The reason why all end early.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Abort {
    pub(crate) why: String,
    /// The part of a run that failed, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<String>,
}

/// Name of an object of a task.
pub(crate) fn of_task(task: usize, name: &str) -> String {
    format!("tasks/{task:04}/{name}")
}

/// Name of the object of the attempt of a task with this number.
pub(crate) fn ready_name(task: usize, number: u32) -> String {
    of_task(task, &format!("ready-{number}.json"))
}

/// Name of the sign of life with this number of a generator that sends.
pub(crate) fn beat_name(task: usize, number: u32) -> String {
    of_task(task, &format!("beat-{number}"))
}

pub(crate) fn result_name(task: usize) -> String {
    of_task(task, "result")
}

pub(crate) fn failed_name(task: usize) -> String {
    of_task(task, "failed.json")
}
