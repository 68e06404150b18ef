//! Several programs under one load.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::Seed;

use crate::{RunPlan, TargetPlan};

/// Runs where neither file nor command line says how many.
pub const RUNS_DEFAULT: u32 = 6;
/// Most runs of each target.
pub const RUNS_MAX: u32 = 200;

/// One workload, and several programs that carry it in turn.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TargetsPlan {
    /// Unique among those that are run together.
    pub name: String,
    /// The first line of prose of its README or its description.
    pub summary: Option<String>,
    /// The folder that it was read from.
    pub folder: PathBuf,
    /// The plan of every run; its target is replaced by each compared target in turn.
    pub run_plan: RunPlan,
    /// The programs. At least one.
    pub targets: Vec<ComparedTargetPlan>,
    /// Runs of each target; each target has one run in each block of runs.
    pub runs: u32,
    /// From which the order within blocks follows.
    pub seed: Seed,
}

impl TargetsPlan {
    /// Returns true if namespaces are created for its runs, where they are permitted.
    #[must_use]
    pub fn uses_namespaces(&self) -> bool {
        let mut targets = self.targets.iter();
        self.run_plan.uses_namespaces()
            || targets.any(|compared| compared.target.has_mount_namespace())
    }
}

/// One of several programs that carry the same load.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ComparedTargetPlan {
    /// Its name in `--targets` and reports.
    pub name: String,
    /// Start, readiness and stop.
    pub target: TargetPlan,
    /// The program that is measured, where the command starts another one that starts
    /// it: a name, or a path that may hold placeholders.
    pub program: Option<PathBuf>,
    /// A command that prints the version in its first line.
    pub version: Option<Vec<String>>,
    /// Configuration files that belong to what was measured.
    pub files: Vec<PathBuf>,
    /// The durability that it is configured for.
    pub durability: Option<Durability>,
    /// The delivery that it is configured for.
    pub delivery: Option<Delivery>,
}

/// Storage of events that were accepted and not yet sent on, in the
/// order of what that survives.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// In memory: lost with the process.
    Memory,
    /// In files: it survives the process, and not the host.
    Disk,
    /// In files that are synced: it survives the host.
    Synced,
}

impl Durability {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Disk, Self::Synced];

    /// The word in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Synced => "synced",
        }
    }
}

/// Number of times that each accepted event arrives.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Some may be lost, none is duplicated.
    AtMostOnce,
    /// None is lost, some may be duplicated.
    AtLeastOnce,
    /// None is lost, none is duplicated.
    ExactlyOnce,
}

impl Delivery {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::AtMostOnce, Self::AtLeastOnce, Self::ExactlyOnce];

    /// The word in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtMostOnce => "at_most_once",
            Self::AtLeastOnce => "at_least_once",
            Self::ExactlyOnce => "exactly_once",
        }
    }

    /// Returns true if it allows events to be lost.
    #[must_use]
    pub const fn may_lose(self) -> bool {
        matches!(self, Self::AtMostOnce)
    }

    /// Returns true if it allows events to arrive more than once.
    #[must_use]
    pub const fn may_double(self) -> bool {
        matches!(self, Self::AtLeastOnce)
    }
}
