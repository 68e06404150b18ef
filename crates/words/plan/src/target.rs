//! The program being measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillwell_units::{ByteSize, Nanos};

use crate::placement::CpuChoice;
use crate::step::TargetSignal;

mod container;

pub use container::{ContainerOrigin, ContainerTarget, ImagePlan};

/// The program being measured, and how it is started, known ready and stopped.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TargetPlan {
    /// Its name in reports.
    pub name: String,
    /// Its source.
    pub kind: TargetKind,
    /// Its readiness probe.
    pub ready: ReadyProbe,
    /// The CPUs that it may use.
    pub cpus: CpuChoice,
    /// The memory that it may use, where a cgroup can hold it to that.
    pub memory: Option<ByteSize>,
    /// Its stop.
    pub stop: StopPlan,
}

/// Source of the target.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A program that we start and stop.
    Child(ChildPlan),
    /// A process that runs already; it is watched, never signalled.
    Pid(u32),
    /// A container of an engine.
    Container(Box<ContainerTarget>),
    /// A service that runs already, here or on another host. Requests go to this URL. The process that
    /// listens there is watched if the URL is on loopback, and never signalled.
    Url(String),
    /// Nothing: load goes from generators directly to the listeners.
    None,
}

/// A program that we start and stop.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ChildPlan {
    /// The executable; a bare name is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments. See [`Places`] for what is replaced in them.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: EnvironmentPlan,
    /// Its working directory; the run's state folder if none.
    pub directory: Option<PathBuf>,
    /// Folders to show it at fixed places, where namespaces permit.
    pub mounts: Vec<MountPlan>,
    /// Largest size of each of its two logs; the first and the last half are kept.
    #[serde(
        default = "log_limit_default",
        skip_serializing_if = "is_log_limit_default"
    )]
    pub log_limit: ByteSize,
}

/// Default of [`ChildPlan::log_limit`].
pub const LOG_LIMIT_DEFAULT: ByteSize = ByteSize::mib(64);

const fn log_limit_default() -> ByteSize {
    LOG_LIMIT_DEFAULT
}

fn is_log_limit_default(limit: &ByteSize) -> bool {
    *limit == LOG_LIMIT_DEFAULT
}

/// The environment of a child.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct EnvironmentPlan {
    /// True if our own environment is passed on. `PATH` always is.
    pub inherit: bool,
    /// Variables set besides. Values know the same [`Places`] as arguments.
    pub variables: BTreeMap<String, String>,
}

/// A folder or file that the target sees at a fixed place.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct MountPlan {
    /// The source path. May hold the same [`Places`] as arguments.
    pub source: PathBuf,
    /// The target's path of it: absolute, such as `/etc/vector`.
    pub at: PathBuf,
    /// True if the target may write into it: a folder, created if missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writable: bool,
}

impl MountPlan {
    /// `source`, which the target may only read, at `at`.
    #[must_use]
    pub const fn read_only(source: PathBuf, at: PathBuf) -> Self {
        Self {
            source,
            at,
            writable: false,
        }
    }
}

/// Readiness probe of the target.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyProbe {
    /// At once.
    Immediately,
    /// It accepts a TCP connection.
    Tcp {
        /// `host:port`.
        address: String,
    },
    /// It answers a GET with a status from 200 to 299.
    Http {
        /// `http://host:port/path`.
        url: String,
    },
    /// It has written a line that contains this text to stdout or stderr.
    LogLine {
        /// The text.
        contains: String,
    },
    /// A file exists, or a program listens on a Unix socket.
    File {
        /// Its path; knows the same [`Places`] as arguments.
        path: String,
    },
    /// It has run for this length.
    Delay {
        /// The length.
        length: Nanos,
    },
}

/// Stop of the target: `signal`, then SIGKILL after `grace`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StopPlan {
    /// The first signal.
    pub signal: TargetSignal,
    /// Time in which it can end by itself.
    pub grace: Nanos,
}

/// Default of [`TargetPlan::stop`].
pub const STOP_DEFAULT: StopPlan = StopPlan {
    signal: TargetSignal::Term,
    grace: Nanos::from_secs(10),
};

