//! Placement of a run's threads and processes.

use serde::{Deserialize, Serialize};

use crate::link::NetworkPlan;

/// Assignment of CPUs.
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
    /// Divided between the target and us: with two, one each.
    #[default]
    Auto,
    /// Wherever the scheduler likes.
    Any,
    /// So many of those that there are, capped at the host's with a note.
    Count(u16),
    /// Exactly these.
    List(Vec<u16>),
}

/// Isolation of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct IsolationPlan {
    /// A separate network namespace.
    pub network: Wanted,
    /// A separate cgroup for the target.
    pub cgroup: Wanted,
    /// A higher CPU priority for the target, generators, sinks and observers.
    #[serde(default)]
    pub priority: Wanted,
    /// Separate networks for target and sinks, and the links between them and
    /// generators; an error if they are unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<NetworkPlan>,
}

/// Strength of a requirement.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// Used if available; the result lists what was not.
    #[default]
    IfPossible,
    /// Not even tried.
    No,
    /// The run is refused without it.
    Required,
}
