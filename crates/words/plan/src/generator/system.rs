//! Generators that work on the system itself: processes and containers.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// Trees of processes, and how large they are.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ProcessTreePlan {
    /// Processes from the root of a tree to a leaf, both included.
    pub depth_max: NonZeroU32,
    /// Children of each process.
    pub children_max: NonZeroU32,
    /// Processes of one tree in all.
    pub processes_max: NonZeroU32,
    /// Lifetime of a process with children after it has started them.
    pub sleep: Nanos,
    /// Executables of processes without children, one for each process; at least one.
    pub executables: Vec<ExecutablePlan>,
}

/// A program with its arguments and environment.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ExecutablePlan {
    /// A path, or a name that is looked for as a shell does.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: WordsPlan,
    /// The whole environment, each as `NAME=VALUE`.
    pub environment: WordsPlan,
}

/// Words that a program is given.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WordsPlan {
    /// Always these.
    Fixed(Vec<String>),
    /// Others each time.
    Drawn {
        /// Characters of each; of an environment's those of names and of values.
        length: u32,
        /// Their number.
        count: u32,
    },
}

/// A folder that looks like `/proc`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ProcFsPlan {
    /// The folder; it is made where it is not there.
    pub root: PathBuf,
    /// Processes that it shows.
    pub processes: u32,
    /// Files of this machine that are copied into it, under their own names.
    pub copies: Vec<PathBuf>,
}

/// Containers that an engine runs.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ContainerPlan {
    /// The engine's socket, which speaks Docker's API.
    pub socket: PathBuf,
    /// The image's name.
    pub repository: String,
    /// Its tag.
    pub tag: String,
    /// Arguments of the image's entry point; the image's if none.
    pub arguments: Option<Vec<String>>,
    /// Its environment, each as `NAME=VALUE`.
    pub environment: Vec<String>,
    /// Labels of each container.
    pub labels: Vec<(String, String)>,
    /// True if containers have no network.
    pub is_offline: bool,
    /// Ports that are exposed, each as `8080/tcp`.
    pub ports: Vec<String>,
    /// After this long a container goes and another one comes; never if none.
    pub lifetime: Option<Nanos>,
    /// Containers at a time; at least one.
    pub count: u32,
}