/// Folders and files that are known only when a run starts. They replace
/// `{self}`, `{state}`, `{files}` and `{experiment}` in a target's command,
/// environment and probe, and in the paths of generators and sinks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Places {
    /// `{self}`: the running stillwell executable.
    pub stillwell: PathBuf,
    /// `{state}`: an empty folder made for this run alone.
    pub state: PathBuf,
    /// `{files}`: the variant's set of files, if it has one.
    pub files: Option<PathBuf>,
    /// `{experiment}`: the folder of the experiment.
    pub experiment: PathBuf,
}

impl Places {
    /// Returns places that fill in `{files}` and leave every other placeholder as it is.
    #[must_use]
    pub fn only_files(files: PathBuf) -> Self {
        Self {
            stillwell: "{self}".into(),
            state: "{state}".into(),
            files: Some(files),
            experiment: "{experiment}".into(),
        }
    }

    /// `text` with every place filled in.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        let show = |path: &Path| path.to_string_lossy().into_owned();
        let mut filled = text
            .replace("{self}", &show(&self.stillwell))
            .replace("{state}", &show(&self.state))
            .replace("{experiment}", &show(&self.experiment));
        if let Some(files) = &self.files {
            filled = filled.replace("{files}", &show(files));
        }
        filled
    }
}

impl TargetPlan {
    /// Returns a target that is no program: generators send to addresses that already listen.
    #[must_use]
    pub fn none() -> Self {
        Self {
            name: "none".to_owned(),
            kind: TargetKind::None,
            ready: ReadyProbe::Immediately,
            cpus: CpuChoice::Auto,
            memory: None,
            stop: STOP_DEFAULT,
        }
    }

    /// Its mounts at fixed places.
    #[must_use]
    pub fn mounts(&self) -> &[MountPlan] {
        match &self.kind {
            TargetKind::Child(child) => &child.mounts,
            TargetKind::Container(container) => match &container.origin {
                ContainerOrigin::Image(image) => &image.mounts,
                ContainerOrigin::Named(_) => &[],
            },
            TargetKind::Pid(_) | TargetKind::Url(_) | TargetKind::None => &[],
        }
    }

    /// Returns true if it is started in a mount namespace. The mounts of a container are its engine's.
    #[must_use]
    pub fn has_mount_namespace(&self) -> bool {
        matches!(&self.kind, TargetKind::Child(child) if !child.mounts.is_empty())
    }

    /// Returns true if it runs before we look at it, and after.
    #[must_use]
    pub fn is_others(&self) -> bool {
        match &self.kind {
            TargetKind::Container(container) => {
                matches!(container.origin, ContainerOrigin::Named(_))
            }
            TargetKind::Pid(_) | TargetKind::Url(_) => true,
            TargetKind::Child(_) | TargetKind::None => false,
        }
    }

    /// The same target with every place filled in.
    #[must_use]
    pub fn filled(&self, places: &Places) -> Self {
        let mut target = self.clone();
        if let TargetKind::Container(container) = &mut target.kind {
            container.fill(places);
        }
        if let TargetKind::Child(child) = &mut target.kind {
            child.program = places.fill(&child.program.to_string_lossy()).into();
            for argument in &mut child.arguments {
                *argument = places.fill(argument);
            }
            for value in child.environment.variables.values_mut() {
                *value = places.fill(value);
            }
            if let Some(directory) = &mut child.directory {
                *directory = places.fill(&directory.to_string_lossy()).into();
            }
            for mount in &mut child.mounts {
                mount.source = places.fill(&mount.source.to_string_lossy()).into();
            }
        }
        match &mut target.ready {
            ReadyProbe::File { path: text }
            | ReadyProbe::LogLine { contains: text }
            | ReadyProbe::Tcp { address: text }
            | ReadyProbe::Http { url: text } => *text = places.fill(text),
            ReadyProbe::Immediately | ReadyProbe::Delay { .. } => {}
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in() {
        let places = Places {
            stillwell: "/bin/stillwell".into(),
            state: "/state".into(),
            files: None,
            experiment: "/lab/one".into(),
        };
        assert_eq!(
            places.fill("{self} --data {state} {files} {experiment}"),
            "/bin/stillwell --data /state {files} /lab/one"
        );
        let places = Places::only_files("/lab/one/files".into());
        assert_eq!(
            places.fill("{self} --data {state} {files} {experiment}"),
            "{self} --data {state} /lab/one/files {experiment}"
        );
    }
}
