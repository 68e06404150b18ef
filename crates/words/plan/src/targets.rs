//! Several programs under one load.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::Seed;

use crate::{RigPlan, TargetPlan};

/// Runs where neither file nor command line says how many.
pub const RUNS_DEFAULT: u32 = 6;
/// Most runs of each contender.
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
    /// What every run looks like; its subject is that of each contender in turn.
    pub rig: RigPlan,
    /// The programs. At least one.
    pub targets: Vec<ComparedTargetPlan>,
    /// Runs of each contender; in each block of runs every one has its turn.
    pub runs: u32,
    /// From which the order within blocks follows.
    pub seed: Seed,
}

/// One of several programs that carry the same load.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ComparedTargetPlan {
    /// What `--subjects` and reports call it.
    pub name: String,
    /// How it is started, known ready and stopped.
    pub target: TargetPlan,
    /// The program that is measured, where the command starts another one that starts
    /// it: a name, or a path that may hold placeholders.
    pub program: Option<PathBuf>,
    /// A command whose first line says which version it is.
    pub version: Option<Vec<String>>,
    /// Configuration files that belong to what was measured.
    pub files: Vec<PathBuf>,
    /// What it is asked to keep when something ends.
    pub durability: Option<Durability>,
    /// How often an event that it took is to arrive.
    pub delivery: Option<Delivery>,
}

/// Where a program is asked to keep what it took and has not sent on, in the
/// order of what that survives.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// In memory: lost with the process.
    Memory,
    /// In files: it survives the process, and not the host.
    Disk,
    /// In files that the kernel is asked to write out: it survives the host.
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

/// How often each event that was taken arrives.
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
