//! The objects of a job.

use serde::{Deserialize, Serialize};
use stillwell_capture::GeneratorResult;
use stillwell_plan::LoadPlan;
use stillwell_run::AddressFamily;
use stillwell_units::Nanos;

/// Names the shape of [`ClusterJob`].
pub const JOB_SCHEMA: &str = "stillwell/cluster-job/v1";

pub(crate) const JOB: &str = "job.json";
pub(crate) const ENGINE: &str = "engine.json";
pub(crate) const START: &str = "start.json";
pub(crate) const ABORT: &str = "abort.json";

/// A load and its generators.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ClusterJob {
    /// [`JOB_SCHEMA`].
    pub schema: String,
    /// Version of the controller; generators of another one refuse.
    pub version: String,
    /// The load of all generators together. It holds secrets as they were typed.
    pub plan: LoadPlan,
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

    /// Returns true if `other` makes the same load; names and seeds may differ.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
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
}

/// The first line of a result; the bytes of its files follow.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct ResultHead {
    pub(crate) result: GeneratorResult,
    /// Names and lengths of the files of the capture.
    pub(crate) files: Vec<(String, u64)>,
}

/// Name of an object of a task.
pub(crate) fn of_task(task: usize, name: &str) -> String {
    format!("tasks/{task:04}/{name}")
}

/// Name of the object of the attempt of a task with this number.
pub(crate) fn ready_name(task: usize, number: u32) -> String {
    of_task(task, &format!("ready-{number}.json"))
}

pub(crate) fn result_name(task: usize) -> String {
    of_task(task, "result")
}

pub(crate) fn failed_name(task: usize) -> String {
    of_task(task, "failed.json")
}
