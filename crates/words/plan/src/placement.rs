//! Where a run's threads and processes stand.

use serde::{Deserialize, Serialize};

use crate::NetworkPlan;

/// Which CPUs are whose.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct PlacementPlan {
    /// CPUs of generators, sinks and observers.
    pub ours: CpuChoice,
    /// True if a generator worker owns its CPU and may spin on it.
    pub reserved: bool,
}

/// A choice of CPUs.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuChoice {
    /// Divided between the subject and us: with two, one each.
    #[default]
    Auto,
    /// Wherever the scheduler likes.
    Any,
    /// So many of those that there are, capped at the host's with a note.
    Count(u16),
    /// Exactly these.
    List(Vec<u16>),
}

/// What a run is kept apart from.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct IsolationPlan {
    /// A network namespace of its own.
    pub network: Wanted,
    /// A cgroup of its own for the subject.
    pub cgroup: Wanted,
    /// Networks of their own for subject and sinks, and the links between them and
    /// generators; refused where they cannot be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<NetworkPlan>,
}

/// How much something is wanted.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// Where it can be had; the result says where it could not.
    #[default]
    IfPossible,
    /// Not even tried.
    No,
    /// The run is refused without it.
    Required,
}
